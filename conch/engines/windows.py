"""What providers say about windows and caps, as a Room. Pure: bodies and headers in, figures out, nothing guessed.

Windows are named by their length, never by the slot they come in: a plan with one window has the weekly one in
`primary` (providers.md 3.4). A missing or unreadable figure is None, never 0 (R6).
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from conch.engines import resets
from conch.engines.base import Room, WindowReading
from conch.engines.wire_text import money, number, percent

_METER = re.compile(r"x-([a-z0-9][a-z0-9_-]*?)-primary-used-percent")
_NAMES = {300: "5-hour", 1440: "daily", 10080: "weekly", 43200: "monthly", 44640: "monthly"}


def window_name(minutes: float | None) -> str:
    """A window's name by its length in minutes: "5-hour", "weekly"; "usage" where the length isn't said."""
    if not minutes or minutes < 1:
        return "usage"
    whole = round(minutes)
    if whole in _NAMES:
        return _NAMES[whole]
    if whole % 1440 == 0:
        return f"{whole // 1440}-day"
    return f"{whole // 60}-hour" if whole % 60 == 0 else f"{whole}-minute"


def longest(minutes: float | None) -> timedelta:
    """How far ahead a window of that length can reset, with a day to spare: the cut of product.md Times."""
    return resets.LONGEST_MONTH if minutes and minutes > 10080 else resets.LONGEST_PLAN


def codex_headers(headers: Mapping[str, str], now: datetime) -> Room | None:
    """The windows in a Codex answer's headers (lower-case names), of every meter; None where there are none."""
    meters = {"codex"} | {found[1] for name in headers if (found := _METER.fullmatch(name))}
    windows: list[WindowReading] = []
    for meter in sorted(meters):
        scope = "" if meter == "codex" else headers.get(f"x-{meter}-limit-name", meter)
        windows += _slots(
            {slot: _slot_of(headers, meter, slot) for slot in ("primary", "secondary")}, headers, now, scope
        )
    plan = headers.get("x-codex-plan-type", "")
    return (
        Room(tuple(windows), plan=plan, clock_off_seconds=resets.clock_off(headers, now)) if windows or plan else None
    )


def _slot_of(headers: Mapping[str, str], meter: str, slot: str) -> dict[str, Any]:
    said = {
        "used_percent": headers.get(f"x-{meter}-{slot}-used-percent"),
        "window_minutes": headers.get(f"x-{meter}-{slot}-window-minutes"),
        "reset_at": headers.get(f"x-{meter}-{slot}-reset-at"),
        "reset_after_seconds": headers.get(f"x-{meter}-{slot}-reset-after-seconds"),
    }
    # Servers without figures send zeros: a used share of 0 says something only together with a reset.
    if not number(said["used_percent"]) and not number(said["reset_at"]) and not number(said["reset_after_seconds"]):
        return {}
    return said


def codex_event(event: Mapping[str, Any], headers: Mapping[str, str], now: datetime) -> Room | None:
    """The windows in the stream's `codex.rate_limits` event; one without windows erases nothing (WIN-03)."""
    limits = event.get("rate_limits")
    if not isinstance(limits, Mapping):
        return None
    meter = str(event.get("limit_name") or event.get("metered_limit_name") or "")
    scope = "" if meter.lower() in {"codex", "premium"} else meter
    windows = tuple(_slots({slot: limits.get(slot) for slot in ("primary", "secondary")}, headers, now, scope))
    return Room(windows, plan=str(event.get("plan_type") or "")) if windows else None


def codex_usage(body: Any, headers: Mapping[str, str], now: datetime) -> Room:
    """The windows that `GET …/wham/usage` reads ahead of a turn, those of single models among them."""
    body = body if isinstance(body, Mapping) else {}
    limit = body.get("rate_limit")
    windows = list(_usage_windows(limit, headers, now, ""))
    for extra in body.get("additional_rate_limits") or ():
        if isinstance(extra, Mapping):
            scope = str(extra.get("limit_name") or extra.get("metered_feature") or "")
            windows += _usage_windows(extra.get("rate_limit"), headers, now, scope)
    return Room(
        tuple(windows),
        complete=isinstance(limit, Mapping) and bool(windows),
        allowed=_allowed(limit, body.get("rate_limit_reached_type")),
        plan=str(body.get("plan_type") or ""),
        clock_off_seconds=resets.clock_off(headers, now),
    )


def _usage_windows(limit: Any, headers: Mapping[str, str], now: datetime, scope: str) -> Iterator[WindowReading]:
    if not isinstance(limit, Mapping):
        return
    slots = {}
    for slot in ("primary_window", "secondary_window"):
        window = limit.get(slot)
        if isinstance(window, Mapping):
            length = number(window.get("limit_window_seconds"))
            slots[slot] = {**window, "window_minutes": length / 60 if length else None}
    yield from _slots(slots, headers, now, scope)


def _allowed(limit: Any, reached: Any) -> bool | None:
    if not isinstance(limit, Mapping):
        return False if reached else None
    if limit.get("allowed") is False or limit.get("limit_reached") is True or reached:
        return False
    return True if limit.get("allowed") is True else None


def _slots(slots: Mapping[str, Any], headers: Mapping[str, str], now: datetime, scope: str) -> Iterator[WindowReading]:
    for window in slots.values():
        if not isinstance(window, Mapping) or not window:
            continue
        minutes = number(window.get("window_minutes"))
        name = window_name(minutes)
        yield WindowReading(
            name=f"{scope} {name}" if scope else name,
            used_percent=percent(window.get("used_percent")),
            resets_at=_resets_at(window, headers, now, longest(minutes)),
            models=(scope.lower(),) if scope else (),
            length_minutes=round(minutes) if minutes and minutes >= 1 else None,
        )


def _resets_at(
    window: Mapping[str, Any], headers: Mapping[str, str], now: datetime, longest: timedelta
) -> datetime | None:
    """When it starts anew. One that has passed is kept: it says that the window is over, whatever it reads (R6)."""
    at = resets.reset(window.get("reset_at"), window.get("reset_after_seconds"), headers, now, longest=longest)
    said = resets.instant(window.get("reset_at"))
    if at is not None or said is None:
        return at
    ours = said + timedelta(seconds=resets.clock_off(headers, now) or 0)
    return ours if ours <= now else None


def full_until(room: Room | None, *, scope: str = "") -> datetime | None:
    """When the windows that read 100% are all over: the latest of their resets. `scope`: of that one meter."""
    of = [window for window in (room.windows if room else ()) if window.models == ((scope.lower(),) if scope else ())]
    full = [window.resets_at for window in of if (window.used_percent or 0) >= 100 and window.resets_at]
    return max(full, default=None)


def openrouter_key(body: Any, headers: Mapping[str, str], now: datetime) -> Room:
    """The cap of an OpenRouter key, in USD: what it is, what is left (may be below zero), when it starts anew."""
    data = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(data, Mapping) or "limit" not in data:
        return Room()
    cap = money(data["limit"])
    off = resets.clock_off(headers, now)
    if cap is None:
        return Room(complete=True, key_uncapped=data["limit"] is None, clock_off_seconds=off)
    return Room(
        complete=True,
        key_cap=cap,
        key_left=money(data.get("limit_remaining")),
        key_resets_at=resets.starts_anew(data.get("limit_reset"), headers, now),
        clock_off_seconds=off,
    )
