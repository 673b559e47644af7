"""What a month cost, read from the ledger: by day, by account, and each turn that was carried on."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate

from conch.models import Account, Entry, Line, MonthTotal, Person
from conch.money import from_nano


@dataclass(frozen=True, slots=True)
class DaySpend:
    """What one account cost on one day of the person's zone; `unpriced` replies are in no sum (R33)."""

    day: date
    account: str
    cost: Decimal
    replies: int
    unpriced: int


@dataclass(frozen=True, slots=True)
class MonthSpend:
    """A month's running totals: what is spent, what running turns hold, replies without a price."""

    spent: Decimal
    held: Decimal
    unpriced: int
    accounts: tuple[tuple[str, Decimal, int], ...]


@dataclass(frozen=True, slots=True)
class CarriedOn:
    """A turn that another account answered: what that cost (None: nothing said), and the waiting it saved."""

    at: datetime
    conversation: int
    from_label: str
    to_label: str
    billing: str
    cost: Decimal | None
    saved: timedelta | None


def by_day(person: Person, month: str, zone: ZoneInfo) -> list[DaySpend]:
    """Settled entries of that month, summed by day and account, oldest first. One query."""
    rows = (
        Entry.objects.filter(person=person, month=month, state=Entry.State.SETTLED)
        .annotate(day=TruncDate("at", tzinfo=zone))
        .values_list("day", "account")
        .annotate(
            cost=Sum("cost_nano", default=0),
            replies=Count("turn", distinct=True),
            unpriced=Count("id", filter=Q(cost_nano=None)),
        )
        .order_by("day", "account")
    )
    return [
        DaySpend(day, account, from_nano(cost), replies, unpriced) for day, account, cost, replies, unpriced in rows
    ]


def of_month(person: Person, month: str) -> MonthSpend:
    """The running totals that the budget is held against (R28). One query."""
    whole, accounts = MonthTotal(), []
    for total in MonthTotal.objects.filter(person=person, month=month).order_by("-spent_nano", "account"):
        if total.account:
            accounts.append((total.account, from_nano(total.spent_nano), total.unpriced))
        else:
            whole = total
    return MonthSpend(from_nano(whole.spent_nano), from_nano(whole.held_nano), whole.unpriced, tuple(accounts))


def months(person: Person, present: str) -> list[str]:
    """The months that have entries, and the present one; newest first. One query."""
    known = MonthTotal.objects.filter(person=person, account="").values_list("month", flat=True)
    return sorted({present, *known}, reverse=True)


def labels(person: Person) -> dict[str, str]:
    """Slug → label of every account, also those that are gone: the ledger outlives them. One query."""
    return dict(Account.objects.filter(person=person).values_list("slug", "label"))


def carried_on(person: Person, since: datetime, most: int = 50) -> list[CarriedOn]:
    """The latest turns that another account answered since then, newest first. One query."""
    lines = (
        Line.objects.filter(conversation__person=person, conversation__deleted_at=None)
        .filter(kind="limit.routed", at__gte=since)
        .select_related("turn")
        .order_by("-at")[:most]
    )
    return [_carried(line) for line in lines]


def _carried(line: Line) -> CarriedOn:
    cost = line.turn.cost_nano if line.turn else None
    until = _instant(line.data.get("until"))
    return CarriedOn(
        at=line.at,
        conversation=line.conversation_id,
        from_label=str(line.data.get("from_label") or line.data.get("from") or ""),
        to_label=str(line.data.get("to_label") or line.data.get("to") or ""),
        billing=str(line.data.get("to_billing") or ""),
        cost=None if cost is None else from_nano(cost),
        saved=until - line.at if until and until > line.at else None,
    )


def _instant(text: object) -> datetime | None:
    """The time of a line's data (ISO 8601, Z)."""
    return datetime.fromisoformat(text) if isinstance(text, str) else None


def rows_for_csv(person: Person, month: str) -> Iterator[list[str]]:
    """The month's entries as rows, a heading first; read in pieces, so that a large month needs little memory."""
    yield ["at", "account", "model", "state", "input_tokens", "output_tokens", "cost_usd", "priced_by", "consent"]
    entries = Entry.objects.filter(person=person, month=month).order_by("id")
    for entry in entries.iterator(chunk_size=500):
        cost = "" if entry.cost_nano is None else f"{from_nano(entry.cost_nano):f}"
        yield [
            entry.at.isoformat(),
            entry.account,
            entry.model,
            entry.state,
            "" if entry.input_tokens is None else str(entry.input_tokens),
            "" if entry.output_tokens is None else str(entry.output_tokens),
            cost,
            entry.priced_by,
            entry.consent,
        ]
