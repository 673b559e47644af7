"""Holding the most that a request can cost, and settling what it did cost (R26–R28, R32, R33).

Every figure of a month is kept twice, by the same steps: the person's total (the row of account "") and the account's.
A hold is one conditional statement for each: whether it fits is decided by the database while it has the row to
itself, so turns in any number of processes can't together pass a budget, on SQLite (one writer) or PostgreSQL (the row
is locked and the condition is looked at again); a row that isn't there yet begins with it. The person's row always
comes first, so no two holds wait for each other.

All of it runs inside the transaction of a step (`conch.db`): what isn't committed was never held.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection
from django.db.transaction import TransactionManagementError

from conch.engines.base import Usage
from conch.ledger import prices, rows
from conch.models import Entry
from conch.money import to_nano

# A larger cost for one request is no cost but a mistake of the provider's.
ABSURD_USD = Decimal(1_000_000)
BIGGEST = 2**63 - 1


class NoRoom(Exception):
    """The hold would pass a limit. `reason`: "budget" (the month's) or "key_limit" (the account's own)."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Priced:
    cost_nano: int | None
    by: Entry.PricedBy
    estimated: bool


def hold(
    *,
    person_id: int,
    account: str,
    engine: str,
    model: str,
    conversation_id: int | None,
    turn_id: int | None,
    attempt_id: int | None,
    consent: str,
    most: Decimal | None,
    month: str,
    now: datetime,
    budget_nano: int | None,
    key_limit_nano: int | None,
    input_tokens: int | None = None,
) -> int:
    """Hold the most that a request can cost, before it is sent; return the entry's id. Raises NoRoom.

    `account` is its slug. `most` is USD (`prices.most`); None: it can't be priced, so nothing bounds it and nothing is
    held, but the entry is there (R33). `month` is that of the turn's start (`month_of`). `budget_nano` and
    `key_limit_nano` (`key_limit`) bound what the month has spent and holds, this hold included; None: no bound. What
    costs nothing always fits. `input_tokens`: what the prompt was counted as, for settling an attempt that nobody
    could finish (`orphans`).
    """
    _inside_a_step()
    amount = None if most is None else to_nano(most, up=True)
    if amount:
        _take(person_id, month, account, amount, budget_nano=budget_nano, key_limit_nano=key_limit_nano)
        rows.add_to_chat(conversation_id, held=amount)
    places = (conversation_id, turn_id, attempt_id)
    return rows.insert_held(person_id, account, engine, model, places, month, amount, input_tokens, consent, now)


def settle(entry_id: int, usage: Usage, now: datetime, *, estimated: bool = False) -> int | None:
    """Replace a hold by what the request did cost; return that in nanodollars, None where it can't be known.

    The provider's own cost counts where it is above zero, or zero for a model whose list price is zero too; else the
    list price of the tokens; else the reply is unpriced (R26, R33). Tokens that the provider didn't say are taken from
    the hold, and the entry is marked as estimated. A second settlement changes nothing and returns the first's cost.
    """
    _inside_a_step()
    entry = rows.entry(entry_id)
    if entry is None:
        return None
    if entry.state != Entry.State.HELD:
        return entry.cost_nano
    priced = _priced(entry, usage, estimated=estimated)
    told = entry.input_tokens if usage.input_tokens is None else usage.input_tokens
    tokens = (told, usage.cached_input_tokens, usage.output_tokens)
    if not rows.settle(entry_id, tokens, priced.cost_nano, priced.by.value, priced.estimated, at=now):
        # Another process was first.
        entry = rows.entry(entry_id)
        return entry.cost_nano if entry is not None else None
    _book(entry, priced.cost_nano, held=-(entry.hold_nano or 0))
    if priced.cost_nano:
        rows.lower_left(entry.person_id, entry.account, priced.cost_nano, now)
    return priced.cost_nano


def release(entry_id: int) -> bool:
    """Undo the hold of an attempt that surely cost nothing: no entry stays (R26). False where there is no such hold."""
    _inside_a_step()
    entry = rows.entry(entry_id)
    if entry is None or not rows.release(entry_id):
        return False
    if entry.hold_nano:
        rows.add(entry.person_id, entry.month, entry.account, held=-entry.hold_nano, spent=0, unpriced=0)
        rows.add_to_chat(entry.conversation, held=-entry.hold_nano)
    return True


def book_extra(
    *,
    person_id: int,
    account: str,
    engine: str,
    model: str,
    conversation_id: int | None,
    turn_id: int | None,
    attempt_id: int | None,
    usage: Usage,
    month: str,
    now: datetime,
) -> int:
    """Book what a plan billed per use all the same (R32), once an attempt; return the entry's id.

    `usage.cost` is what the provider says it came to; without it the reply is unpriced. No consent is recorded: nobody
    chose it.
    """
    _inside_a_step()
    if attempt_id is not None:
        booked = Entry.objects.filter(turn=turn_id, attempt=attempt_id, extra=True).values_list("pk", flat=True).first()
        if booked is not None:
            return booked
    cost = _said(usage)
    entry = Entry.objects.create(
        person_id=person_id,
        account=account,
        engine=engine,
        model=model,
        conversation=conversation_id,
        turn=turn_id,
        attempt=attempt_id,
        month=month,
        state=Entry.State.SETTLED,
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
        cost_nano=to_nano(cost) if cost else None,
        priced_by=Entry.PricedBy.PROVIDER if cost else Entry.PricedBy.NONE,
        extra=True,
        at=now,
        settled_at=now,
    )
    _book(entry, entry.cost_nano, held=0)
    return int(entry.pk)


def key_limit(
    *,
    own_limit_nano: int | None,
    key_cap_nano: int | None,
    key_left_nano: int | None,
    key_resets_at: datetime | None,
    spent_nano: int,
    now: datetime,
) -> int | None:
    """The tighter of an account's two limits, as a bound on what its month has spent and holds; None: no limit.

    `own_limit_nano` is the one set in Conch (a calendar month); the others are the provider's cap of the key as read,
    less what was settled since (`settle` keeps that up), so the sum of `spent_nano` and what is left stays true until
    the next reading. A cap whose reset has passed counts as whole.
    """
    bounds = [own_limit_nano]
    if key_left_nano is not None:
        anew = key_resets_at is not None and key_resets_at <= now and key_cap_nano is not None
        bounds.append(spent_nano + (key_cap_nano if anew and key_cap_nano is not None else key_left_nano))
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known else None


def _inside_a_step() -> None:
    if not connection.in_atomic_block:
        raise TransactionManagementError("the ledger is changed inside a step (conch.db.step)")


def _take(
    person_id: int, month: str, account: str, amount: int, *, budget_nano: int | None, key_limit_nano: int | None
) -> None:
    if not rows.add_held(person_id, month, "", amount, _bound(budget_nano)):
        raise NoRoom("budget")
    if not rows.add_held(person_id, month, account, amount, _bound(key_limit_nano)):
        rows.give_back(person_id, month, "", amount)
        raise NoRoom("key_limit")


def _bound(limit: int | None) -> int | None:
    """A limit as the database can compare it."""
    return limit if limit is None else max(-BIGGEST, min(limit, BIGGEST))


def _priced(entry: rows.Held, usage: Usage, *, estimated: bool) -> _Priced:
    """What an attempt cost, by whose word, and whether that is an estimate."""
    said = _said(usage)
    if said:
        return _Priced(to_nano(said), Entry.PricedBy.PROVIDER, estimated)
    tokens_in = entry.input_tokens if usage.input_tokens is None else usage.input_tokens
    if tokens_in is None and usage.output_tokens is None and entry.hold_nano is not None:
        # Nothing is known but that it may have been paid for: the most that it can have been.
        return _Priced(entry.hold_nano, Entry.PricedBy.LIST, estimated=True)
    listed = prices.price_of(
        entry.engine,
        entry.model,
        tokens_in or 0,
        usage.cached_input_tokens or 0,
        usage.output_tokens or 0,
        rows.known_models(entry.person_id, entry.account),
        cache_write_tokens=usage.cache_write_tokens or 0,
        at=entry.at,
    )
    unsaid = usage.input_tokens is None or usage.output_tokens is None
    if listed is None:
        return _Priced(None, Entry.PricedBy.NONE, estimated or unsaid)
    if said is not None and not listed:
        return _Priced(0, Entry.PricedBy.PROVIDER, estimated)
    return _Priced(to_nano(listed), Entry.PricedBy.LIST, estimated or unsaid)


def _said(usage: Usage) -> Decimal | None:
    """The provider's own cost, if it can be one."""
    cost = usage.cost
    return cost if cost is not None and cost.is_finite() and 0 <= cost < ABSURD_USD else None


def _book(entry: rows.Held | Entry, cost_nano: int | None, *, held: int) -> None:
    spent, unpriced = cost_nano or 0, int(cost_nano is None)
    if held or spent or unpriced:
        rows.add(entry.person_id, entry.month, entry.account, held=held, spent=spent, unpriced=unpriced)
        rows.add_to_chat(entry.conversation, held=held, spent=spent)
