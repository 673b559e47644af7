"""Between two rounds of a tool loop: what the one before cost, what the next may cost, and its request (R26, R31)."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from conch import ledger
from conch.engines.base import Message, Request, ToolCall, ToolOutcome, Usage
from conch.models import Account, Attempt, Preferences, Turn
from conch.turns import calls, statements, tokens
from conch.turns.begin import again
from conch.turns.errors import AccountGone, Stopped
from conch.turns.gathering import Asking, Begun, Halted, RunSoFar
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
    """Hold what the next round can cost: its cap on output tokens, and the attempt with it.

    `most_output` is what the key can pay for (R34). Where the yes by which the key is used was taken back meanwhile,
    nothing more is sent to it (R27). Raises TooDear, and what `check` does.
    """
    turn = check(tried)
    if not _yes_stands(asking.consent, tried.account, turn):
        raise TooDear(capped=False)
    question = measured(question_for_turn(turn.pk, Run(), now), Needs(tokens=counted, newest_tokens=counted))
    paid = Paid(turn, tried.attempt_id, tried.account, tried.model, asking.consent, counted, most_output)
    cap, entry = hold(question, paid, now)
    return cap, replace(tried, entry_id=entry)


def check(tried: Tried) -> Turn:
    """The turn, whose next round may be sent. Raises Stopped where it runs here no more, AccountGone."""
    turn = statements.turn_with_chat(tried.turn_id)
    if turn is None or not calls.goes_on(turn, tried.run):
        raise Stopped
    if tried.account_id is not None and not Account.objects.filter(pk=tried.account_id, removed_at=None).exists():
        raise AccountGone
    return turn


def _yes_stands(consent: str, account: str, turn: Turn) -> bool:
    known = Preferences.objects.only("limit_paid", "limit_fallback", "month_budget_nano")
    preferences = known.get(pk=turn.conversation.person_id)
    if turn.unattended and consent in {"paid_on", "named"} and preferences.month_budget_nano is None:
        return False  # R25
    if consent == "paid_on":
        return preferences.limit_paid
    return consent != "named" or preferences.limit_fallback == account


def after_too_dear(
    tried: Tried, error: TooDear, growth: Growth, so_far: RunSoFar, now: datetime
) -> Begun | Halted | None:
    """The next round doesn't fit: a limit reached in the turn, or, by the chat's own cap, the turn is held (R26).

    Either way the route is asked again; what tools gave so far is handed over, and nobody is marked.
    """
    flush([growth], now)
    end_attempt(tried, "rested" if error.capped else "refused", now)
    if not error.capped:
        Attempt.objects.filter(pk=tried.attempt_id).update(refusal_kind="money")
    return again(growth, so_far, now)


async def next_request(
    request: Request, said: str, made: Sequence[ToolCall], outcomes: Sequence[ToolOutcome], reads: int | None
) -> tuple[Request, int]:
    """The request of the next round, and its tokens. Outcomes are cut where the model can't read all of them."""
    asked = Message("assistant", said, calls=tuple(made))
    counted = await asyncio.to_thread(_count, request, asked)
    came_to = await asyncio.to_thread(lambda: [tokens.count(outcome.text) for outcome in outcomes])
    if reads is not None and counted + sum(came_to) > reads:
        share = max(0.0, (reads - counted) * WELL_WITHIN / sum(came_to))
        outcomes = [replace(outcome, text=_cut(outcome.text, share)) for outcome in outcomes]
        came_to = [int(each * share) + 12 for each in came_to]
    answered = Message("user", outcomes=tuple(outcomes))
    return replace(request, messages=(*request.messages, asked, answered)), counted + sum(came_to)


def _count(request: Request, asked: Message) -> int:
    made = [call for message in (*request.messages, asked) for call in message.calls]
    told = "".join(f"{call.id} {call.name} {json.dumps(dict(call.arguments))}" for call in made)
    return tokens.length(request) + tokens.count(asked.text) + tokens.count(told)


def _cut(text: str, share: float) -> str:
    kept = int(len(text) * share)
    return f"{text[:kept]}\n[… {len(text) - kept} characters more, left out: this model can't read all of it]"
