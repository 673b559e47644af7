"""Between two rounds of a tool loop: what the one before cost, what the next may cost, and its request (R26, R31)."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conch import ledger
from conch.engines.base import Message, Request, ToolCall, ToolOutcome, Usage
from conch.models import Attempt, Preferences, Turn
from conch.turns import statements, tokens
from conch.turns.begin import again
from conch.turns.gathering import Asking, Begun, RunSoFar
from conch.turns.holding import Paid, TooDear, hold
from conch.turns.record import Growth, Tried, end_attempt, flush
from conch.turns.waiting import ask_again
from routing.facts import Needs, Run
from routing.known import measured, question_for_turn

# Of what a model still reads, outcomes take this much: how it counts is known only about.
WELL_WITHIN = 0.9


def settle(tried: Tried, now: datetime) -> Tried:
    """The round has ended: settle what was held for it, in a step. A plan's rounds are looked at together, later."""
    cost: int | None = 0
    if tried.entry_id is not None:
        cost = ledger.settle(tried.entry_id, tried.usage or Usage(), now)
        ask_again(_person_of(tried.turn_id), now)
    return replace(
        tried,
        entry_id=None,
        usage=None,
        latest="",
        earlier=tried.used,
        spent=None if cost is None or tried.spent is None else tried.spent + cost,
    )


def _person_of(turn_id: int) -> int:
    return int(Turn.objects.values_list("conversation__person_id", flat=True).get(pk=turn_id))


def hold_next(asking: Asking, tried: Tried, counted: int, most_output: int, now: datetime) -> tuple[int, Tried]:
    """Hold what the next round can cost: its cap on output tokens, and the attempt with it. Raises TooDear.

    `most_output` is what the key can pay for (R34).

    Where the yes by which the key is used was taken back meanwhile, nothing more is sent to it (R27).
    """
    turn = statements.turn_with_chat(tried.turn_id)
    assert turn is not None
    if not _yes_stands(asking.consent, tried.account, turn):
        raise TooDear(capped=False)
    question = measured(question_for_turn(turn.pk, Run(), now), Needs(tokens=counted, newest_tokens=counted))
    paid = Paid(turn, tried.attempt_id, tried.account, tried.model, asking.consent, counted, most_output)
    cap, entry = hold(question, paid, now)
    return cap, replace(tried, entry_id=entry)


def _yes_stands(consent: str, account: str, turn: Turn) -> bool:
    preferences = Preferences.objects.only("limit_paid", "limit_fallback").get(pk=turn.conversation.person_id)
    if consent == "paid_on":
        return preferences.limit_paid
    return consent != "named" or preferences.limit_fallback == account


def after_too_dear(tried: Tried, error: TooDear, growth: Growth, so_far: RunSoFar, now: datetime) -> Begun | None:
    """The next round doesn't fit: a limit reached in the turn, or, by the chat's own cap, the turn is held (R26).

    Either way the route is asked again; what tools gave so far is handed over, and nobody is marked.
    """
    flush([growth], now)
    end_attempt(tried, "rested" if error.capped else "refused", now)
    if not error.capped:
        Attempt.objects.filter(pk=tried.attempt_id).update(refusal_kind="money")
    return again(growth, so_far, now)


async def next_request(
    request: Request, said: str, calls: Sequence[ToolCall], outcomes: Sequence[ToolOutcome], reads: int | None
) -> tuple[Request, int]:
    """The request of the next round, and its tokens. Outcomes are cut where the model can't read all of them."""
    asked = Message("assistant", said, calls=tuple(calls))
    counted = await asyncio.to_thread(_count, request, asked)
    came_to = await asyncio.to_thread(lambda: [tokens.count(outcome.text) for outcome in outcomes])
    if reads is not None and counted + sum(came_to) > reads:
        share = max(0.0, (reads - counted) * WELL_WITHIN / sum(came_to))
        outcomes = [replace(outcome, text=_cut(outcome.text, share)) for outcome in outcomes]
        came_to = [int(each * share) + 12 for each in came_to]
    answered = Message("user", outcomes=tuple(outcomes))
    return replace(request, messages=(*request.messages, asked, answered)), counted + sum(came_to)


def _count(request: Request, asked: Message) -> int:
    calls = [call for message in (*request.messages, asked) for call in message.calls]
    arguments = "".join(json.dumps(dict(call.arguments)) for call in calls)
    return tokens.length(request) + tokens.count(asked.text) + tokens.count(arguments)


def _cut(text: str, share: float) -> str:
    kept = int(len(text) * share)
    return f"{text[:kept]}\n[… {len(text) - kept} characters more, left out: this model can't read all of it]"
