"""Who answers a turn, and why (R11-R25, R35, R36): pure, `now` passed in, nothing asked while it decides."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from routing.choices import SIGNED_OUT
from routing.facts import AUTO, KEY, LOCAL, WAIT, Question, Run, Tried
from routing.outcome import (
    Capped,
    Decision,
    Failure,
    Limit,
    ModelRef,
    Offer,
    Passed,
    Routed,
    Skip,
    Stay,
    Unstay,
    Wait,
    Why,
)
from routing.room import amount
from routing.routed import Carrier, is_said, passed_over, routed_by
from routing.survey import BY_NAME, BY_ONCE, NOTHING, Seen, Standing, Survey, ref
from routing.waiting import asked_again, failure_of_own, held, wait_or_fail

__all__ = [
    "Capped",
    "Decision",
    "Failure",
    "Limit",
    "ModelRef",
    "Offer",
    "Passed",
    "Question",
    "Routed",
    "Run",
    "Skip",
    "Stay",
    "Tried",
    "Unstay",
    "Wait",
    "Why",
    "decide",
    "hindrance",
    "would_answer",
]

# From the least that a cap is raised to, where the present one is nothing.
LEAST_CAP = Decimal(1)


def decide(question: Question, now: datetime) -> Decision:
    """Decide who answers this run of a turn. `now` is an aware instant; facts that are odd never raise."""
    question, unstay = _stay_ended(question)
    survey = Survey(question, now)
    decision = _decide(survey)
    return decision if unstay is None else replace(decision, unstay=_by_name(survey, unstay))


def hindrance(question: Question, slug: str, now: datetime) -> Skip | None:
    """Why an account named by *answer with* can't answer now; None where it can (doors.md, 409 otherwise).

    A yes for this one message goes past what only stops Automatic, never past a limit, the budget, the key's own limit
    or the chat's cap ("capped"). "no_account": it isn't connected.
    """
    survey = Survey(question, now)
    if slug == LOCAL:
        return survey.local_skip()
    found = survey.one_way(slug)
    if found is None:
        return Skip("no_account")
    standing, _ = found
    codes = standing.beyond(BY_ONCE)
    if codes:
        return standing.skip(codes[0])
    return Skip("capped") if _capped(survey, standing) is not None else None


def would_answer(survey: Survey) -> str | None:
    """The id of who would answer now, were the chat's account at its limit; None where the chat would wait."""
    if survey.mode == WAIT:
        return None
    chosen = _chosen(survey)
    if chosen is not None:
        return chosen[0].choice.id
    return LOCAL if survey.question.preferences.offline_fallback and survey.local is not None else None


def _stay_ended(question: Question) -> tuple[Question, Unstay | None]:
    """R21: a chat that stayed with a key is its first account's again once the yes that brought it there is gone."""
    chat = question.chat
    if chat is None or not chat.stayed_from:
        return question, None
    ways = {way.slug: way for way in question.ways}
    key = ways.get(chat.account)
    if key is None or key.billing != KEY or _yes_stands(question, chat.stayed_consent, key.slug):
        return question, None
    first = ways.get(chat.stayed_from)
    label = chat.stayed_from if first is None else first.label
    back = replace(chat, account=chat.stayed_from, account_label=label, stayed_from="", stayed_consent="")
    unstay = Unstay(key.slug, key.label, chat.stayed_from, label)
    return replace(question, engine=chat.stayed_from, chat=back), unstay


def _by_name(survey: Survey, unstay: Unstay) -> Unstay:
    """Both accounts by the names of their choices, which tell two of one label apart (R2)."""
    key, first = survey.one_way(unstay.key), survey.one_way(unstay.account)
    key_label = unstay.key_label if key is None else key[1]
    return unstay._replace(key_label=key_label, label=unstay.label if first is None else first[1])


def _yes_stands(question: Question, consent: str, key: str) -> bool:
    if consent == "named":
        return question.preferences.limit_fallback == key
    return consent != "paid_on" or question.preferences.limit_paid


def _decide(survey: Survey) -> Decision:
    run, engine = survey.question.run, survey.question.engine
    if run.offline and engine != LOCAL:
        return _offline(survey)
    if run.once and run.once not in survey.tried:
        once = _once(survey, run.once)
        if once is not None:
            return once
    if engine == LOCAL:
        return _own_local(survey)
    own = survey.own
    if own is None or own.way.state in SIGNED_OUT:
        return _gone(survey)
    tried = survey.tried.get(engine)
    if tried is not None and tried.code != "refused":
        # The chat's own account failing for another reason than a limit never starts a switch (R17).
        failure = Failure(tried.code, engine, survey.own_label, survey.offers())
        return Decision("fail", survey.limit, failure=failure, why=survey.why())
    return _at_limit(survey) if survey.limited else _own(survey, own)


def _own(survey: Survey, own: Standing) -> Decision:
    """R11: the chat's own account answers whenever it has room."""
    if own.carries.codes:
        return Decision("fail", survey.limit, failure=failure_of_own(survey), why=survey.why())
    chat = survey.chat
    stayed = chat.stayed_consent if chat.stayed_from else ""
    if own.way.billing == KEY and stayed and survey.terms.needs_budget:
        # A key that the chat only stayed with isn't its own choice: away, it needs a budget as any other (R25).
        could = Offer(own.way.slug, survey.own_label, KEY, own.way.per_reply)
        return asked_again(survey, "needs_budget", could)
    consent = (stayed or "own") if own.way.billing == KEY else ""
    last = chat.last_route
    away = last is not None and last.from_ == own.way.slug
    returned = away and chat.last_answered_by not in {"", own.way.slug}
    return _answers(survey, own, survey.own_label, consent, returned=returned)


def _own_local(survey: Survey) -> Decision:
    """A chat of the model on this computer: no limit, no route."""
    if survey.local is not None:
        return _by_local(survey)
    label, skip = survey.question.local.model.label, survey.local_skip()
    assert skip is not None, "it is absent or can't take the chat"
    failure = Failure(skip.code, LOCAL, label, survey.offers(), model=label)
    return Decision("fail", survey.limit, failure=failure, why=survey.why())


def _gone(survey: Survey) -> Decision:
    """R36: nothing is routed past an account that is gone or signed out, save in a turn that waited already."""
    run = survey.question.run
    if run.waiting_since is not None and survey.mode != WAIT and not run.routine:
        chosen = _chosen(survey)
        if chosen is not None:
            return _carried(survey, *chosen)
        waits = wait_or_fail(survey, why="signed_out", own=False)
        if waits.kind == "wait":
            return waits
    return Decision("fail", survey.limit, failure=failure_of_own(survey), why=survey.why())


def _at_limit(survey: Survey) -> Decision:
    """The chat's own account is at its limit: who carries on (R12-R16, R23, R25)."""
    run = survey.question.run
    if run.routine:
        return held(survey)
    chosen = (_carry_on(survey, run.carry_on) if run.carry_on else None) or _chosen(survey)
    if chosen is not None:
        return _carried(survey, *chosen)
    if survey.mode != WAIT and survey.question.preferences.offline_fallback and survey.local is not None:
        return _by_local(survey, by=AUTO)
    return wait_or_fail(survey)


def _chosen(survey: Survey) -> tuple[Seen, Standing, str] | None:
    """Who carries on by the preference: the first in order that is not passed over, or the pick; under wait nobody."""
    if survey.mode == AUTO:
        return _first_able(survey.others, NOTHING, AUTO)
    return None if survey.pick is None else _first_able([survey.pick], BY_NAME, "named")


def _carry_on(survey: Survey, slug: str) -> tuple[Seen, Standing, str] | None:
    """R23: that one first, if it is a plan or a key that may answer by R13."""
    seen = survey.seen(slug)
    if seen is None:
        return None
    named = seen.choice.has(survey.question.preferences.limit_fallback)
    return _first_able([seen], BY_NAME if named else NOTHING, "carry_on")


def _first_able(others: list[Seen], yes: frozenset[str], by: str) -> tuple[Seen, Standing, str] | None:
    """R9: the first that takes the whole chat, else the first that takes the newest message."""
    shortened: tuple[Seen, Standing, str] | None = None
    for seen in others:
        standing = seen.best(yes)
        if standing.beyond(yes):
            continue
        if standing.carries.whole:
            return (seen, standing, by)
        shortened = shortened or (seen, standing, by)
    return shortened


def _once(survey: Survey, slug: str) -> Decision | None:
    """Answer-with: that very account, by a yes for this one message; None where it can't (R27)."""
    if slug == LOCAL:
        return None if survey.local is None else _by_local(survey, by="once")
    found = survey.one_way(slug)
    if found is None or found[0].beyond(BY_ONCE):
        return None
    standing, label = found
    if slug == survey.question.engine:
        return _own(survey, standing)
    return _carried_by(survey, standing, label, "once", ())


def _carried(survey: Survey, seen: Seen, standing: Standing, by: str) -> Decision:
    return _carried_by(survey, standing, seen.label, by, passed_over(survey, seen))


def _carried_by(survey: Survey, standing: Standing, label: str, by: str, passed: tuple[Passed, ...]) -> Decision:
    """Somebody else answers, with the consent that lets it (R27), and the line about it (R21, R22)."""
    way = standing.way
    consent = _consent(survey, standing, by) if way.billing == KEY else ""
    if by == "once" and not survey.limited and survey.question.run.waiting_since is None:
        # Named for an account that is not at its limit (signed out, can't see images): nothing to come back from.
        return _answers(survey, standing, label, consent)
    stayed = by != "once" and not survey.question.preferences.limit_return and _capped(survey, standing) is None
    who = Carrier(way.slug, ref(way.model), label, way.billing, stayed, way.per_reply)
    routed = routed_by(survey, who, by, passed)
    stay = Stay(way.slug, way.model.id, consent) if stayed else None
    return _answers(survey, standing, label, consent, routed=routed, say=is_said(survey, routed), stay=stay)


def _consent(survey: Survey, standing: Standing, by: str) -> str:
    if by == "once":
        return "once"
    picked = survey.seen(standing.way.slug)
    named = picked is not None and picked.choice.has(survey.question.preferences.limit_fallback)
    return "named" if by == "named" or (by == "carry_on" and named) else "paid_on"


def _by_local(survey: Survey, by: str = "", *, offline: bool = False) -> Decision:
    """The model on this computer answers: as the chat's own, last of an order (R15), or by the person's press."""
    local, carried = survey.question.local, survey.local
    assert carried is not None, "it is there and takes the chat"
    model = ref(local.model)
    routed = None
    if by and survey.limited:
        routed = routed_by(survey, Carrier(LOCAL, model, local.model.label, LOCAL), by, passed_over(survey, None))
    return Decision(
        "answer",
        survey.limit,
        answers=LOCAL,
        model=model,
        label=local.model.label,
        billing=LOCAL,
        routed=routed,
        say=routed is not None and is_said(survey, routed),
        offline=offline,
        shortened=not carried.whole,
        drop_images=survey.question.needs.older_images and local.model.images is False,
        why=survey.why(),
    )


def _offline(survey: Survey) -> Decision:
    """R19: nothing can be reached. Nobody is marked, nobody who costs money is asked instead; a routine is nobody's."""
    run = survey.question.run
    if survey.question.preferences.offline_fallback and survey.local is not None and not run.routine:
        return _by_local(survey, offline=True)
    if run.waiting_since is not None:
        return asked_again(survey, "offline")
    local = survey.local_offer()
    offers = () if local is None else (local,)
    failure = Failure("offline", survey.question.engine, survey.own_label, offers)
    return Decision("fail", survey.limit, failure=failure, why=survey.why())


def _answers(survey: Survey, standing: Standing, label: str, consent: str, **said: Any) -> Decision:
    """That way answers, or the chat's own cap holds the turn (R18); `said`: what else is to be said of it."""
    way = standing.way
    capped = _capped(survey, standing)
    default = way.default_model
    return Decision(
        "answer" if capped is None else "capped",
        survey.limit,
        answers=way.slug,
        model=ref(way.model),
        default_model=ref(default) if default is not None and default.id != way.model.id else None,
        label=label,
        billing=way.billing,
        consent=consent,
        shortened=not standing.carries.whole,
        drop_images=survey.question.needs.older_images and way.model.images is False,
        capped=capped,
        why=survey.why(),
        **said,
    )


def _capped(survey: Survey, standing: Standing) -> Capped | None:
    """R18: what the chat spent, its running holds and the smallest hold pass its cap; no bound where unpriced."""
    chat, way = survey.chat, standing.way
    if chat.cap is None or way.billing != KEY or way.smallest is None:
        return None
    cap, needed = amount(chat.cap), chat.spent + chat.held + way.smallest
    if needed <= cap:
        return None
    raise_to = max(cap * 2, LEAST_CAP)
    while raise_to < needed:
        raise_to *= 2
    return Capped(chat.spent, cap, raise_to)
