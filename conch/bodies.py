"""No request body beyond what is allowed is read, whatever its sender says of its length (doors.md, Limits on input).

Django spools a whole body to disk before it looks at it; this stands before Django.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

Receive = Callable[[], Awaitable[Any]]
SAID = "A request may have 56 MiB."


class _TooLarge(Exception):
    """More came than is allowed."""


def with_body_limit(application: Any) -> Any:
    """The application, with bodies over the limit answered by 413 as soon as that is known."""

    async def outer(scope: Any, receive: Receive, send: Any) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        if _said(scope) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            await _refuse(scope, send)
            return
        try:
            await application(scope, _counted(receive), send)
        except _TooLarge:
            await _refuse(scope, send)

    return outer


def _said(scope: Any) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _counted(receive: Receive) -> Receive:
    came = 0

    async def counting() -> Any:
        nonlocal came
        message = await receive()
        came += len(message.get("body", b""))
        if came > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise _TooLarge
        return message

    return counting


async def _refuse(scope: Any, send: Any) -> None:
    document = {"type": "about:blank", "title": "Request Entity Too Large", "status": 413, "detail": SAID}
    call = scope["path"].startswith("/api/")
    kind, body = ("application/problem+json", json.dumps(document)) if call else ("text/plain; charset=utf-8", SAID)
    headers = [(b"content-type", kind.encode()), (b"connection", b"close"), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
