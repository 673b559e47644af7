"""Rows of a chat as its page shows them: turns with their lines, answers, failures and what can be done about each.

One way only, in a fixed number of queries for however many turns.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from django.db.models import Count, Max, Q, QuerySet
from django.utils.safestring import SafeString, mark_safe

from conch.accounts.defaults import LOCAL, billing_of
from conch.chat import markdown
from conch.chat.called import ShownCall, shown_calls
from conch.chat.pressing import Press, press
from conch.copy.clock import Viewer
from conch.copy.failures import ending_said
from conch.copy.lines import failure_said, line_said
from conch.copy.sentences import CALM, RETRY, Button, Said
from conch.copy.sentences import said as say
from conch.engines import local_models
from conch.engines.base import Billing
from conch.models import Account, Attachment, Attempt, Conversation, Line, ToolCall, Turn
from conch.money import from_nano, shown

TURNS_A_PAGE = 50
AFTER_THE_ANSWER = ("limit.extra",)
# A message longer than this is folded: what was pasted into it is rarely read again.
LONG, FIRST_WORDS = 4_000, 280


@dataclass(frozen=True, slots=True)
class By:
    """Who answers: its engine (for the badge), its name and the model's."""

    engine: str
    label: str
    model: str

    @property
    def name(self) -> str:
        """The name alone; `whose` is what tells it from another that reads the same."""
        return self.label.partition(" · ")[0]

    @property
    def whose(self) -> str:
        """Whose it is, where the label says so."""
        return self.label.partition(" · ")[2]


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line with its place in the page, and where each of its buttons goes."""

    id: str
    said: Said
    presses: tuple[Press, ...] = ()
    focus: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What an attempt that didn't become the answer had written, folded (R17)."""

    label: str
    html: SafeString


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One message and what answers it. `watched`: this page follows its stream; `edited`: it has earlier versions."""

    id: int
    run: int
    conversation: int
    state: str
    text: SafeString
    source: str
    long: bool
    pictures: tuple[int, ...]
    by: By | None
    answer: SafeString
    before: tuple[ShownLine, ...]
    after: tuple[ShownLine, ...]
    problem: ShownLine | None
    written: tuple[Written, ...]
    cost: str
    watched: bool
    behind: bool
    retries: bool
    focus: bool = False
    edited: bool = False
    calls: tuple[ShownCall, ...] = ()

    @property
    def spoken(self) -> str:
        """What a screen reader says once its run has ended or rests."""
        if self.state == Turn.State.DONE:
            return f"{self.by.label} answered." if self.by else "Answered."
        if self.problem is not None:
            return self.problem.said.spoken
        if (asks := next((call.asks for call in self.calls if call.asks is not None), None)) is not None:
            return asks.said.spoken
        return self.before[-1].said.spoken if self.before else ""

    @property
    def characters(self) -> str:
        """How long the message is, for people."""
        return f"{len(self.source):,}"

    @property
    def beginning(self) -> SafeString:
        """How a long message begins, for where it is folded."""
        return mark_safe(markdown.visible(self.source[:FIRST_WORDS]))  # noqa: S308  visible() escapes

    @property
    def unanswered(self) -> bool:
        """Whether there is nothing of an answer to show: it waits, or failed before anything was sent."""
        return not self.watched and not self.answer


@dataclass(frozen=True, slots=True)
class Names:
    """What accounts and their models are called, those that are gone too."""

    accounts: Mapping[str, By] = field(default_factory=dict)
    models: Mapping[tuple[str, str], str] = field(default_factory=dict)
    free: frozenset[str] = frozenset()

    def by(self, slug: str, model: str) -> By | None:
        """Who an answer is by; None where nobody was asked."""
        if not slug:
            return None
        known = self.accounts.get(slug)
        label = self.models.get((slug, model), model)
        if slug == LOCAL:
            return By(LOCAL, known.label if known else label, "on this computer")
        return By(known.engine if known else "", known.label if known else slug, label)


def names_of(person_id: int) -> Names:
    """The names of that person's accounts; where two read alike, whose each is."""
    columns = ("slug", "engine", "label", "whose", "key_hint", "known_models", "removed_at")
    rows = list(Account.objects.filter(person_id=person_id).values_list(*columns))
    labels = [label for _, _, label, _, _, _, removed in rows if removed is None]
    accounts, models, free = {}, {}, {LOCAL}
    for slug, engine, label, whose, hint, known, _ in rows:
        more = whose or hint
        accounts[slug] = By(engine, f"{label} · {more}" if more and labels.count(label) > 1 else label, "")
        if billing_of(engine) is not Billing.KEY:
            free.add(slug)
        for one in known if isinstance(known, list) else ():
            models[slug, str(one.get("id"))] = str(one.get("label") or one.get("id"))
    local = local_models.facts(local_models.setup())
    accounts[LOCAL] = By(LOCAL, local.label or "The model on this computer", "")
    return Names(accounts, models, frozenset(free))


@dataclass(frozen=True, slots=True)
class Rows:
    """What a page of turns is made of, read at once."""

    turns: Sequence[Turn]
    lines: Mapping[int | None, Sequence[Line]]
    attempts: Mapping[int | None, Sequence[Attempt]]
    pictures: Mapping[int | None, Sequence[int]]
    unfinished: Sequence[tuple[int, str, datetime | None]]  # id, state, what it waits until
    latest_routed: int | None
    last: int | None
    stamp: str
    edited: frozenset[int | None] = frozenset()
    calls: Mapping[int | None, Sequence[ToolCall]] = field(default_factory=dict)


def stamp_of(chat: Conversation) -> str:
    """What a page that looks again compares: the same stamp, nothing to show."""
    current = Turn.objects.filter(conversation=chat, replaced_by=None)
    open_turns = list(current.exclude(state__in=Turn.ENDS).order_by("pk").values_list("pk", "state"))
    lines = chat.lines.aggregate(count=Count("pk"), last=Max("at"))
    mine = Conversation.objects.filter(person_id=chat.person_id)
    others = mine.aggregate(last=Max("updated_at"), unread=Count("pk", filter=Q(unread=True, deleted_at=None)))
    asking = list(ToolCall.objects.filter(turn__conversation=chat, state="asked").order_by("pk").values_list("pk"))
    facts = (open_turns, chat.account, chat.model, chat.waits_until, lines, others, asking)
    return sha256(repr(facts).encode()).hexdigest()[:16]


def read(conversation: Conversation, turns: QuerySet[Turn]) -> Rows:
    """Everything about those turns of the chat, the oldest first, in a fixed number of queries.

    What a later look compares is read first: what changes meanwhile is then found by it.
    """
    stamp = stamp_of(conversation)
    current = Turn.objects.filter(conversation=conversation, replaced_by=None)
    states = current.exclude(state__in=Turn.ENDS).order_by("pk").values_list("pk", "state", "until")
    unfinished = {pk: (pk, state, until) for pk, state, until in states}
    found = list(turns.order_by("pk"))
    unfinished |= {turn.pk: (turn.pk, turn.state, turn.until) for turn in found if turn.pk in unfinished}
    ids = [turn.pk for turn in found]
    lines: dict[int | None, list[Line]] = defaultdict(list)
    attempts: dict[int | None, list[Attempt]] = defaultdict(list)
    pictures: dict[int | None, list[int]] = defaultdict(list)
    for line in Line.objects.filter(conversation=conversation, turn__in=ids).order_by("pk"):
        lines[line.turn_id].append(line)
    for attempt in Attempt.objects.filter(turn__in=ids).exclude(partial="").order_by("pk"):
        attempts[attempt.turn_id].append(attempt)
    for turn_id, pk in Attachment.objects.filter(turn__in=ids).order_by("pk").values_list("turn_id", "pk"):
        pictures[turn_id].append(pk)
    calls: dict[int | None, list[ToolCall]] = defaultdict(list)
    for call in ToolCall.objects.filter(turn__in=ids, forgotten=False).order_by("pk"):
        calls[call.turn_id].append(call)
    routed = Line.objects.filter(conversation=conversation, kind="limit.routed").order_by("-pk")
    return Rows(
        found,
        lines,
        attempts,
        pictures,
        [each for each in unfinished.values() if each[1] not in Turn.ENDS],
        routed.values_list("pk", flat=True).first(),
        current.order_by("-pk").values_list("pk", flat=True).first(),
        stamp,
        frozenset(Turn.objects.filter(replaced_by__in=ids).values_list("replaced_by", flat=True).distinct()),
        calls,
    )


def present(
    conversation: Conversation, rows: Rows, names: Names, viewer: Viewer, *, focus: int | None = None
) -> list[ShownTurn]:
    """Those turns as the page shows them. `focus`: the turn that takes the keyboard's focus."""
    return [_turn(conversation, turn, rows, names, viewer, focus=turn.pk == focus) for turn in rows.turns]


def _turn(
    conversation: Conversation, turn: Turn, rows: Rows, names: Names, viewer: Viewer, *, focus: bool
) -> ShownTurn:
    first = not rows.unfinished or turn.pk <= rows.unfinished[0][0]
    watched = turn.state == Turn.State.RUNNING or (turn.state == Turn.State.QUEUED and first)
    lines = [_line(conversation, line, turn.run, rows, viewer) for line in _said(rows.lines.get(turn.pk, ()))]
    after = tuple(line for line, kind in lines if kind in AFTER_THE_ANSWER)
    before = tuple(line for line, kind in lines if kind not in AFTER_THE_ANSWER)
    if focus and before:
        before = (*before[:-1], replace(before[-1], focus=True))
    by = names.by(turn.account, turn.model)
    return ShownTurn(
        id=turn.pk,
        run=turn.run,
        conversation=conversation.pk,
        state=turn.state,
        text=mark_safe(markdown.visible(turn.text)),  # noqa: S308  visible() escapes
        source=turn.text,
        long=len(turn.text) > LONG,
        pictures=tuple(rows.pictures.get(turn.pk, ())),
        by=by,
        answer=mark_safe("" if watched else markdown.render(turn.answer)),  # noqa: S308  render() cleans
        before=before,
        after=after,
        problem=_problem(turn, by, viewer),
        written=_written(rows.attempts.get(turn.pk, ()), turn, names),
        cost=_cost(turn, names),
        watched=watched,
        behind=turn.state == Turn.State.QUEUED and not first,
        retries=turn.state in Turn.ENDS and turn.pk == rows.last,
        focus=focus and not before,
        edited=turn.pk in rows.edited,
        calls=_calls(turn, rows, names, by),
    )


def _calls(turn: Turn, rows: Rows, names: Names, by: By | None) -> tuple[ShownCall, ...]:
    calls = rows.calls.get(turn.pk, ())
    asked_by = names.by(calls[-1].account, "") if calls else by
    return shown_calls(calls, asked_by.label if asked_by else "The account")


def _said(lines: Iterable[Line]) -> Iterable[Line]:
    """The lines of a turn, without the one that a folded line says already (R23)."""
    lines = list(lines)
    folded = any(line.kind == "limit.routed" and line.data.get("folded") is not None for line in lines)
    return [line for line in lines if not (folded and line.kind == "limit.back")]


def _line(conversation: Conversation, line: Line, run: int, rows: Rows, viewer: Viewer) -> tuple[ShownLine, str]:
    said = line_said(line.kind, line.data, viewer)
    buttons = said.buttons
    if line.kind in {"limit.routed", "limit.back"} and not _acts(conversation, line, rows, viewer):
        buttons = ()
    presses = tuple(press(button, conversation.pk, line.turn_id, run) for button in buttons)
    return ShownLine(f"line-{line.pk}", said, presses), line.kind


def _acts(conversation: Conversation, line: Line, rows: Rows, viewer: Viewer) -> bool:
    """Whether Switch back, or Carry on, would still do something (R23)."""
    if line.pk != rows.latest_routed:
        return False
    if line.data.get("folded") is not None:
        return conversation.waits_until is not None and conversation.waits_until > viewer.now
    until = line.data.get("until")
    stayed = conversation.account != line.data.get("from")
    return stayed or not until or datetime.fromisoformat(until) > viewer.now


def _problem(turn: Turn, by: By | None, viewer: Viewer) -> ShownLine | None:
    """Why there is no answer, or not a whole one."""
    said: Said | None = None
    if turn.state in {Turn.State.FAILED, Turn.State.INTERRUPTED} and turn.failure_code:
        said = failure_said(turn.failure, viewer)
    elif turn.state == Turn.State.DONE and turn.ending:
        said = ending_said(turn.ending, by.label if by else "")
    elif turn.state == Turn.State.STOPPED:
        said = _stopped(turn)
    if said is None:
        return None
    presses = tuple(press(button, turn.conversation_id, turn.pk, turn.run) for button in said.buttons)
    return ShownLine(f"problem-{turn.pk}", said, presses)


def _stopped(turn: Turn) -> Said:
    if not turn.answer:
        return say("You cancelled this message. It wasn’t answered.", tone=CALM, icon="stop", buttons=(RETRY,))
    go_on = Button("Continue", "continue")
    return say("You stopped this answer.", tone=CALM, icon="stop", buttons=(go_on, RETRY))


def _written(attempts: Iterable[Attempt], turn: Turn, names: Names) -> tuple[Written, ...]:
    """What refused attempts had written; an end's own partial is the answer itself."""
    folded = [attempt for attempt in attempts if attempt.state == "refused" or attempt.run < turn.run]
    found = []
    for attempt in folded:
        by = names.by(attempt.account, attempt.model)
        html = mark_safe(markdown.render(attempt.partial))  # noqa: S308  render() cleans
        found.append(Written(by.label if by else attempt.account, html))
    return tuple(found)


def _cost(turn: Turn, names: Names) -> str:
    """What an answer cost, where it costs; unknown is never shown as nothing (R33)."""
    if turn.state not in Turn.ENDS or not turn.account:
        return ""
    if turn.cost_nano is None:
        return "" if turn.account in names.free else "price unknown"
    return shown(from_nano(turn.cost_nano)) if turn.cost_nano else ""
