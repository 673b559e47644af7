"""Who reads a page: their zone and hour cycle, from their preferences."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from conch.copy.clock import UTC, Viewer
from conch.models import Preferences


def viewer_of(preferences: Preferences | None, now: datetime) -> Viewer:
    """The viewer that a person is; UTC and 12 hours where nothing is known of them."""
    if preferences is None:
        return Viewer(now=now)
    return Viewer(now=now, zone=zone_of(preferences.time_zone), hour_cycle=preferences.hour_cycle)


def zone_of(name: str) -> ZoneInfo:
    """The zone of that IANA name; UTC for none, and for one that this machine doesn't have."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        return UTC
