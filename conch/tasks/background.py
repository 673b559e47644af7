"""Background tasks: a prompt that runs without a page open, with what it does now and what came of it (R25)."""

from dataclasses import dataclass
from datetime import datetime

from conch.chat import markdown
from conch.chat.called import asks
from conch.chat.pressing import Press, press
from conch.chat.shown import Names, names_of
from conch.copy import tasks as copy
from conch.copy.clock import Viewer
from conch.copy.failures import failure_said
from conch.copy.lines import line_said
from conch.copy.sentences import Said
from conch.models import Line, Task, ToolCall, Turn, TurnEvent
from conch.tasks.agents import Beginning
from conch.tasks.chats import begun
from conch.turns.errors import NotHere

TASKS_A_PAGE = 50
BEGINNING = 1_200  # characters of an answer, of which a list shows the first words
UNFINISHED = (Turn.State.QUEUED, Turn.State.RUNNING, Turn.State.WAITING, Turn.State.CAPPED)


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn that ran without a page, for a list. `now`: what it does, or came of it; `said`: a line in the way.

    `asked`: how the prompt begins. `unread`: its chat wasn't opened since it ended. `stops`: it can be stopped.
    """

    turn: int
    chat: int
    asked: str
    state: str
    tag: str
    tag_kind: str
    now: str
    at: datetime
    said: Said | None = None
    presses: tuple[Press, ...] = ()
    unread: bool = False
    stops: bool = False


def begin(person_id: int, how: Beginning, text: str, key: str, now: datetime) -> int:
    """A step: the task's chat and turn, whose id is returned; pressed twice, the first stands."""
    turn = begun(person_id, how, text, now, key=key, routine=False)
    Task.objects.get_or_create(
        turn=turn, defaults={"person_id": person_id, "conversation_id": turn.conversation_id, "created_at": now}
    )
    return turn.pk


def own(person_id: int, task_id: int) -> Task:
    """The person's task. Raises NotHere."""
    task = Task.objects.filter(pk=task_id, person_id=person_id).select_related("turn").first()
    if task is None:
        raise NotHere
    return task


def listed(person_id: int, viewer: Viewer) -> list[tuple[Task, Shown]]:
    """The person's newest tasks whose chats are there, the latest first; four queries however many."""
    tasks = Task.objects.filter(person_id=person_id, conversation__deleted_at=None).order_by("-pk")
    found = list(tasks.select_related("turn", "conversation")[:TASKS_A_PAGE])
    shown = present([task.turn for task in found], {task.conversation_id: task.conversation.unread for task in found},
                    names_of(person_id), viewer)  # fmt: skip
    return list(zip(found, shown, strict=True))


def present(turns: list[Turn], unread: dict[int, bool], names: Names, viewer: Viewer) -> list[Shown]:
    """Those turns for a list, in three queries."""
    open_turns = [turn.pk for turn in turns if turn.state in UNFINISHED]
    lines = {
        line.turn_id: line
        for line in Line.objects.filter(turn__in=open_turns, kind__in=["limit.waiting", "limit.capped"]).order_by("pk")
    }
    told = (
        TurnEvent.objects.filter(turn__in=open_turns, kind="progress").order_by("pk").values_list("turn", "run", "data")
    )
    asking = {
        call.turn_id: call for call in ToolCall.objects.filter(turn__in=open_turns, state="asked").order_by("-pk")
    }
    steps = {(turn, run): str(data.get("text", "")) for turn, run, data in told}
    return [
        _asks(turn, asking[turn.pk], names)
        if turn.pk in asking
        else _shown(turn, lines.get(turn.pk), steps.get((turn.pk, turn.run), ""), names, viewer, unread=unread)
        for turn in turns
    ]


def _asks(turn: Turn, call: ToolCall, names: Names) -> Shown:
    """A task whose tool asks the person first: the question, with its answers."""
    by = names.by(call.account, "")
    question = asks(call, by.label if by else call.account)
    tag, kind = copy.tag(turn.state, "")
    beginning = copy.beginning_of(turn.text)
    return Shown(turn.pk, turn.conversation_id, beginning, turn.state, tag, kind, "", turn.created_at,
                 said=question.said, presses=question.presses, stops=True)  # fmt: skip


def _shown(turn: Turn, line: Line | None, step: str, names: Names, viewer: Viewer, *, unread: dict[int, bool]) -> Shown:
    said: Said | None = None
    if turn.state in {Turn.State.WAITING, Turn.State.CAPPED} and line is not None:
        said = line_said(line.kind, line.data, viewer)
    elif turn.state in {Turn.State.FAILED, Turn.State.INTERRUPTED} and turn.failure_code:
        said = failure_said(turn.failure, viewer)
    by = names.by(turn.account, turn.model)
    tag, kind = copy.tag(turn.state, turn.failure_code)
    answer = markdown.words(turn.answer[:BEGINNING])
    at_rest = turn.state in {Turn.State.WAITING, Turn.State.CAPPED}
    buttons = said.buttons if said is not None and at_rest else ()
    return Shown(
        turn=turn.pk,
        chat=turn.conversation_id,
        asked=copy.beginning_of(turn.text),
        state=turn.state,
        tag=tag,
        tag_kind=kind,
        now="" if said else copy.doing(turn.state, by.label if by else "", step, answer, turn.started_at, viewer),
        at=turn.ended_at or turn.created_at,
        said=said,
        presses=tuple(
            press(button, turn.conversation_id, turn.pk, turn.run) for button in buttons if button.act != "cancel"
        ),
        unread=turn.state not in UNFINISHED and unread.get(turn.conversation_id, False),
        stops=turn.state in UNFINISHED,
    )
