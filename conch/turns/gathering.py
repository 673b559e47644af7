"""What the steps of a run share: the turn with its chat, who looks at it, and the events told so far."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from conch.copy import lines
from conch.copy.clock import UTC, Viewer
from conch.engines.base import Access, EngineError, LimitReached, Rejected, Request, SignedOut, Tool
from conch.models import Conversation, Line, ToolCall, Turn
from conch.turns import statements
from conch.turns.events import Event
from conch.turns.handoff import Said
from conch.turns.record import Tried
from routing.facts import Question
from routing.facts import Tried as Asked
from routing.outcome import Decision


@dataclass(frozen=True, slots=True)
class RunSoFar:
    """What one run has tried (R17): who is passed over, and what was learned for one more try of the same account."""

    tried: tuple[Asked, ...] = ()
    # Account → the output tokens that it says it can pay for (R34); account → the tokens that fit, as counted (R31).
    affordable: dict[str, int] = field(default_factory=dict)
    fits: dict[str, int] = field(default_factory=dict)
    # Accounts whose stored model is gone: asked once more with their default model.
    default_model: frozenset[str] = frozenset()
    # Accounts that turned out not to see the older images of the chat: asked once more without them.
    blind: frozenset[str] = frozenset()
    offline: bool = False
    once: str = ""
    carry_on: str = ""

    def refused(self, slug: str, error: LimitReached) -> "RunSoFar":
        """The same, and that one refused for a limit."""
        return _with(self, tried=(*self.tried, Asked(slug, "refused", error.until)))

    def unable(self, slug: str, error: EngineError) -> "RunSoFar":
        """The same, and that one was unable at no cost."""
        code = "signed_out" if isinstance(error, SignedOut) else "unable"
        if isinstance(error, Rejected) and error.reason == "model_gone":
            code = "model_gone"
        return _with(self, tried=(*self.tried, Asked(slug, code)))


def _with(so_far: RunSoFar, **changed: Any) -> RunSoFar:
    from dataclasses import replace

    return replace(so_far, **changed)


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked now, with all that the engine needs; `own`: the chat's own account, which starts no switch.

    `consent`: the yes by which it is paid (R27). `reads`: the most tokens that its model takes, where that is known.
    """

    engine: str
    access: Access
    request: Request
    tried: Tried
    label: str
    billing: str
    own: bool
    default_model: str = ""
    consent: str = ""
    reads: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """What a step of the route led to: somebody is asked, or the turn rests or has ended (`asked` None)."""

    run: int
    events: list[Event]
    decision: Decision
    question: Question
    asked: Asking | None = None
    following: int | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """The turn is claimed; first the calls run that the person said yes to, then its route is asked."""

    run: int
    events: list[Event]
    calls: list[ToolCall]


@dataclass(frozen=True, slots=True)
class Halted:
    """The person stopped the turn before its route was asked again: nobody is asked any more, and it doesn't wait."""


class Telling:
    """A turn in a step: its rows, its viewer, and the events that the step tells, each at the next id."""

    def __init__(self, turn: Turn, now: datetime, position: int) -> None:
        self.turn = turn
        self.chat: Conversation = turn.conversation
        self.now = now
        self.position = position
        self.events: list[Event] = []
        self._viewer: Viewer | None = None
        self._lines: list[Line] | None = None

    @property
    def viewer(self) -> Viewer:
        """The person's zone and hour cycle, for the sentences in events."""
        if self._viewer is None:
            self._viewer = viewer_of(self.chat.person_id, self.now)
        return self._viewer

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """One event more."""
        self.position += 1
        self.events.append(Event(self.position, kind, data))

    def say(self, kind: str, data: dict[str, Any], *, instead_of: Line | None = None) -> Line:
        """A line in the chat, new or written over another."""
        if instead_of is None:
            line = statements.insert_line(self.chat.pk, self.turn.pk, kind, data, self.now)
            if self._lines is not None:
                self._lines.append(line)
            return line
        Line.objects.filter(pk=instead_of.pk).update(kind=kind, data=data, at=self.now)
        instead_of.kind, instead_of.data, instead_of.at = kind, data, self.now
        return instead_of

    def tell_line(self, line: Line) -> None:
        """The event for a line that has none of its own."""
        said = {"id": line.pk, "kind": line.kind, "text": self.words(line.kind, line.data), "data": line.data}
        self.tell("line", said)

    def words(self, kind: str, data: dict[str, Any]) -> str:
        """The line's sentence as this person reads it."""
        return lines.text(kind, data, self.viewer)

    def line_of(self, *kinds: str) -> Line | None:
        """The turn's own line of one of those kinds, the latest."""
        if self._lines is None:
            self._lines = statements.lines_of(self.turn.pk)
        return next((line for line in reversed(self._lines) if line.kind in kinds), None)

    def keep(self) -> None:
        """Write the events down."""
        statements.insert_events((event, self.turn.pk, self.turn.run) for event in self.events)


def viewer_of(person_id: int, now: datetime) -> Viewer:
    """Who that person is as a reader of times."""
    zone, cycle = statements.reader(person_id)
    return Viewer(now, ZoneInfo(zone) if zone else UTC, cycle)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The chat as it may be sent, with the question that the route answers, and the tools that it may use.

    `beside`: the tokens of those tools, which go along with whatever is sent.
    """

    said: list[Said]
    question: Question
    labels: dict[str, str]
    tools: tuple[Tool, ...] = ()
    beside: int = 0
