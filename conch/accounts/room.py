"""Keeping what is learned of an account's room: readings of its windows, and refusals (R6–R8, R29, Times).

Every change is of single columns or of rows of their own, so a reading never undoes what somebody else just wrote. All
of it runs inside a step (`conch.db`). The rules themselves are `merged`, `fate` and, in `routing.room`, `cleared`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from conch.accounts import room_rows
from conch.accounts.samples import keep_samples
from conch.engines.base import Billing, LimitReached, Room, WindowReading
from conch.engines.registry import UnknownEngine, engine
from conch.engines.resets import LONGEST_BELIEVED, LONGEST_MONTH, LONGEST_PLAN, bounded
from conch.engines.windows import longest
from conch.models import Account, Refusal, Window
from conch.money import to_nano
from routing import facts
from routing.room import FULL_AT, cleared, covers, percent

# R8: how long an account is passed over whose refusal named no time. Never shown as a reset.
A_WHILE = timedelta(minutes=15)
# Times: two resets within a minute are one.
SAME = timedelta(minutes=1)
# R29: a reading that fails is tried again after this, twice as long each time, up to an hour.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)
# A provider's sum beyond this is none.
MOST_USD = Decimal(10**9)


@dataclass(frozen=True, slots=True)
class Fate:
    """What a refusal comes to: its kind, the provider's reset (None: none), and when the account is asked again."""

    kind: Refusal.Kind
    until: datetime | None
    retry_at: datetime


# The rules, pure.


def merged(known: facts.Window | None, said: WindowReading, now: datetime) -> facts.Window | None:
    """A window as known after a reading; None: the reading changes nothing (R29, WIN-03).

    What a reading leaves out is kept, unless the window's reset has passed since: then the old figures are over (R6).
    A reading that is itself of a window that is over says nothing about one that isn't.
    """
    used, resets_at = percent(said.used_percent), _reset_of(said, now)
    if used is None and resets_at is None:
        return None
    if known is None:
        return facts.Window(said.name, used, resets_at, said.models, said.length_minutes, now)
    if _over(known, now):
        known = replace(known, used_percent=None, resets_at=None)
    elif resets_at is not None and resets_at <= now:
        return None
    return facts.Window(
        said.name,
        known.used_percent if used is None else used,
        known.resets_at if resets_at is None else resets_at,
        said.models or known.covers,
        said.length_minutes or known.length_minutes,
        now,
    )


def fate(
    *, plan: bool, metered: bool, scope: str, until: datetime | None, windows: Iterable[facts.Window], now: datetime
) -> Fate:
    """What a refusal becomes (R8, Words; Times).

    `windows`: those that cover the model, as read before it and as it told them itself. A metered plan whose windows
    are full, or weren't known, is blocked until its reset; a plan whose meter showed room, and whatever isn't metered,
    is refused: until the time it gave, else for a quarter of an hour. Want of credit has no reset of its own.
    """
    until = bounded(until, now, longest=LONGEST_PLAN if plan else LONGEST_MONTH)
    known = [window for window in windows if percent(window.used_percent) is not None and not _over(window, now)]
    full = [window for window in known if (percent(window.used_percent) or 0) >= FULL_AT]
    if not (plan and metered and scope == "limit") or (known and not full):
        return Fate(Refusal.Kind.REFUSED, until, until or now + A_WHILE)
    if until is None and all(window.resets_at is not None for window in full):
        until = max((window.resets_at for window in full if window.resets_at is not None), default=None)
    return Fate(Refusal.Kind.BLOCKED, until, until or now + A_WHILE)


def next_pause(failed_at: datetime | None, until: datetime | None) -> timedelta:
    """How long to leave an account's meter alone after a failure, by how long it was left alone after the last."""
    if failed_at is None or until is None or until <= failed_at:
        return FIRST_PAUSE
    return min(2 * (until - failed_at), LONGEST_PAUSE)


def _reset_of(said: WindowReading, now: datetime) -> datetime | None:
    """The reset as said, one too far ahead cut to the window's length; one in the past stays: it says it is over."""
    if said.resets_at is None or said.resets_at - now > LONGEST_BELIEVED:
        return None
    return min(said.resets_at, now + longest(said.length_minutes))


def _over(window: facts.Window, now: datetime) -> bool:
    return window.resets_at is not None and window.resets_at <= now


def _full(window: facts.Window, now: datetime) -> bool:
    return (percent(window.used_percent) or 0) >= FULL_AT and not _over(window, now)


# What is kept.


def keep_reading(account_id: int, room: Room, now: datetime, turn_started: datetime | None = None) -> bool:
    """Keep what was read of an account; True when somebody may be able to answer who couldn't before (R16, R29).

    `turn_started`: when the turn began that the reading came with. Against a refusal that came after that it is no
    evidence, since it may be the older of the two.
    """
    account = Account.objects.filter(pk=account_id).only("plan", "key_left_nano", "key_cap_nano").first()
    if account is None:
        return False
    mend_clock(account_id, now)
    refusals = list(Refusal.objects.filter(account=account_id, retry_at__gt=now))
    read_at = now
    if turn_started is not None and any(refusal.at >= turn_started for refusal in refusals):
        read_at = turn_started
    before = room_rows.windows(account_id)
    after = _merge(account_id, before, room, now, read_at)
    full = {name for name, window in after.items() if _full(window, now)}
    gained = any(_full(window, now) and name not in full for name, window in before.items())
    gained |= _keep_facts(account, room, now)
    for refusal in refusals:
        gained |= _clear(refusal, room, list(after.values()))
    if room.allowed is False:
        _block_by_meter(account_id, list(after.values()), now)
    return gained


def record_refusal(
    account_id: int,
    error: LimitReached,
    now: datetime,
    *,
    turn_started: datetime,
    model: str,
    rooms: Sequence[Room] = (),
) -> Refusal:
    """Keep that an account said no for a limit, and what that comes to (R8, Times); return what holds now.

    `model` is the one that was asked; a refusal that names a model counts for that one alone. `rooms`: what the refused
    attempt itself told of windows before it was refused; it is kept here, with what the refusal told. Of an attempt
    that started before the account was passed over it changes nothing: it only says again what is known (R29).
    """
    mend_clock(account_id, now)
    standing = room_rows.standing(account_id, error.model)
    if standing is not None and standing.retry_at > now and turn_started < standing.at:
        return standing
    engine_id = room_rows.engine_of(account_id)
    before = room_rows.windows(account_id)
    told = [window for room in (*rooms, error.room) if room is not None for window in room.windows]
    kept = _merge(account_id, before, Room(tuple(told)), now, now)
    asked = error.model or model
    outcome = fate(
        plan=_is_plan(engine_id),
        metered=_is_metered(engine_id),
        scope=error.scope,
        until=_until(error, standing, now),
        windows=[window for window in kept.values() if covers(window.covers, asked)],
        now=now,
    )
    if standing is not None and _same(standing.until, outcome.until):
        outcome = replace(outcome, until=standing.until, retry_at=standing.until or outcome.retry_at)
    # What the refusal itself told stands in where no reading came before it (R29).
    shown = {name: window for name, window in (kept | before).items() if not _over(window, now)}
    refusal = Refusal(
        account_id=account_id,
        model=error.model,
        kind=outcome.kind,
        at=now,
        until=outcome.until,
        retry_at=outcome.retry_at,
        reason=error.scope,
        before=[_as_json(window) for window in shown.values()],
    )
    room_rows.keep(refusal)
    room_rows.tried(account_id, error.clock_off_seconds)
    return refusal


def record_answer(account_id: int, model: str, *, turn_started: datetime) -> bool:
    """An answer that began after a refusal ends it; True when there was one. The attempt of *Check now* is used up."""
    ended = Refusal.objects.filter(account=account_id, model__in=["", model], at__lt=turn_started).delete()[0]
    if ended:
        Account.objects.filter(pk=account_id).update(attempt_allowed_at=None)
    return bool(ended)


def record_failed_reading(account_id: int, now: datetime, *, retry_after: float | None = None) -> None:
    """A reading failed (also with 429): the last figures stay, and the meter is left alone for a while (R29).

    `retry_after`: the seconds that the provider asks for; less than the pause that is due counts as that.
    """
    account = Account.objects.filter(pk=account_id).only("read_failed_at", "read_backoff_until").first()
    if account is None:
        return
    pause = next_pause(account.read_failed_at, account.read_backoff_until)
    if retry_after is not None and 0 < retry_after < LONGEST_PLAN.total_seconds():
        pause = max(pause, timedelta(seconds=retry_after))
    Account.objects.filter(pk=account_id).update(read_failed_at=now, read_backoff_until=now + pause)


def allow_attempt(account_id: int, now: datetime) -> None:
    """*Check now*: whatever it refused so far, it may be asked once; a refusal or an answer uses that up (R29)."""
    Account.objects.filter(pk=account_id).update(attempt_allowed_at=now, read_backoff_until=None)


def mend_clock(account_id: int, now: datetime) -> int:
    """Our clock was set back: no wait gets longer by that than it was at first (Times); return how many were mended.

    A refusal from the future is moved to now, with the length that it had.
    """
    mended = 0
    for pk, at, retry_at, until in room_rows.refusals_from(account_id, now + SAME):
        set_back = at - now
        mended += Refusal.objects.filter(pk=pk, at=at).update(
            at=now, retry_at=retry_at - set_back, until=None if until is None else until - set_back
        )
    return mended


def _is_plan(engine_id: str) -> bool:
    try:
        return engine(engine_id).billing == Billing.PLAN
    except UnknownEngine:
        return False


def _is_metered(engine_id: str) -> bool:
    try:
        return engine(engine_id).meters
    except UnknownEngine:
        return False


def _until(error: LimitReached, standing: Refusal | None, now: datetime) -> datetime | None:
    """The time that a refusal gave; the same again as one that has just passed is none (providers.md 10)."""
    if standing is not None and standing.until is not None and standing.until <= now:
        return None if _same(standing.until, error.until) else error.until
    return error.until


def _same(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= SAME


def _merge(
    account_id: int, before: Mapping[str, facts.Window], room: Room, now: datetime, read_at: datetime
) -> dict[str, facts.Window]:
    """Keep a reading's windows beside the known ones; return all that are known then."""
    after = dict(before)
    changed: list[facts.Window] = []
    for said in room.windows:
        name = said.name[:60]
        window = merged(after.get(name), said, now)
        if window is not None:
            after[name] = replace(window, name=name, read_at=read_at)
            changed.append(after[name])
    _write({window.name: window for window in changed}, account_id, read_at)
    names = {said.name[:60] for said in room.windows}
    # A window that a whole reading no longer has is no limit any more; an empty one is no reading (WIN-03).
    if room.complete and names and before.keys() - names:
        Window.objects.filter(account=account_id).exclude(name__in=names).delete()
        after = {name: window for name, window in after.items() if name in names}
    return after


def _write(windows: Mapping[str, facts.Window], account_id: int, read_at: datetime) -> None:
    rows = [
        Window(
            account_id=account_id,
            name=window.name,
            used_percent=window.used_percent,
            resets_at=window.resets_at,
            covers=list(window.covers),
            length_minutes=window.length_minutes,
            read_at=read_at,
        )
        for window in windows.values()
    ]
    if rows:
        Window.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["account", "name"],
            update_fields=["used_percent", "resets_at", "covers", "length_minutes", "read_at"],
        )
        keep_samples(rows)


def _keep_facts(account: Account, room: Room, now: datetime) -> bool:
    """Keep what a reading says beside windows; True where a key has more left, or another plan begins."""
    changes: dict[str, Any] = {"read_at": now, "read_failed_at": None, "read_backoff_until": None}
    gained = False
    if room.clock_off_seconds is not None:
        changes["clock_off_seconds"] = room.clock_off_seconds
    if room.key_uncapped:
        changes |= {"key_cap_nano": None, "key_left_nano": None, "key_resets_at": None}
        gained = account.key_left_nano is not None
    left = _nano(room.key_left)
    if left is not None:
        changes |= {"key_left_nano": left, "key_resets_at": bounded(room.key_resets_at, now, longest=LONGEST_MONTH)}
        gained = account.key_left_nano is None or left > account.key_left_nano
    cap = _nano(room.key_cap)
    if cap is not None:
        changes["key_cap_nano"] = cap
    if room.plan and room.plan != account.plan:
        changes["plan"] = room.plan[:60]
        gained |= bool(Refusal.objects.filter(account=account.pk, reason="not_entitled").delete()[0])
    Account.objects.filter(pk=account.pk).update(**changes)
    return gained


def _nano(usd: Decimal | None) -> int | None:
    return None if usd is None or not usd.is_finite() or abs(usd) > MOST_USD else to_nano(usd)


def _clear(refusal: Refusal, room: Room, windows: Sequence[facts.Window]) -> bool:
    """Forget a refusal that a reading disproves (R29); True where it did.

    One without any reading before it is disproved by the provider's own word that it answers again.
    """
    shown = cleared(_as_facts(refusal), windows)
    full = any((percent(window.used_percent) or 0) >= FULL_AT for window in windows)
    later = all(window.read_at is not None and window.read_at > refusal.at for window in windows)
    if shown or (not refusal.before and room.allowed is True and later and not full):
        return bool(Refusal.objects.filter(pk=refusal.pk, at=refusal.at).delete()[0])
    return False


def _block_by_meter(account_id: int, windows: Sequence[facts.Window], now: datetime) -> None:
    """The meter itself says that the account wouldn't answer: blocked until its full windows are over."""
    if Refusal.objects.filter(account=account_id, model="", retry_at__gt=now).exists():
        return
    full = [window for window in windows if _full(window, now)]
    blocked = fate(plan=True, metered=True, scope="limit", until=None, windows=full, now=now)
    Refusal.objects.update_or_create(
        account_id=account_id,
        model="",
        defaults={
            "kind": Refusal.Kind.BLOCKED,
            "at": now,
            "until": blocked.until,
            "retry_at": blocked.retry_at,
            "reason": "limit",
            "before": [],
        },
    )


def _as_json(window: facts.Window) -> dict[str, Any]:
    resets_at = window.resets_at
    return {
        "name": window.name,
        "used_percent": window.used_percent,
        "resets_at": None if resets_at is None else resets_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }


def _as_facts(refusal: Refusal) -> facts.Refusal:
    before = tuple(
        facts.Window(
            str(seen.get("name", "")),
            percent(seen.get("used_percent")),
            datetime.fromisoformat(seen["resets_at"]) if seen.get("resets_at") else None,
        )
        for seen in refusal.before
    )
    return facts.Refusal(refusal.kind, refusal.at, refusal.retry_at, refusal.until, refusal.model, before=before)
