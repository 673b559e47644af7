"""Turns whose process has ended: marked interrupted once, with what had arrived, and what they may have cost (R26)."""

from datetime import datetime
from typing import Any

from django.db.models import Q

from conch import ledger
from conch.copy.clock import Viewer
from conch.engines.base import Usage
from conch.models import Account, Attempt, Conversation, Entry, Turn, TurnEvent
from conch.turns import calls, failures
from conch.turns.accept import next_queued
from conch.turns.gathering import viewer_of
from conch.turns.process import is_gone
from conch.turns.record import at_least

MOST_AT_ONCE = 200
# Who watched may have seen ids beyond those written down: the end's id is greater than any of them.
UNWRITTEN = 10_000


def lapsed(now: datetime) -> list[int]:
    """Running turns that nobody runs: their lease has lapsed, or their process on this host lives no more."""
    rows = Turn.objects.filter(state=Turn.State.RUNNING).values_list("pk", "owner", "lease_until")[: MOST_AT_ONCE * 5]
    return [pk for pk, owner, lease in rows if lease is None or lease < now or is_gone(owner)][:MOST_AT_ONCE]


def interrupt(turn_id: int, now: datetime) -> int | None:
    """End that turn as interrupted; the chat's next queued turn. One that has a lease again is left alone."""
    turn = Turn.objects.select_related("conversation").filter(pk=turn_id, state=Turn.State.RUNNING).first()
    if turn is None or not (turn.lease_until is None or turn.lease_until < now or is_gone(turn.owner)):
        return None
    failure = _failure(turn)
    viewer: Viewer = viewer_of(turn.conversation.person_id, now)
    position = turn.position + UNWRITTEN
    updated = Turn.objects.filter(pk=turn_id, state=Turn.State.RUNNING, run=turn.run, owner=turn.owner).update(
        state=Turn.State.INTERRUPTED,
        position=position,
        failure_code=failure["code"],
        failure=failure,
        ended_at=now,
        lease_until=None,
        waits_for="",
        wake_at=None,
        until=None,
    )
    if not updated:
        return None
    TurnEvent.objects.create(
        turn_id=turn_id, run=turn.run, position=position, kind="interrupted", data=failures.said(failure, viewer)
    )
    _settle(turn, now)
    calls.close(turn.pk, now)
    Conversation.objects.filter(pk=turn.conversation_id).update(updated_at=now, unread=True)
    return next_queued(turn.conversation_id)


def _failure(turn: Turn) -> dict[str, Any]:
    account = Account.objects.filter(person_id=turn.conversation.person_id, slug=turn.account).first()
    paid = Entry.objects.filter(turn=turn.pk, state=Entry.State.HELD).exists()
    return {
        "code": failures.INTERRUPTED,
        "account": turn.account,
        "label": account.label if account is not None else "",
        "billing": "key" if paid else "",
        "charged": paid,
        "arrived": bool(turn.answer),
        "offers": [],
    }


def _settle(turn: Turn, now: datetime) -> None:
    """Settle what its unfinished attempts hold, by what had arrived, as an estimate."""
    for attempt in Attempt.objects.filter(turn_id=turn.pk, ended_at=None):
        entry = Entry.objects.filter(attempt=attempt.pk, state=Entry.State.HELD).values_list("pk", flat=True).first()
        if entry is not None:
            ledger.settle(entry, at_least(Usage(), turn.answer), now, estimated=True)
        # Rounds of tools that had ended before were settled then.
        costs = list(Entry.objects.filter(attempt=attempt.pk).values_list("cost_nano", flat=True))
        cost = None if None in costs else sum(cost for cost in costs if cost is not None)
        Attempt.objects.filter(pk=attempt.pk).update(
            state="interrupted", partial=turn.answer, cost_nano=cost, ended_at=now
        )


def unfinished() -> int:
    """How many turns have not ended: for doctor and metrics."""
    return Turn.objects.filter(~Q(state__in=Turn.ENDS)).count()
