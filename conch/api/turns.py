"""Messages and turns: sending, watching, stopping, retrying, answering with another account."""

import base64
import binascii
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from ninja import Router
from ninja.params.functions import Query

from conch import ids  # noqa: F401  makes <id:…> known in addresses
from conch.api import sse
from conch.api.caller import answer, person_id
from conch.api.presented import reader_of, turn_json
from conch.api.problems import Problem
from conch.api.schemas import Allow, AnswerWith, ImageGiven, MessageGiven
from conch.db import look
from conch.engines.base import Image
from conch.models import Attempt, ToolCall, Turn
from conch.turns import doors
from conch.turns.errors import NotHere

router = Router(tags=["turns"])
TURN = "/conversations/{id:conversation_id}/turns/{id:turn_id}"


@router.post("/conversations/{id:conversation_id}/messages", summary="Send a message")
async def send_message(request: HttpRequest, conversation_id: int, given: MessageGiven) -> HttpResponseBase:
    """Take a message in and answer it: 202 with the turn, or, with `Accept: text/event-stream`, the turn's events.

    The same `idempotency_key` again is the same turn; with another text it is refused (409).
    """
    caller = person_id(request)
    images = await _images(given.images) if given.images else ()
    turn_id = await doors.post(caller, conversation_id, given.text, images=images, key=given.idempotency_key)
    if _wants_events(request):
        return sse.stream(turn_id)
    return await _accepted(caller, conversation_id, turn_id)


@router.get(TURN + "/events", summary="A turn's events")
async def watch_turn(
    request: HttpRequest,
    conversation_id: int,
    turn_id: int,
    follow: bool = Query(False, description="Stay after `waiting` and `capped` until the next run"),
) -> HttpResponseBase:
    """The latest run from its start, or from `Last-Event-ID`, then live until it ends."""
    await look(_own, person_id(request), conversation_id, turn_id)
    last = request.headers.get("Last-Event-ID", "")
    return sse.stream(
        turn_id, int(last) if last.isascii() and last.isdigit() and len(last) <= 18 else None, follow=follow
    )


@router.post(TURN + "/stop", summary="Stop a turn")
async def stop_turn(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    """Stop it, in whatever state; one that has ended stays as it is."""
    caller = person_id(request)
    await look(_own, caller, conversation_id, turn_id)
    await doors.stop(caller, turn_id)
    return await _accepted(caller, conversation_id, turn_id)


@router.post(TURN + "/retry", summary="Try a turn again")
async def retry_turn(request: HttpRequest, conversation_id: int, turn_id: int) -> HttpResponse:
    """Answer it anew; a waiting or capped one asks its route again. 409 where a later turn has an answer."""
    caller = person_id(request)
    await look(_own, caller, conversation_id, turn_id)
    await doors.retry(caller, turn_id)
    return await _accepted(caller, conversation_id, turn_id)


@router.post(TURN + "/answer-with", summary="Answer with another account")
async def answer_with(request: HttpRequest, conversation_id: int, turn_id: int, given: AnswerWith) -> HttpResponse:
    """That account answers now; for a key, a yes for this message alone. 409, with what would help, where it can't."""
    caller = person_id(request)
    await look(_own, caller, conversation_id, turn_id)
    await doors.answer_with(caller, turn_id, given.account)
    return await _accepted(caller, conversation_id, turn_id)


@router.post(TURN + "/tools/{id:call_id}", summary="Allow a tool's call")
async def allow_call(
    request: HttpRequest, conversation_id: int, turn_id: int, call_id: int, given: Allow
) -> HttpResponse:
    """The word on a call that asks; the turn goes on once each of its calls has one. Said again: the first stands."""
    caller = person_id(request)
    await look(_own, caller, conversation_id, turn_id)
    await doors.allow(caller, turn_id, call_id, given.allow)
    return await _accepted(caller, conversation_id, turn_id)


def _wants_events(request: HttpRequest) -> bool:
    return sse.MEDIA_TYPE in request.headers.get("Accept", "")


def _own(caller: int, conversation_id: int, turn_id: int) -> Turn:
    mine = Turn.objects.filter(
        pk=turn_id,
        conversation_id=conversation_id,
        conversation__person_id=caller,
        conversation__deleted_at=None,
    )
    turn = mine.first()
    if turn is None:
        raise NotHere
    return turn


async def _accepted(caller: int, conversation_id: int, turn_id: int) -> HttpResponse:
    return answer(await look(_turn, caller, conversation_id, turn_id, timezone.now()), 202)


def _turn(caller: int, conversation_id: int, turn_id: int, now: datetime) -> dict[str, Any]:
    turn = _own(caller, conversation_id, turn_id)
    attempts = Attempt.objects.filter(turn=turn).order_by("pk")
    calls = ToolCall.objects.filter(turn=turn).order_by("pk")
    return turn_json(turn, attempts, reader_of(caller, now), calls=calls)


async def _images(given: list[ImageGiven]) -> tuple[Image, ...]:
    import asyncio

    from conch.pictures import NotAPicture, picture

    try:
        return tuple([await asyncio.to_thread(picture, _decoded(one.data)) for one in given])
    except NotAPicture as error:
        raise Problem(413 if error.large else 422, str(error)) from error


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Problem(422, "An image's data is base64.") from error
