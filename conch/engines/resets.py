"""Every way in which a provider says when, as a UTC instant or as seconds. Pure; never an exception (product.md Times).

Nothing here knows the time: `now` is given. What can't be read, is not finite or lies in the past is None: "unknown",
for which the caller has its own default (R8: 15 minutes). Where a provider and our clock disagree by more than a
minute, by the response's own Date, relative times win (RST-18).
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from zoneinfo import ZoneInfo

CLOCKS_AGREE = timedelta(minutes=1)
LONGEST_PLAN = timedelta(days=8)  # also where no window is named
LONGEST_MONTH = timedelta(days=32)
LONGEST_BELIEVED = timedelta(days=366)
SHORTEST_PAUSE = 30.0  # for "Retry-After: 0" on a refusal that stays (providers.md 10)
PACIFIC = ZoneInfo("America/Los_Angeles")

_MILLISECONDS_FROM = 1e11  # seconds of the year 5138
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s))+", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)", re.ASCII)
_IN_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_REGAIN = re.compile(r"\bon (\d{4}-\d{2}-\d{2}) at (\d{2}:\d{2}) UTC", re.ASCII)
_AGAIN_IN = re.compile(r"\b(?:try again|retry) in ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)", re.ASCII | re.IGNORECASE)


def instant(value: Any) -> datetime | None:
    """A point in time: unix seconds or milliseconds (also as digits), ISO 8601 (without a zone: UTC), HTTP-date."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _from_epoch(float(value)) if abs(value) < 1e18 else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        return _from_epoch(float(text))
    except ValueError:
        return _from_iso(text) or http_date(text)


def _from_epoch(seconds: float) -> datetime | None:
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    if seconds > _MILLISECONDS_FROM:
        seconds /= 1000
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _from_iso(text: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def http_date(value: Any) -> datetime | None:
    """The instant of an HTTP-date header ("Fri, 09 Oct 2026 12:02:00 GMT")."""
    if not isinstance(value, str):
        return None
    try:
        read = parsedate_to_datetime(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def duration(value: Any) -> float | None:
    """The seconds of a duration with units: "6m0s", "120ms", "1h2m3s", "38.2s". A bare number is none."""
    if not isinstance(value, str) or not _DURATION.fullmatch(value.strip()):
        return None
    seconds = sum(float(amount) * _IN_SECONDS[unit] for amount, unit in _PART.findall(value))
    return seconds if math.isfinite(seconds) else None


def seconds(value: Any) -> float | None:
    """A count of seconds above zero, as a number or its digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) and read > 0 else None


def clock_off(headers: Mapping[str, str], now: datetime) -> int | None:
    """Our clock less the provider's, in seconds, where they disagree by more than a minute; else None."""
    theirs = http_date(headers.get("date"))
    if theirs is None or abs(now - theirs) <= CLOCKS_AGREE:
        return None
    return round((now - theirs).total_seconds())


def reset(
    absolute: Any, relative: Any, headers: Mapping[str, str], now: datetime, *, longest: timedelta = LONGEST_PLAN
) -> datetime | None:
    """When it is over by our clock, of the absolute and the relative field of one answer; None where neither says.

    `longest`: the window that it belongs to. One further ahead is cut to that; one over a year ahead is none.
    """
    at, wait, off = instant(absolute), seconds(relative), clock_off(headers, now)
    if off is None:
        if at is not None and at > now:
            return bounded(at, now, longest=longest)
        return ahead(wait, now, longest=longest)
    if wait is None and at is not None:
        wait = (at - now).total_seconds() + off
    return ahead(wait, now, longest=longest)


def ahead(wait: float | None, now: datetime, *, longest: timedelta = LONGEST_PLAN) -> datetime | None:
    """So many seconds from now, bounded."""
    if wait is None or not 0 < wait <= LONGEST_BELIEVED.total_seconds():
        return None
    return bounded(now + timedelta(seconds=wait), now, longest=longest)


def bounded(at: datetime | None, now: datetime, *, longest: timedelta = LONGEST_PLAN) -> datetime | None:
    """That instant if it is one to wait for: not past, not over a year ahead, cut to the window's length (RST-23)."""
    if at is None or at <= now or at - now > LONGEST_BELIEVED:
        return None
    return min(at, now + longest)


def pause(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds that Retry-After asks for: `retry-after-ms`, else seconds, else an HTTP-date; None if unreadable.

    Zero, negative, "soon", NaN and a date in the past are all no answer (RST-05).
    """
    milliseconds = seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    wait = seconds(asked)
    if wait is not None:
        return wait
    at = http_date(asked)
    if at is None:
        return None
    wait = (at - now).total_seconds() + (clock_off(headers, now) or 0)
    return wait if wait > 0 else None


def asks_for_none(headers: Mapping[str, str]) -> bool:
    """Whether Retry-After is a plain zero, which some providers send with a refusal that stays."""
    try:
        return float(headers.get("retry-after", "")) == 0
    except ValueError:
        return False


def regained(message: str) -> datetime | None:
    """The day that Anthropic's message names: "You will regain access on 2026-11-01 at 00:00 UTC."."""
    found = _REGAIN.search(message)
    return _from_iso(f"{found[1]}T{found[2]}") if found else None


def again_in(message: str) -> float | None:
    """The seconds of "try again in 11.054s" or "retry in 1h2m3s"; above zero."""
    found = _AGAIN_IN.search(message)
    return (duration(found[1]) or None) if found else None


def next_reset(kind: Any, now: datetime) -> datetime | None:
    """When an OpenRouter key's cap starts anew: "daily", "weekly" (Monday) or "monthly", at 00:00 UTC; else never."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if kind == "daily":
        return day + timedelta(days=1)
    if kind == "weekly":
        return day + timedelta(days=7 - day.weekday())
    if kind == "monthly":
        return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    return None


def starts_anew(kind: Any, headers: Mapping[str, str], now: datetime) -> datetime | None:
    """The same by our clock, where the provider's own day is told from its Date."""
    off = timedelta(seconds=clock_off(headers, now) or 0)
    at = next_reset(kind, now - off)
    return at + off if at else None


def next_pacific_midnight(now: datetime) -> datetime:
    """When Gemini's day starts anew (providers.md 7)."""
    day = now.astimezone(PACIFIC).date() + timedelta(days=1)
    return datetime(day.year, day.month, day.day, tzinfo=PACIFIC).astimezone(UTC)
