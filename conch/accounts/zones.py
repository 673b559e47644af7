"""The person's time zone and hour cycle: taken from the browser at first, changed by the person, never guessed."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo, available_timezones

from conch.ledger import change_zone
from conch.models import Person, Preferences

ZONE_COOKIE, HOURS_COOKIE = "conch_zone", "conch_hours"
HOUR_CYCLES = ("h12", "h23")
UTC = ZoneInfo("UTC")


def preferences_of(person: Person) -> Preferences:
    """The person's one row of preferences, made where it is missing; kept on the person for this request."""
    try:
        return person.preferences
    except Preferences.DoesNotExist:
        person.preferences = Preferences.objects.get_or_create(person=person)[0]
        return person.preferences


@cache
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def is_zone(name: str) -> bool:
    """Whether that is an IANA zone that this machine knows."""
    return name in _known_zones()


def zone_of(person: Person | None) -> ZoneInfo:
    """The person's zone; nobody's: UTC."""
    return zone_of_name(preferences_of(person).time_zone if person is not None else "")


def zone_of_name(name: str) -> ZoneInfo:
    """The zone of that name; unset, or one that this machine no longer knows: UTC."""
    return ZoneInfo(name) if name and is_zone(name) else UTC


def unset(person: Person, cookies: Mapping[str, str]) -> bool:
    """Whether the browser says something that the person has not set."""
    preferences = preferences_of(person)
    return bool(
        (not preferences.time_zone and cookies.get(ZONE_COOKIE))
        or (not preferences.hour_cycle and cookies.get(HOURS_COOKIE))
    )


def take(person: Person, cookies: Mapping[str, str], now: datetime) -> None:
    """Keep the browser's zone and hour cycle where the person has none; a value that makes no sense is left out."""
    preferences = preferences_of(person)
    zone, hours = unquote(cookies.get(ZONE_COOKIE, "")), cookies.get(HOURS_COOKIE, "")
    if not preferences.time_zone and is_zone(zone):
        change_zone(person.pk, zone, now)
        preferences.time_zone = zone
    if not preferences.hour_cycle and hours in HOUR_CYCLES:
        preferences.hour_cycle = hours
        Preferences.objects.filter(pk=preferences.pk).update(hour_cycle=hours)
