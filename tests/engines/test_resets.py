"""Every encoding of a time becomes an instant or nothing, never an exception (product.md, Times)."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conch.engines import resets
from tests.engines.conftest import NOW
from tests.engines.provider import payload


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


# The last of them, a sentence of a program, is read in test_limit_sentences.py.
@pytest.mark.parametrize("case", payload("clock/reset_encodings.json")[:-1], ids=lambda case: case["source"])
def test_every_encoding_says_the_same_instant(case):
    value = case["value"]
    found = resets.instant(value)
    if isinstance(value, str) and found is None:
        message = resets.regained(value)
        wait = resets.duration(value) or resets.again_in(value)
        found = message or resets.ahead(wait, NOW)
    assert found is not None
    assert abs(found.timestamp() - case["epoch"]) < 1


@pytest.mark.parametrize("case", payload("clock/openai_durations.json"), ids=lambda case: case["text"] or "empty")
def test_durations_need_their_units(case):
    found = resets.duration(case["text"])
    assert found == pytest.approx(case["seconds"]) if case["seconds"] is not None else found is None


@pytest.mark.parametrize(
    "case", payload("clock/retry_after_cases.json")["cases"], ids=lambda case: str(case["headers"])
)
def test_retry_after_is_seconds_milliseconds_or_a_date(case):
    """RST-05: what can't be read is as if it weren't there."""
    found = resets.pause(case["headers"], NOW)
    assert found == pytest.approx(case["seconds"]) if case["seconds"] is not None else found is None


@pytest.mark.parametrize(
    "odd", ["Wed, 99 Foo 2026 25:61:00 GMT", "soon", "NaN", "-5", "", "Infinity", "1e400", "0", "-0.0", "١٢", "0x10"]
)
def test_rst_05_an_unreadable_wait_is_no_wait(odd):
    """RST-05: never an exception; the default of the caller stands."""
    wait = resets.pause({"retry-after": odd}, NOW)
    assert wait is None or (math.isfinite(wait) and wait > 0)


@pytest.mark.parametrize(
    "case", payload("clock/openrouter_next_reset.json")["cases"], ids=lambda c: str(c["limit_reset"])
)
def test_a_keys_cap_starts_anew_at_midnight_utc(case):
    found = resets.next_reset(case["limit_reset"], NOW)
    assert found == (at(case["resets_at"]) if case["resets_at"] else None)


def test_a_month_ends_from_any_day_of_it():
    for day in (1, 15, 28, 31):
        assert resets.next_reset("monthly", datetime(2026, 1, day, 23, 59, tzinfo=UTC)) == at("2026-02-01T00:00:00Z")
    assert resets.next_reset("monthly", at("2026-12-31T23:59:59Z")) == at("2027-01-01T00:00:00Z")
    assert resets.next_reset("weekly", at("2026-10-12T00:00:00Z")) == at("2026-10-19T00:00:00Z")


def test_rst_03_seconds_are_never_a_moment_of_1970():
    """RST-03: seconds and milliseconds are told apart, and both are aware UTC instants."""
    for value in (1786034400, 1786034400000, "1786034400", 1786034400.0):
        found = resets.instant(value)
        assert found.isoformat() == "2026-08-06T16:40:00+00:00"
        assert found.tzinfo is UTC


def test_rst_15_two_readings_of_one_window_are_within_a_minute():
    """RST-15: sub-second jitter doesn't make two windows of one."""
    first, second = (resets.instant(f"2026-04-17T{time}+00:00") for time in ("00:59:59.951713", "01:00:00.104512"))
    assert abs(first - second) < timedelta(minutes=1)


def test_rst_17_the_absolute_time_wins_while_clocks_agree():
    """RST-17."""
    headers = {"date": "Mon, 04 May 2026 19:24:38 GMT"}
    assert resets.reset(1777936568, 13872, headers, at("2026-05-04T19:24:56Z")) == at("2026-05-04T23:16:08Z")


def test_rst_18_a_wrong_clock_waits_for_the_relative_time():
    """RST-18: our clock is eight hours ahead; the absolute reset looks past."""
    headers, now = {"date": "Mon, 04 May 2026 19:24:56 GMT"}, at("2026-05-05T03:24:56Z")
    assert resets.reset(1777936568, 13872, headers, now) == now + timedelta(seconds=13872)
    assert resets.reset(1777936568, None, headers, now) == now + timedelta(seconds=13872)  # less Date
    assert resets.clock_off(headers, now) == 8 * 3600
    behind = at("2026-05-04T11:24:56Z")
    assert resets.reset(1777936568, 13872, headers, behind) == behind + timedelta(seconds=13872)


def test_a_clock_that_agrees_within_a_minute_is_right():
    assert resets.clock_off({"date": "Fri, 09 Oct 2026 12:01:00 GMT"}, NOW) is None
    assert resets.clock_off({"date": "Fri, 09 Oct 2026 12:01:01 GMT"}, NOW) == -61
    assert resets.clock_off({"date": "yesterday"}, NOW) is None
    assert resets.clock_off({}, NOW) is None


def test_a_reset_in_the_past_gives_way_to_the_relative_one():
    assert resets.reset(1791547170, 900, {}, NOW) == NOW + timedelta(seconds=900)
    assert resets.reset(1791547170, None, {}, NOW) is None


def test_rst_23_a_reset_beyond_its_window_is_cut_and_one_beyond_a_year_is_none():
    """RST-23: 18 days are more than any window of a plan has."""
    assert resets.ahead(1587827, NOW) == NOW + timedelta(days=8)
    assert resets.ahead(20 * 86400, NOW, longest=resets.LONGEST_MONTH) == NOW + timedelta(days=20)
    assert resets.ahead(40 * 86400, NOW, longest=resets.LONGEST_MONTH) == NOW + timedelta(days=32)
    assert resets.ahead(400 * 86400, NOW) is None


def test_geminis_day_ends_at_midnight_in_california():
    assert resets.next_pacific_midnight(NOW) == at("2026-10-10T07:00:00Z")
    assert resets.next_pacific_midnight(at("2026-11-01T12:00:00Z")) == at("2026-11-02T08:00:00Z")  # the clocks changed


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=40),
    st.sampled_from(
        ["1e999", "Infinity", "\uff19\uff19", "9" * 400, "2026-13-45T99:99:99Z", "0001-01-01T00:00:00+23:59"]
    ),
    st.lists(st.integers()),
)


@given(
    ANYTHING,
    ANYTHING,
    st.dictionaries(st.sampled_from(["date", "retry-after", "retry-after-ms"]), st.text(max_size=40)),
)
def test_nothing_a_provider_says_raises_and_no_reset_lies_in_the_past(absolute, relative, headers):
    found = resets.reset(absolute, relative, headers, NOW)
    assert found is None or NOW < found <= NOW + resets.LONGEST_PLAN
    wait = resets.pause(headers, NOW)
    assert wait is None or (wait > 0 and math.isfinite(wait))
    for read in (resets.duration, resets.instant, resets.http_date, resets.seconds):
        read(absolute)
    assert resets.next_reset(absolute, NOW) is None
    resets.regained(str(absolute))
    resets.again_in(str(absolute))
