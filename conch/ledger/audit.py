"""Whether the running totals agree with the entries (R28), and holds that nobody will settle any more (R26)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce

from conch.engines.base import Usage
from conch.ledger.holds import release, settle
from conch.models import Attempt, Conversation, Entry, MonthTotal, Turn

HELD, SETTLED = Q(state=Entry.State.HELD), Q(state=Entry.State.SETTLED)
FIGURES = ("spent_nano", "held_nano", "unpriced")

Figures = tuple[int, int, int]
NOTHING: Figures = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Difference:
    """A total that isn't the sum of its entries. Figures are (spent, held) in nanodollars and unpriced replies.

    `account` is "" for the person's whole month; `conversation` is set instead of `month` for a chat's own sums.
    """

    person_id: int
    month: str
    account: str
    conversation: int | None
    kept: Figures
    counted: Figures


def check() -> list[Difference]:
    """Every total that doesn't agree with the entries, for `doctor`. Reads the whole ledger."""
    return [*_months_that_differ(), *_chats_that_differ()]


def recount() -> int:
    """Set every total that differs to what its entries say; return how many there were. Runs inside a step."""
    differences = check()
    for found in differences:
        spent, held, unpriced = found.counted
        if found.conversation is not None:
            Conversation.objects.filter(pk=found.conversation).update(spent_nano=spent, held_nano=held)
            continue
        MonthTotal.objects.update_or_create(
            person_id=found.person_id,
            month=found.month,
            account=found.account,
            defaults={"spent_nano": spent, "held_nano": held, "unpriced": unpriced},
        )
    return len(differences)


def orphans(now: datetime, *, grace: timedelta = timedelta(minutes=1)) -> int:
    """Settle or release the holds of turns that don't run any more; return how many. Runs inside a step (BUD-03).

    `grace` leaves a turn that has just ended to whoever ran it; at the start, with nobody else running, it is zero.
    An attempt that was passed over, or refused before its first word, cost nothing. Any other may have been paid for:
    it settles as an estimate, by what the hold knows of the prompt and by what had arrived.
    """
    running = Turn.objects.filter(state=Turn.State.RUNNING).values("pk")
    left = Entry.objects.filter(HELD, at__lte=now - grace).exclude(turn__in=running)
    ended = dict(Turn.objects.filter(pk__in=left.values("turn")).values_list("pk", "ended_at"))
    count = 0
    for entry in left:
        ended_at = ended.get(entry.turn) if entry.turn is not None else None
        if ended_at is None or ended_at <= now - grace:
            _finish(entry, now)
            count += 1
    return count


def _finish(entry: Entry, now: datetime) -> None:
    attempt = Attempt.objects.filter(pk=entry.attempt).first() if entry.attempt is not None else None
    arrived = attempt.partial if attempt else ""
    if attempt and attempt.state in {"passed", "refused"} and not arrived:
        release(entry.pk)
        return
    if not arrived and entry.turn is not None:
        arrived = Turn.objects.filter(pk=entry.turn).values_list("answer", flat=True).first() or ""
    # Four characters a token: coarse, and marked as an estimate.
    usage = Usage(input_tokens=entry.input_tokens, output_tokens=-(-len(arrived) // 4) if arrived else None)
    settle(entry.pk, usage, now, estimated=True)


def _months_that_differ() -> list[Difference]:
    counted: dict[tuple[int, str, str], Figures] = defaultdict(lambda: NOTHING)
    for person, month, account, *figures in _summed("person_id", "month", "account"):
        counted[person, month, account] = _three(figures)
        whole = counted[person, month, ""]
        counted[person, month, ""] = _three(a + b for a, b in zip(whole, figures, strict=True))
    kept = {
        (person, month, account): _three(figures)
        for person, month, account, *figures in MonthTotal.objects.values_list(
            "person_id", "month", "account", *FIGURES
        )
    }
    return [
        Difference(person, month, account, None, kept.get(key, NOTHING), counted.get(key, NOTHING))
        for key in sorted(counted.keys() | kept.keys())
        for person, month, account in (key,)
        if kept.get(key, NOTHING) != counted.get(key, NOTHING)
    ]


def _chats_that_differ() -> list[Difference]:
    counted = {chat: _three((spent, held, 0)) for chat, spent, held, _ in _summed("conversation") if chat is not None}
    chats = Conversation.objects.filter(Q(pk__in=counted) | ~Q(spent_nano=0) | ~Q(held_nano=0))
    return [
        Difference(person, "", "", chat, (spent, held, 0), counted.get(chat, NOTHING))
        for chat, person, spent, held in chats.values_list("pk", "person_id", "spent_nano", "held_nano")
        if (spent, held, 0) != counted.get(chat, NOTHING)
    ]


def _summed(*by: str) -> list[tuple[Any, ...]]:
    """The entries' sums, grouped: the groups' keys, then spent, held, unpriced."""
    return list(
        Entry.objects.values_list(*by)
        .annotate(
            spent=Coalesce(Sum("cost_nano", filter=SETTLED), 0),
            held=Coalesce(Sum("hold_nano", filter=HELD), 0),
            without=Count("pk", filter=SETTLED & Q(cost_nano=None)),
        )
        .order_by()
    )


def _three(figures: Iterable[int]) -> Figures:
    spent, held, unpriced = figures
    return spent, held, unpriced
