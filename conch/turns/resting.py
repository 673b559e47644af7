"""A turn that nobody answers now: it waits, is held by the chat's cap, or fails before anything was sent."""

from datetime import datetime
from typing import Any

from conch.models import Account, Conversation, Line, Turn
from conch.turns import calls, failures
from conch.turns.accept import next_queued
from conch.turns.gathering import Begun, Gathered, Telling
from routing.outcome import Decision, Failure, Unstay, Wait


def rest(telling: Telling, gathered: Gathered, decision: Decision) -> Begun:
    """Let the turn wait, hold it or end it, as the decision says."""
    if decision.unstay is not None:
        say_stay_ended(telling, decision.unstay)
    if decision.kind == "held":
        return _fail(telling, gathered, decision, _held(decision))
    if decision.kind == "wait":
        _wait(telling, decision)
    elif decision.kind == "capped":
        _cap(telling, decision)
    else:
        assert decision.failure is not None
        return _fail(telling, gathered, decision, decision.failure)
    telling.keep()
    return Begun(telling.turn.run, telling.events, decision, gathered.question)


def say_stay_ended(telling: Telling, unstay: Unstay) -> None:
    """The chat is again its first account's, and a line says so, whoever answers this turn, and when (R21)."""
    telling.tell_line(telling.say("limit.unstayed", unstay.data()))
    Conversation.objects.filter(pk=telling.chat.pk).update(
        account=unstay.account,
        model=telling.chat.stayed_from_model,
        stayed_from="",
        stayed_from_model="",
        stayed_consent="",
    )


def fail_for_money(telling: Telling, gathered: Gathered, decision: Decision) -> Begun:
    """What was left went to other turns twice in a row: end the turn, having sent nothing."""
    failure = Failure("no_room", decision.answers or "", decision.label, reason="budget")
    return _fail(telling, gathered, decision, failure)


def _held(decision: Decision) -> Failure:
    """A routine's run at a limit: kept, with whose limit and until when; it doesn't wait (R25)."""
    wait = decision.wait
    assert wait is not None
    return Failure("held", wait.from_, wait.from_label, until=wait.until)


def go_on(turn: Turn, decision: Decision, now: datetime) -> None:
    """A turn that was asked again and waits on: when it is asked next, and its line, where the words have changed."""
    telling = Telling(turn, now, turn.position)
    line = telling.line_of("limit.waiting", "limit.capped")
    if decision.wait is not None:
        counted = {"wakes": turn.wakes + 1} if decision.wait.until is None else {}
        Turn.objects.filter(pk=turn.pk, state__in=[Turn.State.WAITING, Turn.State.CAPPED]).update(
            state=Turn.State.WAITING, **_wait_columns(decision), **counted
        )
        _say_again(telling, line, "limit.waiting", _waiting(telling, decision.wait))
    elif decision.capped is not None:
        Turn.objects.filter(pk=turn.pk, state__in=[Turn.State.WAITING, Turn.State.CAPPED]).update(
            state=Turn.State.CAPPED, wake_at=None, until=None
        )
        _say_again(telling, line, "limit.capped", _capped(decision))


def _say_again(telling: Telling, line: Line | None, kind: str, data: dict[str, Any]) -> None:
    if line is None or line.kind != kind or line.data != data:
        telling.say(kind, data, instead_of=line)


def _wait_columns(decision: Decision) -> dict[str, Any]:
    wait = decision.wait
    assert wait is not None
    return {"waits_for": wait.for_, "until": wait.until, "wake_at": wait.wake_at}


def _wait(telling: Telling, decision: Decision) -> None:
    wait = decision.wait
    assert wait is not None
    turn, data = telling.turn, _waiting(telling, wait)
    line = telling.say("limit.waiting", data, instead_of=telling.line_of("limit.waiting", "limit.capped", "limit.sent"))
    telling.tell("waiting", {"for": wait.for_, "until": data["until"], "text": telling.words(line.kind, data)})
    Turn.objects.filter(pk=turn.pk, run=turn.run).update(
        state=Turn.State.WAITING,
        position=telling.position,
        waiting_since=turn.waiting_since or telling.now,
        lease_until=None,
        owner="",
        **_wait_columns(decision),
    )


def _waiting(telling: Telling, wait: Wait) -> dict[str, Any]:
    """What the waiting line says. A pick that is gone is unknown to the route; it is named as it was last called."""
    data = wait.data()
    if wait.why == "pick_gone" and wait.pick is not None and wait.pick.label == wait.pick.slug:
        picked = Account.objects.filter(person_id=telling.chat.person_id, slug=wait.pick.slug)
        label = picked.values_list("label", flat=True).first()
        data["pick"] |= {"label": label or wait.pick.label}
    return data


def _capped(decision: Decision) -> dict[str, Any]:
    assert decision.capped is not None
    return decision.capped.data() | {"account": decision.answers, "label": decision.label}


def _cap(telling: Telling, decision: Decision) -> None:
    turn, data = telling.turn, _capped(decision)
    telling.say("limit.capped", data, instead_of=telling.line_of("limit.waiting", "limit.capped", "limit.sent"))
    telling.tell("capped", {"spent": data["spent"], "cap": data["cap"], "text": telling.words("limit.capped", data)})
    Turn.objects.filter(pk=turn.pk, run=turn.run).update(
        state=Turn.State.CAPPED, position=telling.position, lease_until=None, owner="", wake_at=None, until=None
    )


def _fail(telling: Telling, gathered: Gathered, decision: Decision, failed: Failure) -> Begun:
    turn, failure = telling.turn, failed.data()
    if calls.have_run(turn.pk):
        failure["after_tools"] = True
    Line.objects.filter(turn_id=turn.pk, kind__in=["limit.waiting", "limit.capped"]).delete()
    telling.tell("failed", failures.said(failure, telling.viewer))
    Turn.objects.filter(pk=turn.pk, run=turn.run).update(
        state=Turn.State.FAILED,
        position=telling.position,
        failure_code=failure["code"],
        failure=failure,
        ended_at=telling.now,
        lease_until=None,
        wake_at=None,
        until=None,
        waits_for="",
    )
    if turn.unattended:
        # Nobody was looking: the chat is marked, as for an answer.
        Conversation.objects.filter(pk=telling.chat.pk).update(updated_at=telling.now, unread=True)
    telling.keep()
    following = next_queued(telling.chat.pk)
    return Begun(turn.run, telling.events, decision, gathered.question, following=following)
