"""When a routine is due: choices and expressions, in a zone, over days of changed clocks (R25)."""

from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conch.tasks.schedule import Plan, cron_of, explained, following, latest, plan_of, trouble
from tests.tasks.conftest import utc

BERLIN, NEW_YORK, TOKYO = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Tokyo")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
NOW = utc(2026, 10, 9, 12, 0)


def next_ones(cron, after, zone, count):
    """The next moments in the zone's own clock, written with its offset."""
    found = []
    for _ in range(count):
        after = following(cron, after, zone)
        found.append(f"{after.astimezone(zone):%m-%d %H:%M%z}")
    return found


@pytest.mark.parametrize(
    ("plan", "cron"),
    [
        (Plan("day", "09:05"), "5 9 * * *"),
        (Plan("weekdays", "07:30"), "30 7 * * 1-5"),
        (Plan("week", "18:00", weekday="1"), "0 18 * * 1"),
        (Plan("week", "00:00", weekday="0"), "0 0 * * 0"),
        (Plan("month", "12:00", monthday="31"), "0 12 31 * *"),
        (Plan("month", "12:00", monthday="L"), "0 12 L * *"),
        (Plan("cron", cron="*/15 9-17 * * 1-5"), "*/15 9-17 * * 1-5"),
    ],
)
def test_what_a_person_chooses_is_a_cron_expression_and_is_found_again_in_it(plan, cron):
    assert cron_of(plan) == cron
    again = plan_of(cron)
    assert (again.kind, cron_of(again)) == (plan.kind, cron)


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        (BERLIN, "0 9 * * *", utc(2026, 10, 9, 6, 59, 59), ["10-09 09:00+0200", "10-10 09:00+0200"]),
        (BERLIN, "0 9 * * *", utc(2026, 10, 9, 7, 0), ["10-10 09:00+0200"]),
        (TOKYO, "0 9 * * 1-5", utc(2026, 10, 9, 0, 0), ["10-12 09:00+0900", "10-13 09:00+0900"]),
        (NEW_YORK, "0 18 * * 1", utc(2026, 10, 9), ["10-12 18:00-0400", "10-19 18:00-0400"]),
        (BERLIN, "0 12 31 * *", utc(2026, 1, 31, 11), ["03-31 12:00+0200", "05-31 12:00+0200"]),
        (BERLIN, "0 12 L * *", utc(2026, 1, 31, 11), ["02-28 12:00+0100", "03-31 12:00+0200"]),
        (BERLIN, "0 12 29 2 *", utc(2026, 1, 1), ["02-29 12:00+0100"]),
    ],
)
def test_a_schedule_is_read_in_the_persons_zone(zone, cron, after, expected):
    assert next_ones(cron, after, zone, len(expected)) == expected


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        # Spring: 02:00 to 03:00 is skipped in Berlin on March 29. What falls in it runs once, at 03:00.
        (BERLIN, "30 2 * * *", utc(2026, 3, 28, 12), ["03-29 03:00+0200", "03-30 02:30+0200"]),
        (BERLIN, "0,30 2 * * *", utc(2026, 3, 28, 12), ["03-29 03:00+0200", "03-30 02:00+0200"]),
        (BERLIN, "0 2,3 * * *", utc(2026, 3, 28, 12), ["03-29 03:00+0200", "03-30 02:00+0200"]),
        (BERLIN, "0 9 * * *", utc(2026, 3, 28, 12), ["03-29 09:00+0200", "03-30 09:00+0200"]),
        (NEW_YORK, "30 2 * * *", utc(2026, 3, 7, 12), ["03-08 03:00-0400", "03-09 02:30-0400"]),
        # Autumn: 02:00 to 03:00 comes twice in Berlin on October 25. What falls in it runs once, the first time.
        (BERLIN, "30 2 * * *", utc(2026, 10, 24, 12), ["10-25 02:30+0200", "10-26 02:30+0100"]),
        (BERLIN, "30 2 * * *", utc(2026, 10, 25, 1, 10), ["10-26 02:30+0100"]),
        (BERLIN, "0 3 * * *", utc(2026, 10, 24, 12), ["10-25 03:00+0100", "10-26 03:00+0100"]),
        (NEW_YORK, "30 1 * * *", utc(2026, 10, 31, 12), ["11-01 01:30-0400", "11-02 01:30-0500"]),
        # Half an hour is skipped on Lord Howe on October 4.
        (LORD_HOWE, "15 2 * * *", utc(2026, 10, 3), ["10-04 02:30+1100", "10-05 02:15+1100"]),
        # What starts with a star follows the clock's own course: all of the real half hours.
        (
            BERLIN,
            "*/30 * * * *",
            utc(2026, 10, 25, 0, 0),
            ["10-25 02:30+0200", "10-25 02:00+0100", "10-25 02:30+0100", "10-25 03:00+0100"],
        ),
        (BERLIN, "*/30 * * * *", utc(2026, 3, 29, 0, 30), ["03-29 03:00+0200", "03-29 03:30+0200"]),
    ],
)
def test_on_days_of_changed_clocks_a_skipped_time_runs_once_and_a_repeated_one_once(zone, cron, after, expected):
    assert next_ones(cron, after, zone, len(expected)) == expected


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    after=st.datetimes(min_value=utc(2025, 1, 1).replace(tzinfo=None), max_value=utc(2029, 1, 1).replace(tzinfo=None)),
    zone=st.sampled_from([BERLIN, NEW_YORK, TOKYO, LORD_HOWE, ZoneInfo("Africa/Casablanca"), ZoneInfo("UTC")]),
)
def test_a_daily_routine_runs_once_every_day_whatever_the_clocks_do(minute, hour, after, zone):
    moments = [after.replace(tzinfo=ZoneInfo("UTC"))]
    for _ in range(5):
        moments.append(following(f"{minute} {hour} * * *", moments[-1], zone))

    assert moments == sorted(set(moments))
    days = [at.astimezone(zone).date() for at in moments[1:]]
    assert [(later - earlier).days for earlier, later in pairwise(days)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("", "five fields"),
        ("@daily", "five fields"),
        ("0 0 9 * * *", "five fields"),
        ("60 9 * * *", "bad minute"),
        ("0 25 * * *", "bad hour"),
        ("0 9 * * MOON", "bad day-of-week"),
        ("0 9 30 2 *", "bad day-of-month"),
        ("0 9 31 4,6 *", "bad day-of-month"),
        ("0 9 * 2 1#6", "bad day-of-week"),
    ],
)
def test_an_expression_that_is_none_says_what_is_wrong(cron, said):
    assert said in trouble(cron, NOW, BERLIN)


@pytest.mark.parametrize("cron", ["*/5 * * * *", "0 9 * * MON-FRI", "0 9 LW * *", "0 9 * * 1#1", "0 9 29 2 *"])
def test_an_expression_that_is_one_is_taken_and_said_in_words(cron):
    assert trouble(cron, NOW, BERLIN) == ""
    assert explained(cron)


def test_of_many_missed_moments_the_latest_counts():
    """A laptop that slept: one run, for the last of them, found without counting a year of minutes."""
    first = utc(2025, 1, 1, 9)

    assert latest("* * * * *", first, utc(2026, 1, 1, 0, 0, 30), BERLIN) == utc(2026, 1, 1, 0, 0)
    assert latest("0 9 * * *", first, utc(2026, 1, 1, 7, 59), BERLIN) == utc(2025, 12, 31, 8)
    assert latest("0 9 1 1 *", utc(2020, 1, 1, 8), utc(2026, 6, 1), BERLIN) == utc(2026, 1, 1, 8)
    assert latest("0 9 * * *", utc(2026, 1, 1, 8), utc(2026, 1, 1, 8), BERLIN) == utc(2026, 1, 1, 8)
