"""The calendar month that money counts in: the person's own (R28).

There is no job that begins a month: an entry carries its month, and a month's total begins with its first entry.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

from conch.models import MonthTotal, Preferences


class BudgetZone(Protocol):
    """What of the preferences decides the month: the zone now, and the one in force for the month it was changed in."""

    @property
    def time_zone(self) -> str:
        """The person's zone, an IANA name; empty: UTC."""

    @property
    def budget_zone(self) -> str:
        """The zone that was in force when the zone was changed."""

    @property
    def budget_month(self) -> str:
        """The month ("YYYY-MM") in which it was changed; empty: it never was."""


def month_of(preferences: BudgetZone, at: datetime) -> str:
    """The month, "YYYY-MM", that a turn counts in which starts at that instant (R28).

    A zone that was changed counts from the next month on: the month of the change goes on to its end in the old zone.
    """
    if preferences.budget_month and _month(preferences.budget_zone, at) == preferences.budget_month:
        return preferences.budget_month
    return _month(preferences.time_zone, at)


def month_end(preferences: BudgetZone, at: datetime) -> datetime:
    """The first instant (UTC) of the month after the one that `at` counts in."""
    month = month_of(preferences, at)
    end = _first_instant_after(month, preferences.time_zone)
    if month == preferences.budget_month:
        end = max(end, _first_instant_after(month, preferences.budget_zone))
    return end


def change_zone(person_id: int, zone: str, now: datetime) -> None:
    """Keep the person's new zone; every time is shown in it at once, the budget follows from the next month (R28).

    A person without any entry yet has no month to protect: their zone counts at once. Changed twice in one month, the
    zone that was in force when the month began still decides it.
    """
    preferences = Preferences.objects.get(person_id=person_id)
    if preferences.time_zone == zone:
        return
    row = Preferences.objects.filter(person_id=person_id)
    month = month_of(preferences, now)
    if month == preferences.budget_month or not MonthTotal.objects.filter(person_id=person_id).exists():
        row.update(time_zone=zone)
    else:
        row.update(time_zone=zone, budget_zone=preferences.time_zone or "UTC", budget_month=month)


def _month(zone: str, at: datetime) -> str:
    local = at.astimezone(_zone(zone))
    return f"{local.year:04d}-{local.month:02d}"


def _first_instant_after(month: str, zone: str) -> datetime:
    year, number = (int(part) for part in month.split("-"))
    years, number = divmod(number, 12)
    return datetime(year + years, number + 1, 1, tzinfo=_zone(zone)).astimezone(UTC)


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo:
    """The zone of that name; UTC where it is unset or isn't known here."""
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, ValueError, OSError):
        return ZoneInfo("UTC")
