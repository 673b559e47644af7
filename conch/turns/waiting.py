"""Turns that wait, and those that nobody runs: who is due now (R16). Any process may ask; a claim is atomic.

Turns that wait for the same account go out one after another, the oldest first: the next when the one before has its
first words, or has ended. A few seconds pass after a reset before the first goes.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from conch.models import Turn
from conch.turns.accept import unfinished_before

AFTER_THE_RESET = timedelta(seconds=3)
ORPHANED_AFTER = timedelta(seconds=2)
MOST_AT_ONCE = 50
AT_REST = (Turn.State.WAITING, Turn.State.CAPPED)
TOOL = "tool"  # a call that asks the person is what it waits for: no time ends that


def due(now: datetime) -> list[int]:
    """The waiting turns whose route is to be asked now, at most one for each account that is waited for.

    One whose chat answers another message, an earlier one that was tried again, has its turn after that (R35).
    """
    going = Turn.objects.filter(
        conversation__person_id=OuterRef("conversation__person_id"),
        waits_for=OuterRef("waits_for"),
        state=Turn.State.RUNNING,
        answer="",
    )
    beside = Turn.objects.filter(conversation_id=OuterRef("conversation_id"), state=Turn.State.RUNNING)
    rows = (
        Turn.objects.filter(state__in=AT_REST, wake_at__lte=now, conversation__deleted_at=None)
        .filter(~Exists(beside), Q(waits_for=TOOL) | ~Exists(going))
        .order_by("pk")
        .values_list("pk", "conversation__person_id", "waits_for")[: MOST_AT_ONCE * 4]
    )
    first: dict[tuple[int, str], int] = {}
    for pk, person, waits_for in rows:
        # One whose tool was answered waits for nobody.
        first.setdefault((person, waits_for) if waits_for != TOOL else (pk, TOOL), pk)
    return list(first.values())[:MOST_AT_ONCE]


def after_the_other(turn: Turn, now: datetime) -> bool:
    """Whether its chat answers another message: an earlier one was tried again. It asks its route after that (R35)."""
    beside = Turn.objects.filter(conversation_id=turn.conversation_id, state=Turn.State.RUNNING)
    if not beside.exists():
        return False
    Turn.objects.filter(pk=turn.pk, state=turn.state, run=turn.run).update(wake_at=now)
    return True


def left_behind(now: datetime) -> list[int]:
    """Queued turns that nobody has begun for a while, with nothing before them in their chat."""
    queued = Turn.objects.filter(
        Q(started_at=None) | Q(started_at__lt=now - ORPHANED_AFTER),
        state=Turn.State.QUEUED,
        created_at__lt=now - ORPHANED_AFTER,
        conversation__deleted_at=None,
    )
    return list(queued.filter(~Exists(unfinished_before())).order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])


def ask_again(person_id: int, now: datetime) -> int:
    """Something has changed that may make somebody able to answer: this person's waiting turns ask at once (R16)."""
    waiting = Turn.objects.filter(conversation__person_id=person_id, state=Turn.State.WAITING)
    return waiting.exclude(waits_for=TOOL).update(wake_at=now)


def people() -> set[int]:
    """Whoever has a turn that waits."""
    waiting = Turn.objects.filter(state=Turn.State.WAITING)
    return set(waiting.values_list("conversation__person_id", flat=True))


def next_moment(now: datetime) -> datetime | None:
    """When the next waiting turn is due, if one is known of."""
    waiting = Turn.objects.filter(state=Turn.State.WAITING, wake_at__gt=now).order_by("wake_at")
    return waiting.values_list("wake_at", flat=True).first()


def mend_clock(now: datetime) -> int:
    """Our clock was set back: no wait gets longer by that than it was at first (product.md, Times)."""
    mended = 0
    future = Turn.objects.filter(state=Turn.State.WAITING, waiting_since__gt=now + timedelta(minutes=1))
    for turn in future.only("waiting_since", "wake_at", "until"):
        assert turn.waiting_since is not None
        back = turn.waiting_since - now
        mended += Turn.objects.filter(pk=turn.pk, waiting_since=turn.waiting_since).update(
            waiting_since=now,
            wake_at=None if turn.wake_at is None else turn.wake_at - back,
            until=None if turn.until is None else turn.until - back,
        )
    return mended
