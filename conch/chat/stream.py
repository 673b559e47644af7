"""A turn's events as HTML for the page that watches it (copy.md 2.2): tail, block, line, done.

`line` carries parts that go to their own places (who answers, the lines, what is done now, what is spoken); `done` is
the whole turn, once. Watching never starts work, and may be given up and taken up again at any time.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import escape
from django.views.decorators.http import require_GET

from conch.chat.answers import person_of
from conch.chat.growing import Growing
from conch.chat.page import around, own_turn, turn_parts
from conch.chat.shown import Names, ShownTurn, names_of, present, read
from conch.chat.viewer import viewer_of
from conch.copy.clock import Viewer
from conch.db import look, step
from conch.models import Conversation, Person, Turn
from conch.turns.errors import NotHere
from conch.turns.events import LAST, Event
from conch.turns.watch import watch

MOST_OFTEN = 0.1  # seconds between two renderings of the tail
SILENT = 2.0  # seconds after which what is done now is shown
SPOKEN_EVERY = 15  # seconds of silence between two "Still working"
QUEUE = 20  # turns after this one that are brought with its end
LINES = frozenset({"routed", "offline", "line"})


@require_GET
async def stream(request: HttpRequest, turn_id: int) -> StreamingHttpResponse:
    """Follow a turn until its run ends."""
    person = person_of(request)
    try:
        turn = await look(own_turn, person.pk, turn_id)
    except NotHere as error:
        raise Http404 from error
    had = request.headers.get("Last-Event-ID", "")
    page = _Page(person, turn, await look(names_of, person.pk), had)
    return StreamingHttpResponse(
        page.events(request),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def framed(event: str, html: str, place: str) -> bytes:
    """One server-sent event."""
    data = "".join(f"data: {line}\n" for line in html.split("\n"))
    return f"event: {event}\nid: {place}\n{data}\n".encode()


class _Page:
    """One page that watches one turn: what it was told, and since when nothing came."""

    def __init__(self, person: Person, turn: Turn, names: Names, had: str) -> None:
        self.person = person
        self.turn = turn
        self.names = names
        self.growing = Growing(turn.run, had)
        self.label = ""
        self.doing = ""
        self.steps: list[str] = []
        self.began = self.last = monotonic()
        self.spoken = 0
        self.working = False

    async def events(self, request: HttpRequest) -> AsyncIterator[bytes]:
        """The page's events, at most ten renderings a second, with a sign of life at least every second of silence."""
        told: asyncio.Queue[Event | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(told))
        due = 0.0
        try:
            while True:
                batch = await self._batch(told, due - monotonic())
                began = monotonic()
                for frame in await self._told(batch):
                    yield frame
                # What takes long to render, a table of a thousand rows, is rendered more rarely.
                due = monotonic() + max(MOST_OFTEN, (monotonic() - began) * 4)
                if any(event is None or event.kind in LAST for event in batch):
                    break
            yield await self._done(request)
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    async def _read(self, told: "asyncio.Queue[Event | None]") -> None:
        async for event in watch(self.turn.pk):
            if event is not None:
                told.put_nowait(event)
        told.put_nowait(None)

    async def _batch(self, told: "asyncio.Queue[Event | None]", pause: float) -> list[Event | None]:
        """What has come: the first of it, and whatever else comes until the next rendering is due."""
        try:
            batch = [await asyncio.wait_for(told.get(), 1.0)]
        except TimeoutError:
            return []
        until = monotonic() + pause
        with contextlib.suppress(TimeoutError):
            while not _is_last(batch[-1]) and (left := until - monotonic()) > 0:
                batch.append(await asyncio.wait_for(told.get(), left))
        while not told.empty() and not _is_last(batch[-1]):
            batch.append(told.get_nowait())
        return batch

    async def _told(self, batch: "list[Event | None]") -> list[bytes]:
        """The frames for some events."""
        parts: list[str] = []
        grew = False
        for event in batch:
            if event is None:
                continue
            grew = grew or event.kind in {"delta", "discard"}
            parts += self._take(event)
        if any(event is not None and event.kind in LINES for event in batch):
            parts.append(await look(self._lines))
        if any(event is not None and event.kind == "tool" for event in batch):
            parts.append(await look(self._calls))
        parts += self._silence(grew=grew)
        frames = [framed("line", "".join(parts), self.growing.place)] if parts else []
        return [*frames, *await self._grown()] if grew or self.growing.cleared else frames or [b": .\n\n"]

    async def _grown(self) -> list[bytes]:
        if len(self.growing.tail) > 4_000:
            return await asyncio.to_thread(self._frames)
        return self._frames()

    def _frames(self) -> list[bytes]:
        frames = []
        for kind, html in self.growing.told():
            if kind == "clear":
                frames.append(framed("line", _into(f"blocks-{self.turn.pk}", ""), self.growing.place))
            else:
                frames.append(framed(kind, html, self.growing.place))
        return frames

    def _take(self, event: Event) -> list[str]:
        """Take one event in; the parts of the page that it changes at once."""
        if event.kind == "delta":
            self.growing.add(event.data["text"])
        elif event.kind == "discard":
            self.growing.discard()
        elif event.kind == "attempt":
            return self._answering(event.data)
        elif event.kind == "progress" or (event.kind == "tool" and event.data["state"] == "running"):
            self._does(str(event.data.get("text") or event.data.get("title") or ""))
            return [self._work()]
        return []

    def _answering(self, data: dict[str, Any]) -> list[str]:
        by = self.names.by(data["account"], data["model"])
        self.label = by.label if by else data["account"]
        self.doing = f"Waiting for {self.label}"
        said = _into("live", escape(f"{self.label} is answering."))
        return [_into(f"by-{self.turn.pk}", render_to_string("chat/_by.html", {"by": by})), said]

    def _does(self, words: str) -> None:
        if self.doing and not self.doing.startswith("Waiting for ") and self.doing != words:
            self.steps.append(self.doing)
        self.doing = words
        self.last, self.spoken, self.working = monotonic(), 0, True

    def _silence(self, *, grew: bool) -> list[str]:
        """What is done now, once nothing has come for a while; nothing of it while text comes."""
        if grew:
            self.last, self.spoken = monotonic(), 0
            was, self.working = self.working, False
            return [_into(f"work-{self.turn.pk}", "")] if was else []
        silent = monotonic() - self.last
        if silent < SILENT and not self.working:
            return []
        self.working = True
        parts = [self._work()]
        if silent >= (self.spoken + 1) * SPOKEN_EVERY:
            self.spoken += 1
            doing = self.doing or "waiting"
            parts.append(_into("live", escape(f"Still working: {doing[0].lower()}{doing[1:]}.")))
        return parts

    def _work(self) -> str:
        elapsed = int(monotonic() - self.began)
        context = {"now": self.doing or "On its way", "elapsed": _span(elapsed), "steps": self.steps[-20:]}
        return _into(f"work-{self.turn.pk}", render_to_string("chat/_work.html", context))

    def _viewer(self) -> Viewer:
        return viewer_of(self.person.preferences, timezone.now())

    def _lines(self) -> str:
        """The turn's lines as they are now, and with them who answers and who pays."""
        viewer = self._viewer()
        shown, rows = turn_parts(self.turn, self.names, viewer)
        around_it = around(self.turn.conversation, rows, viewer) | {"oob": True}
        html = "".join(render_to_string("nacre/line.html", {"line": line}) for line in shown.before)
        spoken = shown.before[-1].said.spoken if shown.before else ""
        parts = [render_to_string(f"chat/_{part}.html", around_it) for part in ("pick", "foot", "rooms")]
        said = _into("live", escape(spoken)) if spoken else ""
        return "".join([_into(f"lines-{self.turn.pk}", html), said, *parts])

    def _calls(self) -> str:
        """The turn's calls of tools as they are now."""
        shown, _ = turn_parts(self.turn, self.names, self._viewer())
        html = "".join(render_to_string(f"chat/_{part}.html", {"turn": shown}) for part in ("calls", "asks"))
        return _into(f"calls-{self.turn.pk}", html)

    async def _done(self, request: HttpRequest) -> bytes:
        """The whole turn as it is now, with all that its end changes around it."""
        await step(Conversation.objects.filter(pk=self.turn.conversation_id, unread=True).update, unread=False)
        return framed("done", await look(self._whole, request), self.growing.place)

    def _whole(self, request: HttpRequest) -> str:
        viewer = self._viewer()
        turn = self._standing()
        shown, rows = turn_parts(turn, self.names, viewer)
        context = around(turn.conversation, rows, viewer) | {"turns": [shown], "known": False, "known_to": 0}
        context["say"] = shown.spoken
        if self.person.preferences.read_aloud and turn.state == Turn.State.DONE:
            context["aloud"] = turn.answer
        following = _following(turn, self.names, viewer)
        html = render_to_string("chat/_changes.html", context, request)
        after = [render_to_string("chat/_turn.html", {"turn": each, "oob": True}, request) for each in following]
        return html + "".join(after)

    def _standing(self) -> Turn:
        """The turn; where an edit put another in its place meanwhile, that one."""
        turn = own_turn(self.person.pk, self.turn.pk)
        while turn.replaced_by_id is not None:
            turn = own_turn(self.person.pk, turn.replaced_by_id)
        return turn


def _following(turn: Turn, names: Names, viewer: Viewer) -> list[ShownTurn]:
    """The turns that come after it in the chat (R35), as they are now: the next may have its answer already."""
    later = Turn.objects.filter(conversation_id=turn.conversation_id, pk__gt=turn.pk, replaced_by=None)
    rows = read(
        turn.conversation, Turn.objects.filter(pk__in=later.order_by("pk").values_list("pk", flat=True)[:QUEUE])
    )
    return present(turn.conversation, rows, names, viewer)


def _is_last(event: Event | None) -> bool:
    return event is None or event.kind in LAST


def _into(element: str, html: str) -> str:
    """A part that takes the place of what is in the element of that id."""
    return f'<div id="{element}" hx-swap-oob="innerHTML">{html}</div>'


def _span(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
