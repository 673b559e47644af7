"""Every choice as it stands, and who would answer at a limit: what Settings, the composer and the API show (R10)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from routing.choices import account_words
from routing.decision import would_answer
from routing.facts import KEY, LOCAL, Budget, Question
from routing.outcome import Limit, ModelRef, Skip
from routing.room import Room, amount
from routing.survey import Seen, Survey, ref


class PlanChoice(NamedTuple):
    """One choice, with its facts. `answers_by` is the way that answers for it, with `model`; `account`: in words.

    `skip`: whether Automatic passes it over now. `per_reply` in USD, of a key; None where it can't be priced.
    """

    id: str
    label: str
    kind: str
    ways: tuple[str, ...]
    account: str
    answers_by: str
    model: ModelRef
    room: Room
    per_reply: Decimal | None
    skip: Skip | None
    engine: str
    own_limit: Decimal | None
    own_limit_binds: bool


class PlanLocal(NamedTuple):
    """The model on this computer: whether it may answer when nobody else can, and why it couldn't."""

    model: ModelRef
    present: bool
    allowed: bool
    skip: Skip | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens when `engine` reaches its limit (doors.md, FallbackPlan).

    `answers`: the id of who would answer now were it at its limit; "local", or None where the chat would wait.
    `until`: `engine`'s own reset where it is at its limit, else that of its tightest window.
    `month_left`: of the month's budget, None without one.
    """

    engine: str
    label: str
    limit: Limit
    preference: str
    answers: str | None
    choices: tuple[PlanChoice, ...]
    local: PlanLocal
    until: datetime | None
    budget: Budget
    month_left: Decimal | None
    limit_paid: bool


def plan(question: Question, now: datetime) -> Plan:
    """What would happen, from what is known."""
    survey = Survey(question, now)
    local = question.local
    return Plan(
        engine=question.engine,
        label=local.model.label if question.engine == LOCAL else survey.own_label,
        limit=survey.limit,
        preference=question.preferences.limit_fallback,
        answers=would_answer(survey),
        choices=tuple(_choice(seen) for seen in survey.others),
        local=PlanLocal(ref(local.model), local.present, question.preferences.offline_fallback, survey.local_skip()),
        until=survey.limit.until,
        budget=question.budget,
        month_left=survey.month_left(),
        limit_paid=question.preferences.limit_paid,
    )


def _choice(seen: Seen) -> PlanChoice:
    best = seen.best()
    way = best.way
    own_limit = None if way.own_limit is None else amount(way.own_limit)
    binds = own_limit is not None and way.spent + way.held + (way.smallest or 0) >= own_limit
    return PlanChoice(
        id=seen.choice.id,
        label=seen.label,
        kind=way.billing,
        ways=tuple(way.slug for way in seen.choice.ways),
        account=account_words(seen.choice),
        answers_by=way.slug,
        model=ref(way.model),
        room=best.room,
        per_reply=way.per_reply if way.billing == KEY else None,
        skip=seen.why().skip,
        engine=way.engine,
        own_limit=own_limit,
        own_limit_binds=binds,
    )
