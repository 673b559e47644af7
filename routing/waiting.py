"""When nobody answers: whom the turn waits for, until when, and what would help (R16, R25, R36)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from routing.facts import AUTO, WAIT
from routing.outcome import Decision, Failure, Offer, Passed, Wait
from routing.room import TIMED, Room
from routing.survey import BY_NAME, BY_ONCE, NOTHING, Seen, Survey

LONGEST = timedelta(days=8)
LONGEST_WITHOUT_CREDIT = timedelta(days=1)
# Clocks of providers differ by a little: asked this much after the reset.
MARGIN = timedelta(seconds=5)
# With no reset known.
STEPS = (timedelta(minutes=15), timedelta(minutes=30), timedelta(hours=1))


class _Candidate(NamedTuple):
    """Somebody who could answer once their limit is over."""

    slug: str
    label: str
    room: Room


def wait_or_fail(survey: Survey, *, why: str = "", own: bool = True) -> Decision:
    """The turn waits for the earliest who could then answer, or fails where that is too far off (R16).

    `own`: the chat's own account is among them. `why` stands for the reason where the caller knows it.
    """
    could_later = list(_candidates(survey, own=own))
    if not could_later:
        return _fails(survey)
    since = survey.question.run.waiting_since or survey.now
    viable = [one for one in could_later if _in_time(one.room, since, survey.now)]
    if not viable:
        return _no_room(survey, could_later)
    wait = _wait(survey, viable, why or _why(survey, viable))
    return Decision("wait", survey.limit, wait=wait, why=survey.why())


def held(survey: Survey) -> Decision:
    """A routine's run at a limit is kept, with why and until when; nobody else is asked (R25)."""
    own = _Candidate(survey.question.engine, survey.own_label, _own_room(survey))
    return Decision("held", survey.limit, wait=_wait(survey, [own], "chosen"), why=survey.why())


def asked_again(survey: Survey, why: str, could: Offer | None = None) -> Decision:
    """A wait that no reset ends: it is asked again after 15 minutes, 30, then every hour, for at most 8 days (R16)."""
    since = survey.question.run.waiting_since or survey.now
    if survey.now - since >= LONGEST:
        return _no_room(survey, [])
    wake_at = survey.now + _step(survey.question.run.wakes)
    slug, label = survey.question.engine, survey.own_label
    wait = Wait(why, slug, None, wake_at, slug, label, could=could)
    return Decision("wait", survey.limit, wait=wait, why=survey.why())


def _candidates(survey: Survey, *, own: bool) -> Iterator[_Candidate]:
    """R16: who could answer once time alone has passed."""
    if own and survey.own is not None and not survey.own.carries.codes:
        yield _Candidate(survey.question.engine, survey.own_label, _own_room(survey))
    if survey.mode == WAIT:
        return
    for seen in survey.others if survey.mode == AUTO else _only(survey.pick):
        yes = NOTHING if survey.mode == AUTO else BY_NAME
        standing = seen.best(yes)
        codes = standing.beyond(yes)
        if codes and TIMED.issuperset(codes):
            yield _Candidate(standing.way.slug, seen.label, standing.room)


def _only(seen: Seen | None) -> list[Seen]:
    return [] if seen is None else [seen]


def _own_room(survey: Survey) -> Room:
    assert survey.own is not None, "only an account that is there is waited for"
    return survey.own.room


def _in_time(room: Room, since: datetime, now: datetime) -> bool:
    """Whether that one's limit is over before the turn has waited too long; holds end whenever they end."""
    if room.held_only:
        return True
    longest = since + (LONGEST_WITHOUT_CREDIT if room.no_credit else LONGEST)
    return now < longest and (room.free_at is None or room.free_at <= longest)


def _wait(survey: Survey, viable: list[_Candidate], why: str) -> Wait:
    known = [one for one in viable if one.room.free_at is not None]
    first = min(known, key=lambda one: one.room.free_at or survey.now, default=None)
    until = None if first is None or why == "holds" else first.room.free_at
    question = survey.question
    budget = question.budget.amount if why in {"holds", "budget", "needs_budget"} else None
    return Wait(
        why=why,
        for_=viable[0].slug if len(viable) == 1 else "room",
        until=until,
        wake_at=max(min(_asks(survey, one.room) for one in viable), survey.now + MARGIN),
        from_=question.engine,
        from_label=survey.own_label,
        next=None if first is None else Passed(first.slug, first.label, first.room.codes[0], first.room.free_at),
        could=_could(survey, why),
        pick=_pick(survey),
        budget=budget,
        local=survey.local_offer(),
    )


def _asks(survey: Survey, room: Room) -> datetime:
    """When the route is asked for that one's sake."""
    if room.free_at is not None:
        return room.free_at + MARGIN
    wakes = survey.question.run.wakes
    if wakes == 0 and room.retry_at is not None:
        return room.retry_at + MARGIN
    return survey.now + _step(wakes)


def _step(wakes: int) -> timedelta:
    return STEPS[min(max(wakes, 0), len(STEPS) - 1)]


def _why(survey: Survey, viable: list[_Candidate]) -> str:
    """What the line says about why nobody answers (copy.md 4.2)."""
    if survey.mode == WAIT:
        return "switched_back" if survey.switched_back else "chosen"
    if any(one.room.held_only for one in viable):
        return "holds"
    if survey.mode != AUTO:
        return _why_not_the_pick(survey)
    spent = any("over_budget" in one.room.codes for one in viable)
    for why in ("only_keys", "needs_budget", "budget", "tools"):
        if spent if why == "budget" else _first(survey, why) is not None:
            return why
    return "no_reset" if all(one.room.free_at is None for one in viable) else "room"


def _why_not_the_pick(survey: Survey) -> str:
    if survey.own_choice is not None and survey.own_choice.has(survey.mode):
        return "pick_is_limit"
    if survey.pick is None:
        return "pick_gone"
    codes = survey.pick.best(BY_NAME).beyond(BY_NAME)
    if codes[0] == "needs_budget":
        return "needs_budget"
    if codes[0] == "cannot_carry_tools":
        return "tools"
    return "pick_gone" if "signed_out" in codes else "pick_no_room"


# What may be in the way of one for each of these reasons; the first code is what must be among them.
_IN_THE_WAY = {
    "only_keys": ("paid_off", frozenset({"paid_off", "needs_budget"})),
    "needs_budget": ("needs_budget", frozenset({"needs_budget"})),
    "tools": ("cannot_carry_tools", frozenset({"cannot_carry_tools"})),
}


def _first(survey: Survey, why: str) -> Seen | None:
    """The first choice that only this keeps from answering."""
    code, others = _IN_THE_WAY[why]
    for seen in survey.others:
        codes = seen.best().codes
        if code in codes and others.issuperset(codes):
            return seen
    return None


def _could(survey: Survey, why: str) -> Offer | None:
    """Who could answer now at the person's word, where the line for that reason offers or names one."""
    if why in {"room", "no_reset", "budget", "holds"}:
        return None
    if survey.mode == AUTO and why in _IN_THE_WAY:
        seen = _first(survey, why)
        return None if seen is None else seen.offer(BY_ONCE)
    if why in {"needs_budget", "tools"} and survey.pick is not None:
        return survey.pick.offer(BY_ONCE)
    able = list(survey.able(BY_ONCE))
    last = survey.chat.last_route.to if survey.chat.last_route is not None else ""
    before = [seen for seen in able if why == "switched_back" and seen.choice.has(last)]
    return next((seen.offer(BY_ONCE) for seen in before + able), None)


def _pick(survey: Survey) -> Offer | None:
    """The person's pick, by the name it is known by."""
    if survey.mode in {AUTO, WAIT}:
        return None
    if survey.pick is not None:
        return survey.pick.offer(BY_NAME)
    own = survey.own_choice is not None and survey.own_choice.has(survey.mode)
    return Offer(survey.mode, survey.own_label if own else survey.mode, "")


def _no_room(survey: Survey, too_far: list[_Candidate]) -> Decision:
    """R16: it would wait too long. Says what would help."""
    resets = [one.room.free_at for one in too_far if one.room.free_at is not None]
    spent = any("over_budget" in one.room.codes for one in too_far)
    local = survey.local_offer()
    failure = Failure(
        "no_room",
        survey.question.engine,
        survey.own_label,
        offers=survey.offers() + (() if local is None else (local,)),
        until=min(resets, default=None),
        reason="budget" if spent else "",
        budget=survey.question.budget.amount if spent else None,
    )
    return Decision("fail", survey.limit, failure=failure, why=survey.why())


def _fails(survey: Survey) -> Decision:
    """Nobody could answer later either: the chat's account is gone, or its model can't take this message."""
    return Decision("fail", survey.limit, failure=failure_of_own(survey), why=survey.why())


def failure_of_own(survey: Survey) -> Failure:
    """Why the chat's own account can't answer this message, and who could (R11, R36)."""
    slug, label, own = survey.question.engine, survey.own_label, survey.own
    if own is None:
        return Failure("no_account", slug, label, survey.offers())
    code = "signed_out" if "signed_out" in own.codes else own.carries.codes[0]
    return Failure(code, slug, label, survey.offers(), model=own.way.model.label or own.way.model.id)
