"""Steps for the calls that models ask for: each is kept once for its turn, asks where it must, and ends once (R17).

A call with the same tool and arguments is the same call in every run of its turn, whoever asks for it: it gets the
outcome it already had. One that was running when its process ended isn't run again; a person's *Try again* forgets them
all. What a tool gave is data: it goes to the model and onto the page, and nothing here reads it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from conch import tools
from conch.engines.wire_text import clean, clean_json
from conch.models import ToolCall, Turn
from conch.tools import Offered
from conch.turns.accept import turn_of
from conch.turns.errors import NotHere, Stopped
from conch.turns.waiting import TOOL

ALWAYS, NO = "always", "no"

NOT_KNOWN = "It isn't known whether this call finished. It is not run again for this message."
DECLINED = "The person said no to this call."
NO_SUCH_TOOL = "There is no such tool in this chat."
LONG_OUTCOME = 10_000  # characters of an outcome that go into an event


@dataclass(frozen=True, slots=True)
class Taken:
    """A call as it stands; with `offered` it is this process that runs it now, for that person."""

    row: ToolCall | None = None
    offered: Offered | None = None
    person_id: int = 0

    @property
    def asks(self) -> bool:
        """Whether the person is to be asked first."""
        return self.row is not None and self.row.state == ToolCall.State.ASKED

    @property
    def outcome(self) -> tuple[str, bool]:
        """What the model is told, and whether it failed."""
        if self.row is None:
            return NO_SUCH_TOOL, True
        return self.row.outcome, self.row.state != ToolCall.State.DONE


def digest_of(arguments: Mapping[str, Any]) -> str:
    """The same for arguments that mean the same: the order of names and 1 or 1.0 make no difference."""
    return sha256(json.dumps(_plain(arguments), sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def take(turn_id: int, run: int, account: str, name: str, arguments: Mapping[str, Any], now: datetime) -> Taken:
    """Take a call in: what it gave already, that it asks, or that it is to be run now (`running` from here on).

    What the person allows is looked up here, for every call: it may have changed since the tools were offered. Raises
    Stopped where the turn isn't this run's any more: whoever has it now, or ended it, runs its calls.
    """
    turn = Turn.objects.select_related("conversation").get(pk=turn_id)
    if not goes_on(turn, run):
        raise Stopped
    arguments = clean_json(arguments)
    digest = digest_of(arguments)
    row = ToolCall.objects.filter(turn_id=turn_id, name=name, digest=digest, forgotten=False).first()
    if row is not None and row.state in ToolCall.ENDS:
        return Taken(row)
    if row is not None and row.state == ToolCall.State.RUNNING:
        return Taken(_ended(row, ToolCall.State.FAILED, NOT_KNOWN, now))
    offered = _offered(turn, name)
    if offered is not None and row is not None and (row.server, row.tool) != (offered.server, offered.tool):
        offered = None  # a server's other tool has that name by now: the person's yes was for the one before
    if offered is None:
        return Taken(_ended(row, ToolCall.State.FAILED, NO_SUCH_TOOL, now) if row is not None else None)
    if row is None:
        row = ToolCall.objects.create(
            turn_id=turn_id,
            run=run,
            account=account,
            server=offered.server,
            tool=offered.tool,
            name=name,
            title=offered.title[:300],
            arguments=arguments,
            digest=digest,
            tool_digest=offered.digest,
            state=ToolCall.State.ASKED,
            asked_at=now,
        )
    elif row.tool_digest != offered.digest:
        row = _asks_anew(row, offered, now)
    return _begun(row, offered, turn.conversation.person_id, now)


def not_as_asked(row: ToolCall, now: datetime) -> ToolCall:
    """A call that didn't run since its tool isn't what it was: it asks anew, or fails where the tool is gone."""
    turn = Turn.objects.select_related("conversation").get(pk=row.turn_id)
    offered = _offered(turn, row.name)
    if offered is None or (row.server, row.tool) != (offered.server, offered.tool):
        return _ended(row, ToolCall.State.FAILED, NO_SUCH_TOOL, now)
    return _asks_anew(row, offered, now)


def _asks_anew(row: ToolCall, offered: Offered, now: datetime) -> ToolCall:
    """Whatever was said to it was said to the tool as it described itself before (docs/decisions/0014).

    It asks under another id: a press on the question as it was, in another tab or a moment too late, answers none.
    """
    same = ("turn_id", "run", "account", "server", "tool", "name", "arguments", "digest")
    anew = {"tool_digest": offered.digest, "title": offered.title[:300], "changed": True, "asked_at": now}
    ToolCall.objects.filter(pk=row.pk).delete()
    kept = {name: getattr(row, name) for name in same}
    return ToolCall.objects.create(state=ToolCall.State.ASKED, **kept, **anew)


def goes_on(turn: Turn, run: int) -> bool:
    """Whether that run is still the turn's, and nobody has asked it to stop."""
    return turn.state == Turn.State.RUNNING and turn.run == run and not turn.stop_asked


def _offered(turn: Turn, name: str) -> Offered | None:
    chat = turn.conversation
    return next((one for one in tools.offered(chat.person_id, chat.tools) if one.name == name), None)


def _begun(row: ToolCall, offered: Offered, person_id: int, now: datetime) -> Taken:
    """Run it now where it may; one that the person allowed, or always allows, needs no other word."""
    if row.state != ToolCall.State.ALLOWED and offered.permission != ALWAYS:
        return Taken(row)
    ToolCall.objects.filter(pk=row.pk).update(state=ToolCall.State.RUNNING, started_at=now)
    row.state, row.started_at = ToolCall.State.RUNNING, now
    return Taken(row, offered, person_id)


def _ended(row: ToolCall, state: ToolCall.State, outcome: str, now: datetime) -> ToolCall:
    ToolCall.objects.filter(pk=row.pk).update(state=state, outcome=outcome, ended_at=now)
    row.state, row.outcome, row.ended_at = state, outcome, now
    return row


def end(row: ToolCall, outcome: str, now: datetime, *, failed: bool) -> ToolCall:
    """Keep what came of a call that ran."""
    return _ended(row, ToolCall.State.FAILED if failed else ToolCall.State.DONE, clean(outcome), now)


def allowed(turn_id: int) -> list[ToolCall]:
    """The calls that the person said yes to and that haven't run."""
    return list(ToolCall.objects.filter(turn_id=turn_id, state=ToolCall.State.ALLOWED, forgotten=False).order_by("pk"))


def asks(turn_id: int) -> list[ToolCall]:
    """The calls that ask."""
    return list(ToolCall.objects.filter(turn_id=turn_id, state=ToolCall.State.ASKED, forgotten=False).order_by("pk"))


def declined(turn_id: int, run: int) -> list[ToolCall]:
    """The calls of that run that the person said no to."""
    return list(ToolCall.objects.filter(turn_id=turn_id, run=run, state=ToolCall.State.DECLINED).order_by("pk"))


def have_run(turn_id: int) -> bool:
    """Whether a call of the turn was begun, since its person last pressed Try again."""
    return ToolCall.objects.filter(turn_id=turn_id, forgotten=False).exclude(started_at=None).exists()


def leave(turn_id: int, now: datetime) -> None:
    """Nobody waits for what still runs: what came of it isn't known."""
    running = ToolCall.objects.filter(turn_id=turn_id, state=ToolCall.State.RUNNING)
    running.update(state=ToolCall.State.FAILED, outcome=NOT_KNOWN, ended_at=now)


def ask_no_more(turn_id: int) -> None:
    """Whoever asks now may ask again: calls that wait for a word are as if they had not been."""
    ToolCall.objects.filter(turn_id=turn_id, state=ToolCall.State.ASKED).delete()


def close(turn_id: int, now: datetime) -> None:
    """The turn has come to an end: nothing of it runs or asks on, and a yes that nothing came of is none any more."""
    leave(turn_id, now)
    ToolCall.objects.filter(turn_id=turn_id, state__in=[ToolCall.State.ASKED, ToolCall.State.ALLOWED]).delete()


def forget(turn_id: int, now: datetime) -> None:
    """A person's Try again: every call of the turn may run again (R17)."""
    leave(turn_id, now)
    ToolCall.objects.filter(turn_id=turn_id, state__in=[ToolCall.State.ASKED, ToolCall.State.ALLOWED]).delete()
    ToolCall.objects.filter(turn_id=turn_id, forgotten=False).update(forgotten=True)


def answer(person_id: int, turn_id: int, call_id: int, allow: str, now: datetime) -> bool:
    """The person's word on a call: "once", "always" or "no". True where the turn is to go on now.

    Pressed again, or in two tabs, the first stands. *Always* holds for the other calls of that tool in this turn too.
    A yes to a tool that describes itself otherwise by now is none: the call asks anew, and a press on the question that
    it was is none either. Raises NotHere for a call that isn't the person's.
    """
    turn = turn_of(person_id, turn_id)
    row = ToolCall.objects.filter(pk=call_id, turn_id=turn.pk, forgotten=False).first()
    if row is None:
        if any(call.changed for call in asks(turn.pk)):
            return False
        raise NotHere
    # Words on two calls, or a word and the turn's coming to rest, in two processes: one after the other.
    Turn.objects.select_for_update().only("pk").get(pk=turn.pk)
    asking = ToolCall.objects.filter(turn_id=turn.pk, state=ToolCall.State.ASKED, forgotten=False)
    one = asking.filter(pk=call_id)
    if allow != NO and _is_another(person_id, row) and one.exists():
        not_as_asked(row, now)
        return False
    if allow == NO:
        answered = one.update(state=ToolCall.State.DECLINED, outcome=DECLINED, ended_at=now)
    else:
        answered = one.update(state=ToolCall.State.ALLOWED)
    if not answered:
        return False
    if allow == ALWAYS:
        tools.allow_always(person_id, row.server, row.tool)
        same = asking.filter(server=row.server, tool=row.tool, tool_digest=row.tool_digest)
        same.update(state=ToolCall.State.ALLOWED)
    if asking.exists():
        return False
    # Whoever looks next wakes it, should this process end here.
    resting = Turn.objects.filter(pk=turn.pk, state=Turn.State.WAITING, waits_for=TOOL)
    return bool(resting.update(wake_at=now))


def _is_another(person_id: int, row: ToolCall) -> bool:
    """Whether the tool is still there and isn't what it was when the call asked."""
    there = (one.digest for one in tools.offered(person_id, [row.server]) if one.tool == row.tool)
    return next(there, row.tool_digest) != row.tool_digest


def facts_of(row: ToolCall) -> dict[str, Any]:
    """A call as it is given out: what was asked for, by whom, and what came of it."""
    return {
        "id": row.pk,
        "name": row.name,
        "title": row.title,
        "account": row.account,
        "state": row.state,
        "arguments": row.arguments,
        "outcome": row.outcome,
        "seconds": seconds_of(row),
        "forgotten": row.forgotten,
    }


def told(row: ToolCall) -> dict[str, Any]:
    """The data of the event `tool`; a long outcome is cut, the turn has all of it."""
    return facts_of(row) | {"outcome": row.outcome[:LONG_OUTCOME]}


def seconds_of(row: ToolCall) -> float | None:
    """How long it ran; None where it hasn't, or hasn't ended."""
    if row.started_at is None or row.ended_at is None:
        return None
    return round((row.ended_at - row.started_at).total_seconds(), 3)
