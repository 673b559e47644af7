"""A tool asks: the turn rests until the person has answered, however long that takes (no time of R16 ends it)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from conch.copy.calls import asks_text
from conch.engines.registry import engine
from conch.models import Account, Conversation, ToolCall, Turn
from conch.turns import calls, statements
from conch.turns.events import Event
from conch.turns.gathering import Telling
from conch.turns.record import Growth, Tried, end_attempt, flush
from conch.turns.waiting import TOOL
from routing.facts import LOCAL


@dataclass(frozen=True, slots=True)
class Waits:
    """What was told of it; `answered`: the person was quicker than the rest of the round, and it can go on at once.

    `stopped`: the person was quicker to stop it; it doesn't wait.
    """

    events: list[Event]
    answered: bool
    stopped: bool = False


def wait_for_word(tried: Tried | None, growth: Growth, label: str, now: datetime) -> Waits:
    """Let the turn wait for the person's word, and say so; `label`: who wants to run a tool, "" where nobody was asked.

    What was written so far is kept with the attempt: the answer begins anew with what the tool gives.
    """
    flush([growth], now)
    if tried is not None:
        end_attempt(tried, "rested", now)
    turn = statements.turn_with_chat(growth.turn_id)
    if turn is None or turn.state != Turn.State.RUNNING or turn.run != growth.run:
        return Waits([], answered=False)
    if turn.stop_asked:
        return Waits([], answered=False, stopped=True)
    asking = calls.asks(turn.pk)
    telling = Telling(turn, now, growth.position)
    text = asks_text(label or _who_asked(turn, asking), [row.title for row in asking])
    telling.tell("waiting", {"for": TOOL, "until": None, "text": text})
    Turn.objects.filter(pk=turn.pk, run=turn.run).update(
        state=Turn.State.WAITING,
        position=telling.position,
        waits_for=TOOL,
        until=None,
        # Should this process end here, the worker's next look finds what was answered already.
        wake_at=None if asking else now,
        waiting_since=None,
        wakes=0,
        lease_until=None,
        owner="",
    )
    if turn.unattended:
        # Nobody is looking: the chat is marked, as for an answer.
        Conversation.objects.filter(pk=turn.conversation_id).update(updated_at=now, unread=True)
    telling.keep()
    return Waits(telling.events, answered=not asking)


def _who_asked(turn: Turn, asking: Sequence[ToolCall]) -> str:
    """Who asked for these calls in an earlier run, by name."""
    slug = asking[0].account if asking else ""
    mine = Account.objects.filter(person_id=turn.conversation.person_id, slug=slug)
    return mine.values_list("label", flat=True).first() or engine(LOCAL).label
