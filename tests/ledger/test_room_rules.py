"""The rules of what a reading does to a window, and what a refusal becomes (R6, R8, R29, Times)."""

from datetime import timedelta

import pytest

from conch.accounts.room import (
    A_WHILE,
    fate,
    merged,
    next_pause,
)
from conch.engines.base import WindowReading
from routing import facts
from tests.conftest import NOW

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MINUTE = timedelta(minutes=1)


def window(used, hours=None, name="5-hour", **more):
    resets_at = None if hours is None else NOW + hours * HOUR
    return facts.Window(name, used, resets_at, read_at=NOW - HOUR, **more)


def read(used=None, hours=None, name="5-hour", **more):
    return WindowReading(name, used, None if hours is None else NOW + hours * HOUR, **more)


# What a reading does to a window.


@pytest.mark.parametrize(
    ("known", "said", "used", "hours"),
    [
        (None, read(40, 3), 40, 3),
        (window(40, 3), read(45, None), 45, 3),
        (window(40, 3), read(None, 4), 40, 4),
        (window(40, 3), read(41, 3), 41, 3),
        (window(100, -1), read(2, None), 2, None),
        (window(100, -1), read(None, 4), None, 4),
        (window(100, 3), read(0, 100), 0, 100),
        (None, read(100, -1), 100, -1),
        (None, read(120, 3), 120, 3),
    ],
)
def test_a_reading_is_merged_and_what_it_leaves_out_is_kept_until_the_reset(known, said, used, hours):
    """R29, R6, WIN-03: None never overwrites; the figures of a window whose reset has passed drop out."""
    after = merged(known, said, NOW)
    assert (after.used_percent, after.resets_at) == (used, None if hours is None else NOW + hours * HOUR)


@pytest.mark.parametrize("odd", [None, "n/a", float("nan"), 1e307, -5, -0.0, True, float("inf")])
def test_a_percentage_that_is_no_number_changes_nothing(odd):
    """R6, WIN-01: never 0 and never 100."""
    assert merged(window(40, 3), read(odd), NOW) is None
    assert merged(None, read(odd), NOW) is None


def test_a_reading_of_a_window_that_is_over_says_nothing_about_the_one_that_runs():
    """R29: a late or stale report."""
    assert merged(window(10, 3), read(100, -1), NOW) is None


@pytest.mark.parametrize(
    ("length", "ahead", "kept"),
    [
        (300, 3 * HOUR, 3 * HOUR),
        (10080, 18 * DAY, 8 * DAY),
        (None, 18 * DAY, 8 * DAY),
        (43200, 31 * DAY, 31 * DAY),
        (43200, 90 * DAY, 32 * DAY),
        (300, 400 * DAY, None),
    ],
)
def test_a_reset_too_far_ahead_is_cut_to_its_window_and_one_over_a_year_is_none(length, ahead, kept):
    """Times, RST-23."""
    said = WindowReading("w", 50, NOW + ahead, length_minutes=length)
    assert merged(None, said, NOW).resets_at == (None if kept is None else NOW + kept)


# What a refusal becomes.

PLAN = {"plan": True, "metered": True, "scope": "limit"}
KEY = {"plan": False, "metered": False, "scope": "limit"}


@pytest.mark.parametrize(
    ("of", "windows", "until", "kind", "ends", "retry"),
    [
        # A metered plan whose windows are full, or weren't known: blocked until its reset.
        (PLAN, [window(100, 3)], 3 * HOUR, "blocked", 3 * HOUR, 3 * HOUR),
        (PLAN, [window(100, 3)], None, "blocked", 3 * HOUR, 3 * HOUR),
        (PLAN, [window(100, 3), window(100, 60, "weekly")], None, "blocked", 60 * HOUR, 60 * HOUR),
        (PLAN, [window(100, 3), window(100, None, "weekly")], None, "blocked", None, A_WHILE),
        (PLAN, [window(12, 1, "rolling"), window(100, 9, "weekly")], None, "blocked", 9 * HOUR, 9 * HOUR),
        (PLAN, [], 3 * HOUR, "blocked", 3 * HOUR, 3 * HOUR),
        (PLAN, [], None, "blocked", None, A_WHILE),
        (PLAN, [window(None, 3)], None, "blocked", None, A_WHILE),
        # Its meter showed room: refused until the given time, else a quarter of an hour (WIN-11).
        (PLAN, [window(0)], None, "refused", None, A_WHILE),
        (PLAN, [window(60, 3)], 2 * HOUR, "refused", 2 * HOUR, 2 * HOUR),
        # A window whose reset has passed says nothing.
        (PLAN, [window(100, -1)], None, "blocked", None, A_WHILE),
        (PLAN, [window(100, -1), window(30, 50, "weekly")], None, "refused", None, A_WHILE),
        # Whatever isn't metered is refused; a key's month may end up to 32 days ahead.
        (KEY, [], 3 * HOUR, "refused", 3 * HOUR, 3 * HOUR),
        (KEY, [], None, "refused", None, A_WHILE),
        (KEY, [], 31 * DAY, "refused", 31 * DAY, 31 * DAY),
        (KEY, [], 90 * DAY, "refused", 32 * DAY, 32 * DAY),
        (PLAN | {"metered": False}, [window(100, 3)], None, "refused", None, A_WHILE),
        # Want of credit, and what the plan has not, are no windows.
        (PLAN | {"scope": "money"}, [window(100, 3)], None, "refused", None, A_WHILE),
        (PLAN | {"scope": "not_entitled"}, [], None, "refused", None, A_WHILE),
        # Times: 8 days at most for a plan; the past and what is over a year ahead are none.
        (PLAN, [window(100, 3)], 18 * DAY, "blocked", 8 * DAY, 8 * DAY),
        (PLAN, [], -HOUR, "blocked", None, A_WHILE),
        (PLAN, [], timedelta(0), "blocked", None, A_WHILE),
        (PLAN, [], 8000 * 365 * DAY // 4, "blocked", None, A_WHILE),
    ],
)
def test_a_refusal_becomes_a_block_only_where_the_meter_was_full_or_unknown(of, windows, until, kind, ends, retry):
    """R8, Words, Times, WIN-05, WIN-11, RST-23."""
    came = fate(**of, until=None if until is None else NOW + until, windows=windows, now=NOW)
    assert (came.kind, came.until) == (kind, None if ends is None else NOW + ends)
    assert came.retry_at == NOW + retry


@pytest.mark.parametrize(
    ("failed", "pause", "next_one"),
    [(None, None, 1), (0, 1, 2), (0, 2, 4), (0, 32, 60), (0, 60, 60), (0, 0, 1), (0, -5, 1)],
)
def test_a_meter_that_fails_is_left_alone_twice_as_long_each_time_up_to_an_hour(failed, pause, next_one):
    """R29."""
    failed_at = None if failed is None else NOW
    until = None if pause is None else NOW + pause * MINUTE
    assert next_pause(failed_at, until) == next_one * MINUTE
