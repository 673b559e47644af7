"""The step that ends a turn, once: its state, its answer whole, what it cost, its last event."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from conch.engines.base import EngineError, Usage
from conch.money import from_nano, plain
from conch.turns import calls, failures, statements, tokens
from conch.turns.accept import next_queued
from conch.turns.events import Event
from conch.turns.gathering import viewer_of
from conch.turns.record import Growth, Tried, end_attempt
from conch.turns.waiting import ask_again


@dataclass(frozen=True, slots=True)
class End:
    """How a turn ends: its state, the model that answered, how the answer ended, and the failure's facts."""

    state: str
    model: str = ""
    ending: str = ""
    failure: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn has ended: with which event (None: somebody else had ended it), and what goes next in its chat (R35)."""

    last: Event | None
    following: int | None


def finish(tried: Tried | None, growth: Growth, end: End, now: datetime, *, error: EngineError | None = None) -> Ended:
    """End the turn. One that somebody else ended meanwhile stays as it is; only what the attempt cost is settled."""
    turn = statements.whose(growth.turn_id)
    if turn is None:
        return Ended(None, None)
    if tried is not None:
        state = end.state if end.state in {"done", "stopped", "interrupted"} else "failed"
        if end_attempt(tried, state, now, error):
            ask_again(turn.person_id, now)
    cost = sum_of_costs(growth.turn_id)
    usage = tried.used if tried is not None else Usage()
    if end.failure.get("code") in failures.IN_MID_ANSWER:
        end = replace(end, failure=end.failure | {"arrived": bool(growth.answer)})
    if end.failure and calls.have_run(growth.turn_id):
        end = replace(end, failure=end.failure | {"after_tools": True})
    kind, data = _last(turn.person_id, end, tried, usage, cost, now)
    last = Event(growth.position + 1, kind, data)
    columns = {
        "state": end.state,
        "answer": growth.answer,
        "answer_tokens": tokens.count(growth.answer),
        "model": end.model or turn.model,
        "ending": end.ending,
        "failure_code": end.failure.get("code", ""),
        "failure": json.dumps(end.failure),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_nano": cost,
        "position": last.id,
    }
    updated = statements.end_turn(growth.turn_id, growth.run, columns, now)
    if updated:
        statements.insert_events((event, growth.turn_id, growth.run) for event in (*growth.events, last))
        statements.chat_moved(turn.conversation_id, now, unread=True)
    return Ended(last if updated else None, next_queued(turn.conversation_id))


def _last(
    person_id: int, end: End, tried: Tried | None, usage: Usage, cost: int | None, now: datetime
) -> tuple[str, dict[str, Any]]:
    """The one event that ends the run."""
    if end.state == "done" and tried is not None:
        return "done", {
            "account": tried.account,
            "model": end.model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost": None if cost is None else plain(from_nano(cost)),
        }
    if end.state == "stopped":
        return "stopped", {}
    return end.state, failures.said(end.failure, viewer_of(person_id, now))


def sum_of_costs(turn_id: int) -> int | None:
    """What all attempts of a turn cost together, in nanodollars; None where one can't be known."""
    costs = statements.costs_of(turn_id)
    return None if None in costs else sum(cost for cost in costs if cost is not None)
