"""What an account has left, and when it has room again (R6, R7, R8, R29, R32, R33)."""

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from routing.facts import KEY, Budget, Refusal, Way, Window

LOW_FROM = 90.0
FULL_AT = 100.0
# Above this a figure is no percentage of anything (R6: it says nothing).
MOST_PERCENT = 100_000.0
MONTHS_BUDGET, KEY_LIMIT = "month's budget", "key limit"
# The codes that a room gives, in the order of R10; all of them end by themselves.
TIMED = frozenset({"blocked", "at_limit", "refused", "over_key_limit", "over_budget"})
REASONS = {
    "blocked": "blocked",
    "at_limit": "window",
    "refused": "refused",
    "over_key_limit": "key_limit",
    "over_budget": "budget",
}


class Room(NamedTuple):
    """What is left for the model that would answer.

    `state`: ok, low, none or unknown. `percent_left`: 1 to 100, 0 at the limit, None where it isn't known.
    `window` binds; `longer`: it isn't the shortest one. `resets_now`: every window read was reset since (R6).
    `codes`: why it can't answer, in the order of R10, () where it can. `free_at`: when all of that is over, None
    where that isn't known. `retry_at`, `refused_at`: of the refusal that holds. `held_only`: nothing but what running
    turns hold is in the way (R16). `no_credit`: it refused for want of credit.
    """

    state: str
    percent_left: int | None = None
    resets_at: datetime | None = None
    window: str | None = None
    longer: bool = False
    resets_now: bool = False
    codes: tuple[str, ...] = ()
    free_at: datetime | None = None
    retry_at: datetime | None = None
    refused_at: datetime | None = None
    held_only: bool = False
    no_credit: bool = False


UNKNOWN = Room("unknown")
UNBOUNDED = Room("ok")
RESETS_NOW = Room("ok", resets_now=True)
AT_LIMIT = ("at_limit",)


def percent(said: object) -> float | None:
    """A percentage as a provider said it, or None where it is missing, not a number or can't be one (R6).

    It is taken as it stands: 1.2 is 1.2%, 120 is past the limit.
    """
    if type(said) is float and 0 < said <= MOST_PERCENT:
        return said
    if isinstance(said, bool) or not isinstance(said, int | float | Decimal):
        return None
    value = float(said)
    if not 0 <= value <= MOST_PERCENT or math.copysign(1, value) < 0:
        return None
    return value


@lru_cache(maxsize=4096)
def covers(models: tuple[str, ...], model: str) -> bool:
    """Whether a window of these models counts for that one: no models: every model.

    A name with a digit is an id ("claude-opus-4-8", also dated or behind a provider's prefix), one without is a family
    ("opus"). A model without a name is taken as covered.
    """
    if not models or not model:
        return True
    asked = _plain(model)
    return any(_covers(_plain(name), asked) for name in models)


def _covers(name: str, asked: str) -> bool:
    if not any(sign.isdigit() for sign in name):
        return f"-{name}-" in f"-{asked}-"
    return re.fullmatch(rf"(.*-)?{re.escape(name)}(-\d{{6,}}|-latest)?", asked) is not None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def newest(windows: Iterable[Window]) -> tuple[Window, ...]:
    """The windows of all ways into one account, each as last read."""
    latest: dict[str, Window] = {}
    for window in windows:
        known = latest.get(window.name)
        if known is None or _later(window.read_at, known.read_at):
            latest[window.name] = window
    return tuple(latest.values())


def _later(one: datetime | None, other: datetime | None) -> bool:
    return other is None or (one is not None and one > other)


def cleared(refusal: Refusal, windows: Sequence[Window]) -> bool:
    """Whether what was read after a refusal shows that the provider reset early (R29).

    Every window must show room, and one read after the refusal less used, or a later reset, than before it.
    """
    before = {window.name: window for window in refusal.before}
    better = False
    for window in windows:
        used = percent(window.used_percent)
        if used is not None and used >= FULL_AT:
            return False
        if window.read_at is None or window.read_at <= refusal.at or used is None:
            continue
        better = better or _better(window, used, before.get(window.name))
    return better


def _better(window: Window, used: float, old: Window | None) -> bool:
    if old is None:
        return False
    was = percent(old.used_percent)
    if was is not None and used < was:
        return True
    # Two resets within a minute are one (Times).
    both = window.resets_at is not None and old.resets_at is not None
    return both and (window.resets_at - old.resets_at).total_seconds() > 60  # type: ignore[operator]


def room_of(
    way: Way,
    windows: Sequence[Window],
    refusals: Sequence[Refusal],
    budget: Budget,
    *,
    now: datetime,
    smallest: Decimal | None,
) -> Room:
    """The room of one way, with the windows and refusals of its whole choice (R6, R7, R8: twins count).

    `smallest`: what the least request would hold, of a key; None where it can't be priced.
    """
    room = _metered(way.model.id, windows, now) if windows else UNKNOWN
    if way.billing == KEY and not room.codes:
        room = _of_key(way, budget, now, smallest)
    return _refused(way, room, windows, refusals, now) if refusals else room


def _metered(model: str, windows: Sequence[Window], now: datetime) -> Room:
    full: list[Window] = []
    most, binding = -1.0, None
    passed = False
    shortest = None
    for window in windows:
        if window.covers and not covers(window.covers, model):
            continue
        length = window.length_minutes
        if length is not None and (shortest is None or length < shortest):
            shortest = length
        used = percent(window.used_percent)
        if used is None:
            continue
        if window.resets_at is not None and window.resets_at <= now:
            passed = True
        elif used >= FULL_AT:
            full.append(window)
        elif used > most or (used == most and _far(window.resets_at) > _far(binding.resets_at if binding else None)):
            most, binding = used, window
    if full:
        last = max(full, key=lambda window: _far(window.resets_at))
        return Room("none", 0, last.resets_at, last.name, _longer(last, shortest), False, AT_LIMIT, last.resets_at)
    if binding is not None:
        state = "low" if most >= LOW_FROM else "ok"
        longer = binding.length_minutes != shortest and _longer(binding, shortest)
        return Room(state, _left(most), binding.resets_at, binding.name, longer)
    return RESETS_NOW if passed else UNKNOWN


def _left(used: float) -> int:
    """Whole percent left: never 0 while there is room, never more than there is."""
    return int(FULL_AT - used) or 1


def _far(at: datetime | None) -> float:
    """To compare resets: one that isn't known may be the farthest."""
    return math.inf if at is None else at.timestamp()


def _longer(window: Window, shortest: int | None) -> bool:
    return shortest is not None and window.length_minutes is not None and window.length_minutes > shortest


def _of_key(way: Way, budget: Budget, now: datetime, smallest: Decimal | None) -> Room:
    """R7: past the budget, or past the key's own limits (Conch's and the provider's, the tighter one binds)."""
    bounds: list[_Bound] = []
    if way.own_limit is not None:
        bounds.append(("over_key_limit", KEY_LIMIT, way.spent, way.held, amount(way.own_limit), budget.ends_at))
    if way.cap_left is not None and not (way.cap_resets_at is not None and way.cap_resets_at <= now):
        left = amount(way.cap_left)
        cap = left if way.cap is None else max(amount(way.cap), left)
        bounds.append(("over_key_limit", KEY_LIMIT, cap - left, way.held, cap, way.cap_resets_at))
    if budget.amount is not None:
        sum_ = amount(budget.amount)
        bounds.append(("over_budget", MONTHS_BUDGET, budget.spent, budget.held, sum_, budget.ends_at))
    if not bounds:
        return UNBOUNDED
    passed: list[_Bound] = []
    most, binding = -1.0, bounds[0]
    for bound in bounds:
        _, _, spent, held, allowed, _ = bound
        taken = spent + held if held else spent
        if _passed(taken, allowed, smallest):
            passed.append(bound)
            continue
        used = float(taken) / float(allowed) * FULL_AT if allowed else FULL_AT
        if used > most:
            most, binding = used, bound
    if passed:
        return _over(passed, smallest)
    return Room("low" if most >= LOW_FROM else "ok", _left(most), binding[5], binding[1])


# One sum that a key stays within: the code where it doesn't, its name, what is spent, what running turns hold, how much
# is allowed, and until when.
_Bound = tuple[str, str, Decimal, Decimal, Decimal, datetime | None]


def _passed(taken: Decimal, allowed: Decimal, smallest: Decimal | None) -> bool:
    """Whether the smallest request doesn't fit; one that can't be priced fits while anything is left (R33)."""
    return taken >= allowed if smallest is None else taken + smallest > allowed


def _over(passed: list[_Bound], smallest: Decimal | None) -> Room:
    """R16: where only what running turns hold is in the way, no end is known and none is said."""
    codes = tuple(dict.fromkeys([bound[0] for bound in passed]))
    if not any(_passed(bound[2], bound[4], smallest) for bound in passed):
        return Room("none", 0, None, passed[0][1], codes=codes, held_only=True)
    return Room("none", 0, passed[0][5], passed[0][1], codes=codes, free_at=_latest(bound[5] for bound in passed))


def amount(usd: Decimal) -> Decimal:
    """A sum that may be spent: below zero, or not a number, is nothing."""
    return usd if usd.is_finite() and usd > 0 else Decimal(0)


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    """When the last of them is over: None where one isn't known."""
    latest = None
    for at in times:
        if at is None:
            return None
        latest = at if latest is None or at > latest else latest
    return latest


def holds(refusal: Refusal, way: Way, windows: Sequence[Window], now: datetime) -> bool:
    """Whether a refusal still counts for the model that would answer (R8, R29)."""
    if now >= refusal.retry_at:
        return False
    if way.attempt_allowed_at is not None and way.attempt_allowed_at > refusal.at:
        return False
    if refusal.model and not covers((refusal.model,), way.model.id):
        return False
    return not cleared(refusal, windows)


def _refused(way: Way, room: Room, windows: Sequence[Window], refusals: Sequence[Refusal], now: datetime) -> Room:
    standing = [refusal for refusal in refusals if holds(refusal, way, windows, now)]
    if not standing:
        return room
    blocked = any(refusal.kind == "blocked" for refusal in standing)
    refused = any(refusal.kind != "blocked" for refusal in standing)
    before = ("blocked",) if blocked else ()
    window = tuple(code for code in room.codes if code == "at_limit")
    money = tuple(code for code in room.codes if code != "at_limit")
    ends: list[datetime | None] = [refusal.until for refusal in standing]
    if room.codes:
        ends.append(room.free_at)
    free_at = _latest(ends)
    last = max(standing, key=lambda refusal: refusal.retry_at)
    room = room._replace(
        codes=before + window + (("refused",) if refused else ()) + money,
        free_at=free_at,
        retry_at=last.retry_at,
        refused_at=last.at,
        held_only=False,
        no_credit=all(refusal.reason == "money" for refusal in standing) and not room.codes,
    )
    if blocked:
        room = room._replace(state="none", percent_left=0, resets_at=free_at, resets_now=False)
    return room
