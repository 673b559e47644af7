"""What Claude Code says about a plan's windows, as a Room. Pure; nothing is guessed (R6, R29).

Two sources, two scales (providers.md 0.3): the events of a turn count in fractions and unix seconds, `get_usage` counts
in percent and ISO times. A missing figure is None and never replaces a known one.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from conch.engines import resets
from conch.engines.base import EngineFault, Room, WindowReading
from conch.engines.windows import longest
from conch.engines.wire_text import percent

SAID_AGAIN = timedelta(seconds=75)  # a minute, and the time that its start takes
FRACTION, PERCENT = 100.0, 1.0
WEEK = 10080
# Window → its name, its minutes, the family of models that it covers ("": all).
WINDOWS = {
    "five_hour": ("5-hour", 300, ""),
    "seven_day": ("weekly", WEEK, ""),
    "seven_day_opus": ("Opus weekly", WEEK, "opus"),
    "seven_day_sonnet": ("Sonnet weekly", WEEK, "sonnet"),
}
# It covers the models that extra usage pays for, and the event doesn't say which: the one that was asked.
OVERAGE_INCLUDED = "seven_day_overage_included"


def event_room(info: Mapping[str, Any], model: str, now: datetime) -> Room | None:
    """The windows of a `rate_limit_event`; None where it names none. One that is being paid for is full (R32)."""
    windows = info.get("unifiedWindows")
    found = dict(_read(windows if isinstance(windows, Mapping) else {}, "resetsAt", FRACTION, now))
    named = str(info.get("rateLimitType") or "")
    binding = {"utilization": info.get("utilization"), "resetsAt": info.get("resetsAt")}
    if pays_extra(info) or info.get("status") == "rejected":
        known = found.get(named)
        used = max(
            100.0, (known.used_percent if known else None) or 0.0, percent(info.get("utilization"), scale=100) or 0
        )
        binding["utilization"] = used / FRACTION
    for name, reading in _read({named: binding}, "resetsAt", FRACTION, now, model=model):
        if reading.used_percent is not None or name not in found:
            found[name] = reading
    return Room(tuple(found.values())) if found else None


def usage_room(answer: Mapping[str, Any], now: datetime) -> Room | None:
    """The windows of a `get_usage` answer; None where this sign-in may not read them."""
    limits = answer.get("rate_limits")
    if not isinstance(limits, Mapping):
        return None
    found = dict(_read(limits, "resets_at", PERCENT, now))
    for scoped in limits.get("model_scoped") or ():
        if isinstance(scoped, Mapping) and scoped.get("display_name"):
            shown = str(scoped["display_name"])[:40]
            found[shown] = _reading((f"{shown} weekly", WEEK, shown.lower()), scoped, "resets_at", PERCENT, now)
    if not found:
        return None
    return Room(tuple(found.values()), complete=True, plan=str(answer.get("subscription_type") or ""))


def usage_as_read(
    answer: Mapping[str, Any], fetched_at: datetime | None, asked_at: datetime, now: datetime
) -> Room | None:
    """The windows of an answer that was asked for at that time; None where they are older: no new evidence (R29).

    For a minute the program says again what it has fetched, and for hours where fetching anew failed: then this raises
    EngineFault, a reading that failed.
    """
    room = usage_room(answer, now)
    age = asked_at - fetched_at if fetched_at else timedelta(0)
    if room is None or age > SAID_AGAIN:
        raise EngineFault("Claude Code couldn't read the plan's windows", accepted=False)
    return room if age <= timedelta(0) else None


def full_until(room: Room | None, model: str, now: datetime) -> tuple[bool, datetime | None]:
    """Whether a window that covers this model is full, and when all of those are over."""
    full = [
        window
        for window in (room.windows if room else ())
        if (window.used_percent or 0) >= 100
        and not (window.resets_at and window.resets_at <= now)
        and (not window.models or any(name in model.lower() for name in window.models))
    ]
    ends = [window.resets_at for window in full if window.resets_at]
    return bool(full), max(ends) if full and len(ends) == len(full) else None


def pays_extra(info: Mapping[str, Any]) -> bool:
    """Whether the answer is billed as extra usage, the plan being full (R32, CON-04)."""
    return info.get("isUsingOverage") is True or info.get("overageInUse") is True


def rejected_until(info: Mapping[str, Any], now: datetime) -> datetime | None:
    """The reset that a refusal names, cut to its window's length; None where it is past or not said."""
    _, minutes, _ = WINDOWS.get(str(info.get("rateLimitType") or ""), ("", WEEK, ""))
    return resets.bounded(resets.instant(info.get("resetsAt")), now, longest=longest(minutes))


def one_model(info: Mapping[str, Any]) -> bool:
    """Whether the refusal is of some models only; the plan's others may go on (R3)."""
    named = str(info.get("rateLimitType") or "")
    return named == OVERAGE_INCLUDED or bool(WINDOWS.get(named, ("", 0, ""))[2])


def _read(
    windows: Mapping[str, Any], resets_in: str, scale: float, now: datetime, *, model: str = ""
) -> Iterator[tuple[str, WindowReading]]:
    for name, window in windows.items():
        about = WINDOWS.get(name)
        if name == OVERAGE_INCLUDED and model:
            about = (f"{model} weekly", WEEK, model)
        if about is None or not isinstance(window, Mapping):
            continue
        reading = _reading(about, window, resets_in, scale, now)
        if reading.used_percent is not None or reading.resets_at is not None:
            yield name, reading


def _reading(
    about: tuple[str, int, str], window: Mapping[str, Any], resets_in: str, scale: float, now: datetime
) -> WindowReading:
    name, minutes, family = about
    at = resets.instant(window.get(resets_in))
    # A reset that has passed is kept: it says that the window is over, whatever it reads (R6).
    at = at if at is None or at <= now else resets.bounded(at, now, longest=longest(minutes))
    return WindowReading(
        name=name,
        used_percent=percent(window.get("utilization"), scale=scale),
        resets_at=at,
        models=(family,) if family else (),
        length_minutes=minutes,
    )
