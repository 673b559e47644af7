"""A turn's events as server-sent events."""

import json
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

from conch.turns.events import Event
from conch.turns.watch import batches

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": still here\n\n"
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


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
    async for batch in batches(turn_id, after, follow=follow):
        yield b"".join(map(frame, batch)) or HEARTBEAT
