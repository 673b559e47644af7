"""The month that money counts in (R28, BUD-09)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conch.ledger import change_zone, month_end, month_of
from conch.models import MonthTotal, Preferences
from tests.conftest import NOW

# Hypothesis takes naive bounds and adds the zone.
FIRST, LAST = NOW.replace(year=2024, tzinfo=None), NOW.replace(year=2030, tzinfo=None)
ZONES = [
    "UTC", "America/Los_Angeles", "Europe/Berlin", "Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Pago_Pago",
    "America/Havana", "Africa/Cairo", "America/Asuncion", "Australia/Lord_Howe", "Asia/Beirut",
]  # fmt: skip


@dataclass(frozen=True)
class Zones:
    time_zone: str = ""
    budget_zone: str = ""
    budget_month: str = ""


def at(text):
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("now", "month"),
    [
        ("2026-06-01T03:00:00Z", "2026-05"),
        ("2026-06-01T07:00:01Z", "2026-06"),
        ("2026-03-01T08:00:01Z", "2026-03"),
        ("2026-11-01T08:30:00Z", "2026-11"),
        ("2026-11-01T06:59:59Z", "2026-10"),
        ("2026-11-01T07:00:00Z", "2026-11"),
        ("2027-01-01T07:59:59Z", "2026-12"),
        ("2027-01-01T08:00:00Z", "2027-01"),
    ],
)
def test_a_month_is_the_persons_own_also_on_the_day_the_clocks_change(now, month):
    """BUD-09, R28: in Los Angeles; after February; on the day of the autumn change."""
    assert month_of(Zones("America/Los_Angeles"), at(now)) == month


@pytest.mark.parametrize(
    ("zone", "now", "end"),
    [
        ("America/Los_Angeles", "2026-10-15T12:00:00Z", "2026-11-01T07:00:00Z"),
        ("America/Los_Angeles", "2026-11-15T12:00:00Z", "2026-12-01T08:00:00Z"),
        ("America/Los_Angeles", "2026-02-27T12:00:00Z", "2026-03-01T08:00:00Z"),
        ("Europe/Berlin", "2026-12-31T22:59:59Z", "2026-12-31T23:00:00Z"),
        ("", "2026-10-09T12:00:00Z", "2026-11-01T00:00:00Z"),
        ("Nowhere/Land", "2026-10-09T12:00:00Z", "2026-11-01T00:00:00Z"),
        ("../etc", "2026-10-09T12:00:00Z", "2026-11-01T00:00:00Z"),
    ],
)
def test_a_month_ends_at_midnight_of_the_persons_zone_and_in_utc_where_there_is_none(zone, now, end):
    """R28, BUD-09: calendar months, never thirty days."""
    assert month_end(Zones(zone), at(now)) == at(end)


@given(
    st.sampled_from(ZONES),
    st.sampled_from([*ZONES, ""]),
    st.datetimes(FIRST, LAST, timezones=st.just(UTC)),
    st.booleans(),
)
def test_the_month_goes_on_to_its_end_and_the_next_begins_there(zone, old, now, changed):
    """R28: whatever the zone was before, the months follow each other without a gap and never go back."""
    zones = Zones(zone)
    if changed:
        month = month_of(Zones(old), now - timedelta(days=3))
        zones = Zones(zone, old or "UTC", month)
    month, end = month_of(zones, now), month_end(zones, now)
    assert end > now
    assert month_of(zones, end - timedelta(microseconds=1)) == month
    assert month_of(zones, end) > month
    assert end - now < timedelta(days=34)
    assert month_of(zones, now - timedelta(hours=1)) <= month


@pytest.mark.django_db
def test_a_changed_zone_counts_from_the_next_month_on(ada):
    """R28: moving to another zone neither reopens a budget nor takes the month away."""
    Preferences.objects.update(time_zone="Asia/Tokyo")
    MonthTotal.objects.create(person=ada, month="2026-11")
    now = at("2026-10-31T16:00:00Z")  # November in Tokyo, October in Los Angeles
    change_zone(ada.pk, "America/Los_Angeles", now)
    changed = Preferences.objects.get()
    assert changed.time_zone == "America/Los_Angeles"
    assert month_of(changed, now) == "2026-11"
    assert month_of(changed, at("2026-11-30T15:00:00Z")) == "2026-11"
    assert month_end(changed, now) == at("2026-12-01T08:00:00Z")


@pytest.mark.django_db
def test_changed_twice_in_a_month_the_zone_of_its_beginning_still_decides_it(ada):
    """R28."""
    Preferences.objects.update(time_zone="Europe/Berlin")
    MonthTotal.objects.create(person=ada, month="2026-10")
    change_zone(ada.pk, "Europe/Berlin", NOW)
    assert Preferences.objects.get().budget_month == ""
    change_zone(ada.pk, "Pacific/Kiritimati", NOW)
    change_zone(ada.pk, "America/Los_Angeles", NOW)
    kept = Preferences.objects.get()
    assert (kept.time_zone, kept.budget_zone, kept.budget_month) == ("America/Los_Angeles", "Europe/Berlin", "2026-10")
    change_zone(ada.pk, "Asia/Tokyo", at("2026-11-05T00:00:00Z"))
    kept = Preferences.objects.get()
    assert (kept.budget_zone, kept.budget_month) == ("America/Los_Angeles", "2026-11")


@pytest.mark.django_db
def test_the_first_zone_of_a_person_without_any_entry_counts_at_once(ada):
    """R28: at first sign-in there is no month to protect."""
    change_zone(ada.pk, "America/Los_Angeles", at("2026-06-01T03:00:00Z"))
    assert month_of(Preferences.objects.get(), at("2026-06-01T03:00:00Z")) == "2026-05"


def test_a_turn_counts_in_the_month_it_started_in():
    """BUD-09: begun ten seconds before midnight, ended twenty after."""
    zone = ZoneInfo("America/Los_Angeles")
    started = datetime(2026, 5, 31, 23, 59, 50, tzinfo=zone)
    assert month_of(Zones("America/Los_Angeles"), started.astimezone(UTC)) == "2026-05"
    assert month_of(Zones("America/Los_Angeles"), (started + timedelta(seconds=30)).astimezone(UTC)) == "2026-06"
