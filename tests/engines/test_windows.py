"""What providers say of windows and caps, read from recorded answers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from conch.engines import windows
from conch.engines.base import Room, WindowReading
from tests.engines.conftest import NOW
from tests.engines.provider import payload

SIX = datetime(2026, 10, 9, 18, tzinfo=UTC)
TUESDAY = datetime(2026, 10, 13, 21, tzinfo=UTC)


def five_hours(used, resets_at=SIX):
    return WindowReading("5-hour", used, resets_at, length_minutes=300)


def week(used, resets_at=TUESDAY):
    return WindowReading("weekly", used, resets_at, length_minutes=10080)


@pytest.mark.parametrize(
    ("name", "read", "allowed"),
    [
        ("wham_usage", (five_hours(34), week(58)), True),
        ("wham_usage_full", (five_hours(100), week(81)), False),
        ("wham_usage_weekly_in_primary", (week(47),), True),
    ],
)
def test_windows_ahead_of_a_turn_are_named_by_their_length(name, read, allowed):
    room = windows.codex_usage(payload(f"codex_direct/{name}.json"), {}, NOW)
    assert room.windows == read
    assert room.allowed is allowed
    assert room.complete


def test_a_meter_of_one_model_covers_that_model():
    room = windows.codex_usage(payload("codex_direct/wham_usage_balance_number.json"), {}, NOW)
    assert room.windows[2] == WindowReading("Example-Spark 5-hour", 0, SIX, ("example-spark",), 300)


def test_windows_in_headers_are_merged_not_complete():
    room = windows.codex_headers(payload("codex_direct/stream_ok_headers.json"), NOW)
    assert room == Room((five_hours(34), week(58)), plan="plus")


def test_zeros_without_a_reset_are_no_figures():
    """providers.md 4."""
    zeros = {"x-codex-primary-used-percent": "0", "x-codex-primary-window-minutes": "300"}
    assert windows.codex_headers(zeros, NOW) is None
    assert windows.codex_headers({}, NOW) is None


def test_rst_03_a_window_that_is_over_says_so():
    """RST-03, R6: full by an old reading, its reset past: the reset is kept, so that nobody takes it for full."""
    window = {"used_percent": 100, "limit_window_seconds": 18000, "reset_at": 1791547000}
    (read,) = windows.codex_usage({"rate_limit": {"primary_window": window}}, {}, NOW).windows
    assert read.resets_at == datetime.fromtimestamp(1791547000, UTC) < NOW


def test_win_03_an_event_without_windows_erases_nothing():
    """WIN-03: nothing is read from it, so nothing is merged."""
    event = {"limit_id": "premium", "rate_limits": {"primary": None, "secondary": None}}
    assert windows.codex_event(event, {}, NOW) is None
    assert windows.codex_event({}, {}, NOW) is None


@pytest.mark.parametrize(
    "body", [None, [], {}, {"rate_limit": None}, {"rate_limit": []}, {"rate_limit": {"primary_window": 3}}]
)
def test_a_reading_without_windows_says_nothing(body):
    """R6, R29: never 0%, never complete."""
    room = windows.codex_usage(body, {}, NOW)
    assert room.windows == ()
    assert not room.complete
    assert room.allowed is None


def test_win_01_an_odd_share_is_unknown():
    """WIN-01."""
    for odd in ("1e307", "NaN", "", "abc", None):
        body = {"rate_limit": {"primary_window": {"used_percent": odd, "limit_window_seconds": 18000}}}
        assert windows.codex_usage(body, {}, NOW).windows == (five_hours(None, None),)


def test_a_wrong_clock_moves_resets_to_ours():
    """Times: the reading says how far off the clock is."""
    ours = NOW + timedelta(hours=8)
    headers = {"date": "Fri, 09 Oct 2026 12:00:00 GMT"}
    room = windows.codex_usage(payload("codex_direct/wham_usage.json"), headers, ours)
    assert room.windows[0].resets_at == ours + timedelta(hours=6)
    assert room.clock_off_seconds == 8 * 3600


@pytest.mark.parametrize(
    ("minutes", "name"),
    [(300, "5-hour"), (10080, "weekly"), (1440, "daily"), (43200, "monthly"), (180, "3-hour"), (2880, "2-day"),
     (90, "90-minute"), (None, "usage"), (0, "usage")],
)  # fmt: skip
def test_a_window_has_a_name(minutes, name):
    assert windows.window_name(minutes) == name


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("key_capped_monthly", Room(complete=True, key_cap=Decimal(20), key_left=Decimal("7.4"),
                                    key_resets_at=datetime(2026, 11, 1, tzinfo=UTC))),
        ("key_cap_never_resets", Room(complete=True, key_cap=Decimal(5), key_left=Decimal("0.2"))),
        ("key_overspent", Room(complete=True, key_cap=Decimal(20), key_left=Decimal("-0.013"),
                               key_resets_at=datetime(2026, 11, 1, tzinfo=UTC))),
        ("key_uncapped", Room(complete=True, key_uncapped=True)),
    ],
)  # fmt: skip
def test_a_keys_own_cap_in_money(name, room):
    assert windows.openrouter_key(payload(f"openrouter/{name}.json"), {}, NOW) == room


def test_a_key_that_says_nothing_is_not_uncapped():
    for body in (None, {}, {"data": {}}, {"data": {"limit": "NaN"}}):
        assert not windows.openrouter_key(body, {}, NOW).key_uncapped
