"""Who looks at a page, and when: the zone, the hour cycle and the instant of a request."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.http import HttpRequest
from django.utils import timezone

from conch.copy.clock import UTC, Viewer
from conch.models import Person, Preferences


@dataclass(frozen=True, slots=True)
class Visit:
    """The signed-in person, their preferences, and how they read times."""

    person: Person
    preferences: Preferences
    viewer: Viewer


def visit(request: HttpRequest) -> Visit:
    """What a view needs to know of its request; one query."""
    person = whose(request)
    preferences = Preferences.objects.get_or_create(person=person)[0]
    viewer = Viewer(now=timezone.now(), zone=zone_of(preferences), hour_cycle=preferences.hour_cycle)
    return Visit(person, preferences, viewer)


def whose(request: HttpRequest) -> Person:
    """The signed-in person; the middleware lets nobody else get this far."""
    assert request.user.is_authenticated
    return request.user


def zone_of(preferences: Preferences) -> ZoneInfo:
    """The person's zone; unset, or one that this machine no longer knows: UTC."""
    try:
        return ZoneInfo(preferences.time_zone) if preferences.time_zone else UTC
    except (ZoneInfoNotFoundError, ValueError):
        return UTC
