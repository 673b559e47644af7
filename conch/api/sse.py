"""A turn's events as server-sent events."""

import json
from collections.abc import AsyncIterator
from functools import partial

from django.http import StreamingHttpResponse

from conch.turns.events import Event
from conch.turns.watch import watch

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": still here\n\n"
_compact = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))


def stream(turn_id: int, after: int | None = None, *, follow: bool = False) -> StreamingHttpResponse:
    """The turn's events beyond `after`, as they come. Whoever goes away stops only their own watching."""
    response = StreamingHttpResponse(_frames(turn_id, after, follow=follow), content_type=MEDIA_TYPE)
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


def frame(event: Event) -> bytes:
    """One event: its id, its kind, its data as JSON on one line."""
    return f"id: {event.id}\nevent: {event.kind}\ndata: {_compact(event.data)}\n\n".encode()


async def _frames(turn_id: int, after: int | None, *, follow: bool) -> AsyncIterator[bytes]:
    async for event in watch(turn_id, after, follow=follow):
        yield HEARTBEAT if event is None else frame(event)
