"""Steps that write down what came of a running turn: its text as it grows, the end of an attempt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from conch import ledger, sql
from conch.accounts import abilities
from conch.accounts.room import keep_reading, record_answer, record_refusal
from conch.engines.base import EngineError, LimitReached, Rejected, Room, SignedOut, Usage
from conch.models import Account, Entry, Line, Turn
from conch.money import from_nano, plain
from conch.turns import statements, tokens
from conch.turns.events import Event

LEASE = timedelta(seconds=20)
SAME_READING = timedelta(seconds=15)
NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Growth:
    """What a running turn has to show since it was last written down."""

    turn_id: int
    run: int
    answer: str
    position: int
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt that has ended, or is about to: what the ledger and the attempt's row need to know."""

    turn_id: int
    run: int
    attempt_id: int
    account: str
    account_id: int | None
    model: str
    entry_id: int | None
    started_at: datetime
    usage: Usage | None = None
    rooms: tuple[Room, ...] = ()
    text: str = ""
    # Nothing that the provider could charge for has happened in its latest round.
    free: bool = False
    # Of the rounds before the latest: what they used, and cost in nanodollars (None: unknown). The text of the latest.
    earlier: Usage = NOTHING
    spent: int | None = 0
    latest: str | None = None
    # As the route saw the account: it had refused before, or its sign-in was not known to be well.
    passed_over: bool = True
    unwell: bool = True
    # What was sent, in tokens as counted here, and how many of the model's own each is taken for. `plain`: words alone,
    # whose count can be held against the provider's.
    counted: int = 0
    ratio: float = 1.0
    plain: bool = False

    @property
    def used(self) -> Usage:
        """What all of its rounds used together."""
        latest = self.usage or NOTHING
        return latest if self.earlier is NOTHING else plus(self.earlier, latest)

    def fits(self, said: int | None) -> int:
        """The tokens, as counted here, that fit where these didn't; `said`: the size that the provider named."""
        return int(abilities.fits(said, int(self.counted * self.ratio)) / self.ratio)


def flush(grown: Sequence[Growth], now: datetime) -> set[int]:
    """Write down all of these at once, and renew their leases; the turns of which a stop was asked elsewhere."""
    sql.run_many(
        "UPDATE conch_turn SET answer = %s, position = %s, lease_until = %s"
        " WHERE id = %s AND run = %s AND state = 'running'",
        [(g.answer, g.position, now + LEASE, g.turn_id, g.run) for g in grown],
    )
    statements.insert_events((event, g.turn_id, g.run) for g in grown for event in g.events)
    return statements.asked_to_stop([g.turn_id for g in grown])


def end_attempt(tried: Tried, state: str, now: datetime, error: EngineError | None = None) -> bool:
    """Settle what it cost, keep what it said of room, and close its row (R26, R29).

    True where somebody may be able to answer now who couldn't before: turns that wait ask their route again (R16).

    An attempt that surely cost nothing leaves no entry; one that may have been charged is booked by what was used,
    estimated where the provider didn't say.
    """
    usage = tried.usage or Usage()
    latest = _settle(tried, usage, state, now)
    cost = None if latest is None or tried.spent is None else tried.spent + latest
    refusal = error if isinstance(error, LimitReached) else None
    said: dict[str, Any] = {"said": error.said[:2000]} if error is not None else {}
    if refusal is not None and tried.account_id is not None:
        _last_read.pop(tried.account_id, None)
        kept = record_refusal(
            tried.account_id,
            refusal,
            now,
            turn_started=tried.started_at,
            model=refusal.model or tried.model,
            rooms=tried.rooms,
        )
        kind = "money" if refusal.scope == "money" else ("limit" if kept.kind == "blocked" else "refused")
        said |= {"refusal_kind": kind, "refusal_until": kept.until}
    columns = {
        "partial": "" if state == "done" else tried.text,
        "input_tokens": tried.used.input_tokens,
        "output_tokens": tried.used.output_tokens,
        "cost_nano": cost,
    }
    statements.end_attempt(tried.attempt_id, state, columns | said, now)
    _note_sign_in(tried, state, error)
    _learn(tried, usage, error, now)
    freed = tried.entry_id is not None
    if tried.account_id is not None:
        for room in tried.rooms:
            if _tells_more(tried.account_id, room, now):
                freed = keep_reading(tried.account_id, room, now, turn_started=tried.started_at) or freed
        if state == "done" and tried.passed_over:
            freed = record_answer(tried.account_id, tried.model, turn_started=tried.started_at) or freed
    return freed


_last_read: dict[int, tuple[Room, datetime]] = {}


def _tells_more(account_id: int, room: Room, now: datetime) -> bool:
    """Whether a reading says anything that the last one of this process, some seconds ago, didn't say already."""
    last = _last_read.get(account_id)
    if last is not None and last[0] == room and timedelta(0) <= now - last[1] < SAME_READING:
        return False
    _last_read[account_id] = (room, now)
    return True


def _note_sign_in(tried: Tried, state: str, error: EngineError | None) -> None:
    """A sign-in or key that isn't accepted is known as such from now on; one that answered is well again (R36)."""
    if tried.account_id is None or not (isinstance(error, SignedOut) or tried.unwell):
        return
    account = Account.objects.filter(pk=tried.account_id)
    if isinstance(error, SignedOut):
        account.filter(state=Account.State.OK, sealed_key="").update(state=Account.State.SIGNED_OUT)
        account.filter(state=Account.State.OK).exclude(sealed_key="").update(state=Account.State.WRONG_KEY)
    elif state == "done" and tried.unwell:
        account.exclude(state__in=[Account.State.OK, Account.State.DISABLED]).update(state=Account.State.OK)


def _learn(tried: Tried, usage: Usage, error: EngineError | None, now: datetime) -> None:
    """What this attempt showed of its model: what it can't take (R9), and how its provider counts (R26)."""
    if tried.account_id is None:
        return
    if isinstance(error, Rejected):
        abilities.learn_refusal(tried.account_id, tried.model, error, int(tried.counted * tried.ratio), now)
    elif tried.plain and usage.input_tokens:
        abilities.learn_count(tried.account_id, tried.model, tried.counted, usage.input_tokens, tried.ratio, now)


def _settle(tried: Tried, usage: Usage, state: str, now: datetime) -> int | None:
    """What the attempt cost, in nanodollars; None where it can't be known."""
    if tried.entry_id is None:
        return _extra(tried, tried.used, now)
    if tried.free and usage.output_tokens is None and usage.cost is None:
        ledger.release(tried.entry_id)
        return 0
    if state == "done":
        return ledger.settle(tried.entry_id, usage, now)
    said = tried.text if tried.latest is None else tried.latest
    return ledger.settle(tried.entry_id, at_least(usage, said, tried.ratio), now, estimated=True)


def plus(one: Usage, other: Usage) -> Usage:
    """Both together; what neither said stays unsaid."""

    def both(name: str) -> Any:
        said = [value for value in (getattr(one, name), getattr(other, name)) if value is not None]
        return sum(said) if said else None

    figures = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "cost")
    return Usage(**{name: both(name) for name in figures}, extra=one.extra or other.extra)


def at_least(usage: Usage, text: str, ratio: float = 1.0) -> Usage:
    """The usage of an attempt that didn't come to its end: no less output than the text that had arrived.

    `ratio`: how many of the model's own tokens one counted here is taken for.
    """
    arrived = int(tokens.count(text) * ratio) if text else 0
    return replace(usage, output_tokens=max(usage.output_tokens or 0, arrived))


def _extra(tried: Tried, usage: Usage, now: datetime) -> int | None:
    """Extra usage that a plan billed all the same is paid use: booked, and a line says so (R32)."""
    if not usage.extra or tried.account_id is None:
        return 0
    turn = Turn.objects.select_related("conversation__person__preferences").get(pk=tried.turn_id)
    account = Account.objects.get(pk=tried.account_id)
    person = turn.conversation.person
    entry = ledger.book_extra(
        person_id=person.pk,
        account=account.slug,
        engine=account.engine,
        model=tried.model,
        conversation_id=turn.conversation_id,
        turn_id=turn.pk,
        attempt_id=tried.attempt_id,
        usage=usage,
        month=ledger.month_of(person.preferences, turn.started_at or turn.created_at),
        now=now,
    )
    cost: int | None = Entry.objects.filter(pk=entry).values_list("cost_nano", flat=True).first()
    said = None if cost is None else plain(from_nano(cost))
    Line.objects.create(
        conversation_id=turn.conversation_id,
        turn_id=turn.pk,
        kind="limit.extra",
        data={"account": account.slug, "label": account.label, "cost": said},
        at=now,
    )
    return cost
