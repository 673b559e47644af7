"""Asking the route for a turn: claimed, gathered, decided, and what follows from it, in one transaction.

`begin` claims; `after_refusal` and `after_unable` write down what became of the one asked, and ask again in the same
step, so that a limit costs one commit. A decision is made here and nowhere else; rules are in `routing`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conch import tools
from conch.engines.base import EngineError, LimitReached, Tool
from conch.models import Attempt, Turn
from conch.turns import answering, calls, handoff, resting, statements, tokens
from conch.turns.events import Event
from conch.turns.gathering import Allowed, Begun, Gathered, Halted, RunSoFar, Telling
from conch.turns.record import LEASE, Growth, Tried, end_attempt, flush
from conch.turns.waiting import TOOL, after_the_other
from routing.decision import decide
from routing.facts import Needs, Run
from routing.known import measured, question_for_turn
from routing.outcome import Decision
from routing.rows import ChatRow, chat_as_read

LOCAL = "local"


def begin(turn_id: int, owner: str, so_far: RunSoFar, now: datetime, *, waking: bool = False) -> Begun | Allowed | None:
    """Claim a queued turn and ask its route; None where somebody else has it, or it isn't its time yet (R35).

    `waking`: a waiting or capped turn asks again. Where it would wait on, it is left waiting, and no run begins. Calls
    that the person said yes to run first: what they give is part of what is asked.
    """
    turn = statements.turn_with_chat(turn_id)
    if turn is None or turn.conversation.deleted_at is not None:
        return None
    if waking and turn.state in {Turn.State.WAITING, Turn.State.CAPPED}:
        return _wake(turn, owner, so_far, now)
    if not statements.claim_queued(turn.pk, turn.run, owner, now + LEASE, now):
        return None
    turn.state, turn.started_at = Turn.State.RUNNING, now
    # Its place is where it was queued: that event opens the run for those who watch it here.
    opening = [Event(turn.position, "queued", {})]
    yes = calls.allowed(turn.pk) if turn.run > 1 else []
    if yes:
        return Allowed(turn.run, opening, yes)
    return _ask(turn, so_far, now, turn.position, opening=opening)


def _wake(turn: Turn, owner: str, so_far: RunSoFar, now: datetime) -> Begun | Allowed | None:
    if turn.waits_for == TOOL and calls.asks(turn.pk):
        return None
    if after_the_other(turn, now):
        return None
    gathered = _gather(turn, so_far, now, waiting=True)
    decision = decide(gathered.question, now)
    if decision.kind in {"wait", "capped"}:
        resting.go_on(turn, decision, now)
        return None
    position = turn.position + 1
    resting_still = Turn.objects.filter(pk=turn.pk, state=turn.state, run=turn.run)
    claimed = resting_still.update(
        state=Turn.State.RUNNING,
        owner=owner,
        lease_until=now + LEASE,
        started_at=now,
        stop_asked=False,
        run=turn.run + 1,
        position=position,
        answer="",
    )
    if not claimed:
        return None
    turn.state, turn.run, turn.position, turn.started_at = Turn.State.RUNNING, turn.run + 1, position, now
    telling = Telling(turn, now, position - 1)
    telling.tell("queued", {})
    for row in calls.declined(turn.pk, turn.run - 1) if turn.waits_for == TOOL else ():
        telling.tell("tool", calls.told(row))
    yes = calls.allowed(turn.pk)
    if yes:
        telling.keep()
        return Allowed(turn.run, telling.events, yes)
    return _follow(telling, gathered, decision, so_far)


def after_allowed(growth: Growth, so_far: RunSoFar, now: datetime) -> Begun | Halted | None:
    """What the person said yes to has run: ask the route, with what that gave."""
    flush([growth], now)
    return again(growth, so_far, now)


def after_refusal(
    tried: Tried, error: LimitReached, growth: Growth, so_far: RunSoFar, now: datetime, *, marks: bool = True
) -> Begun | Halted | None:
    """Mark the account that refused, settle what its attempt cost, and ask the route again, all at once (R17).

    `marks` False: it said only what it can pay for, and is asked once more with that (R34).
    """
    flush([growth], now)
    if marks:
        end_attempt(tried, "refused", now, error)
    else:
        end_attempt(replace(tried, free=True), "passed", now)
    return again(growth, so_far, now)


def after_unable(
    tried: Tried, error: EngineError, growth: Growth, so_far: RunSoFar, now: datetime
) -> Begun | Halted | None:
    """One that carries on couldn't, at no cost: passed over for this run, and the route is asked again (R17)."""
    flush([growth], now)
    end_attempt(replace(tried, free=True), "passed", now, error)
    return again(growth, so_far, now)


def again(growth: Growth, so_far: RunSoFar, now: datetime) -> Begun | Halted | None:
    """Ask the route again within the run, unless its person stopped it; None where it runs no more, or elsewhere."""
    turn = statements.turn_with_chat(growth.turn_id)
    if turn is None or turn.state != Turn.State.RUNNING or turn.run != growth.run:
        return None
    return Halted() if turn.stop_asked else _ask(turn, so_far, now, growth.position)


def _ask(turn: Turn, so_far: RunSoFar, now: datetime, position: int, opening: Sequence[Event] = ()) -> Begun:
    gathered = _gather(turn, so_far, now, waiting=False, chat=chat_as_read(turn.conversation))
    decision = decide(gathered.question, now)
    begun = _follow(Telling(turn, now, position), gathered, decision, so_far)
    return replace(begun, events=[*opening, *begun.events])


def _gather(turn: Turn, so_far: RunSoFar, now: datetime, *, waiting: bool, chat: ChatRow | None = None) -> Gathered:
    run = Run(
        tried=so_far.tried,
        once=so_far.once or turn.once,
        carry_on=so_far.carry_on,
        unattended=turn.unattended,
        routine=turn.routine,
        waiting=waiting,
        waiting_since=turn.waiting_since,
        wakes=turn.wakes,
        after_failure=turn.run > 1 and _failed_before(turn),
        offline=so_far.offline,
    )
    question = question_for_turn(turn.pk, run, now, chat)
    labels = {way.slug: way.label for way in question.ways} | {LOCAL: question.local.model.label}
    said = handoff.history(turn, labels)
    instructions = turn.conversation.instructions
    offered = _tools(turn)
    beside = tokens.of_tools(offered) if offered else 0
    needs = Needs(
        tools=bool(offered),
        images=bool(said[-1].images),
        older_images=any(one.images for one in said[:-1]),
        tokens=handoff.length(said, instructions) + beside,
        newest_tokens=handoff.length(said[-1:], instructions) + beside,
    )
    return Gathered(said, measured(question, needs), labels, offered, beside)


def _tools(turn: Turn) -> tuple[Tool, ...]:
    """What this chat may use now; a tool that the person never lets run isn't there at all."""
    if not turn.conversation.tools:
        return ()
    found = tools.offered(turn.conversation.person_id, turn.conversation.tools)
    return tuple(Tool(one.name, one.description, one.schema) for one in found)


def would_answer(turn: Turn, account: str, now: datetime) -> tuple[Decision, str]:
    """What the route would say were that account to answer by a yes for this message, and its label."""
    gathered = _gather(turn, RunSoFar(once=account), now, waiting=False)
    return decide(gathered.question, now), gathered.labels.get(account, account)


def _failed_before(turn: Turn) -> bool:
    """Whether the run before this one ended without an answer (R22: then the routed line is said again)."""
    last = Attempt.objects.filter(turn_id=turn.pk, run__lt=turn.run).order_by("-pk").values_list("state", flat=True)
    return last.first() in {"failed", "stopped", "interrupted", "passed"}


def _follow(telling: Telling, gathered: Gathered, decision: Decision, so_far: RunSoFar) -> Begun:
    """Do what the decision says."""
    run = telling.turn.run
    if decision.kind == "answer":
        asked = answering.answer(telling, gathered, decision, so_far)
        if asked is not None:
            return Begun(run, telling.events, decision, gathered.question, asked)
        # Another process took what was left of the budget in between: ask again with what is there now.
        gathered = _gather(telling.turn, so_far, telling.now, waiting=False)
        decision = decide(gathered.question, telling.now)
        if decision.kind == "answer":
            return resting.fail_for_money(telling, gathered, decision)
    return resting.rest(telling, gathered, decision)
