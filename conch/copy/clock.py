"""Times as people read them: in their zone and hour cycle, with the day when it isn't today.

Today "6:00 PM", tomorrow "tomorrow 9:00 AM", within six days "Thu 9:00 AM", else "Dec 3"; in 24-hour places "18:00".
The spaces inside are no-break spaces. A reset is shown rounded up to the minute.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

NB = "\u00a0"
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
UTC = ZoneInfo("UTC")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who reads a time: their zone and hour cycle ("h12" or "h23"; unset: h12), and what is now."""

    now: datetime
    zone: ZoneInfo = UTC
    hour_cycle: str = ""


def rounded_up(at: datetime) -> datetime:
    """The minute that begins at or next after that instant."""
    whole = at.replace(second=0, microsecond=0)
    return whole if whole == at else whole + timedelta(minutes=1)


def hour(at: datetime, viewer: Viewer) -> str:
    """The time of day alone: "6:00 PM" or "18:00"."""
    local = at.astimezone(viewer.zone)
    if viewer.hour_cycle == "h23":
        return f"{local:%H:%M}"
    return f"{local.hour % 12 or 12}:{local:%M}{NB}{'AM' if local.hour < 12 else 'PM'}"


def moment(at: datetime, viewer: Viewer) -> str:
    """A time as said in a sentence after "until" or "resets"."""
    at = rounded_up(at)
    local, today = at.astimezone(viewer.zone), viewer.now.astimezone(viewer.zone)
    days = (local.date() - today.date()).days
    if days == 0:
        return hour(at, viewer)
    if days == 1:
        return f"tomorrow{NB}{hour(at, viewer)}"
    if 1 < days <= 6:
        return f"{DAYS[local.weekday()]}{NB}{hour(at, viewer)}"
    day = f"{MONTHS[local.month - 1]}{NB}{local.day}"
    return day if local.year == today.year else f"{day},{NB}{local.year}"


def at_moment(at: datetime, viewer: Viewer) -> str:
    """The same after a verb that takes "at": "at 6:00 PM", "tomorrow at" is not said, "on Dec 3"."""
    said = moment(at, viewer)
    return f"at {said}" if said[0].isdigit() else (f"on {said}" if said.startswith(MONTHS) else said)


def full(at: datetime, viewer: Viewer) -> str:
    """The whole of it, for a title: "Friday, October 9, 2026, 6:00 PM (Europe/Berlin), in 2 hours 14 minutes"."""
    local = rounded_up(at).astimezone(viewer.zone)
    said = f"{local:%A, %B} {local.day}, {local.year}, {hour(local, viewer)} ({viewer.zone.key})"
    return f"{said}, in {span(at - viewer.now)}" if at > viewer.now else said


def span(length: timedelta) -> str:
    """A length in its two largest units: "2 hours 14 minutes", "3 days 1 hour", "1 minute"; never below a minute."""
    minutes = max(1, -(-int(length.total_seconds()) // 60))
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [_count(days, "day"), _count(hours, "hour"), _count(minutes, "minute")]
    return " ".join([part for part in parts if part][:2])


def _count(number: int, unit: str) -> str:
    if not number:
        return ""
    return f"{number}{NB}{unit}{'' if number == 1 else 's'}"
