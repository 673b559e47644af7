"""A call that is really run: over its server's session, bounded in time and size, its failures as outcomes."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from time import monotonic
from typing import Any

from django.utils import timezone

from conch.copy import tools as copy
from conch.db import look, step
from conch.engines.wire_text import clean
from conch.tools import following, sessions
from conch.tools.launches import Launch, launch_for_call
from conch.tools.offers import Offered
from conch.tools.servers import keep_trouble
from conch.tools.trouble import ToolTrouble

LONGEST = 100_000  # characters of an outcome
AT_LEAST = 1.0  # seconds; less is no time to call anything
NOT_ITS_OWN = {"busy", "changed"}  # trouble that says nothing of the server
# Trouble that stands whatever became of the calls beside the one that met it.
STANDS = {"signed_out", "sign_in", "sign_in_over", "sign_in_scope"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call, in words for the model and for people; data, whatever it says."""

    text: str
    failed: bool
    seconds: float
    # It didn't run: by now the tool says something else of itself, so the person is to be asked anew.
    changed: bool = False


async def call(person_id: int, offered: Offered, arguments: Mapping[str, Any], *, seconds: float = 60.0) -> Outcome:
    """Run a call. Never raises for the tool or its server: what fails is an outcome that says so.

    A server that ended in the middle isn't asked again: what it did by then isn't known (R17).
    """
    began, changed = monotonic(), False
    try:
        launch = await look(launch_for_call, person_id, offered.server, offered.tool)
        said, failed = await _told(launch, offered, arguments, max(seconds, AT_LEAST))
    except ToolTrouble as trouble:
        said, failed = copy.call_failed(trouble.as_kept(), sent=trouble.sent), True
        changed = trouble.code == "changed"
    return Outcome(_bounded(said), failed, monotonic() - began, changed)


async def _told(launch: Launch, offered: Offered, arguments: Mapping[str, Any], seconds: float) -> tuple[str, bool]:
    """The same, and Settings says from now on whether the server can be reached. Raises ToolTrouble."""
    try:
        answer = await _answered(launch, offered, arguments, seconds)
    except ToolTrouble as trouble:
        if trouble.code in STANDS or not (trouble.sent or trouble.code in NOT_ITS_OWN):
            await step(keep_trouble, launch.server, trouble.as_kept(), timezone.now())
        raise
    if launch.troubled:
        await step(keep_trouble, launch.server, {}, timezone.now())
    return answer


async def _answered(launch: Launch, offered: Offered, arguments: Mapping[str, Any], seconds: float) -> tuple[str, bool]:
    """The words of the answer, and whether it is a failure. Raises ToolTrouble."""
    until = monotonic() + seconds

    async def asked(session: Any) -> Any:
        return await import_module("conch.tools.protocol").called(session, offered.tool, arguments)

    async def called() -> Any:
        session = sessions.session_with(launch)
        with session.held():
            await following.as_asked(session, launch, offered.tool, offered.digest, max(until - monotonic(), AT_LEAST))
            return await session.use(asked, max(until - monotonic(), AT_LEAST))

    try:
        answer = await called()
    except ToolTrouble as trouble:
        if trouble.code != "expired":
            raise
        # The server forgot the session before it read the call.
        answer = await called()
    if not hasattr(answer, "content"):
        return copy.ASKS_BACK, True
    return _in_words(answer.content, answer.structured_content), bool(answer.is_error)


def _in_words(content: Iterable[Any], structured: Any) -> str:
    """What the tool returned, as text: what it shows otherwise (pictures, sounds) is named."""
    parts = [words for part in content if (words := _WORDS[part.type](part))]
    if not parts and structured is not None:
        return json.dumps(structured, ensure_ascii=False, indent=1)
    return "\n\n".join(parts)


def _text(part: Any) -> str:
    return str(part.text)


def _left_out(part: Any, *, kind: str) -> str:
    return copy.left_out(kind, part.mime_type, len(part.data) * 3 // 4)


def _link(part: Any) -> str:
    return copy.linked(part.title or part.name, part.uri)


def _resource(part: Any) -> str:
    within = part.resource
    if hasattr(within, "text"):
        return str(within.text)
    return copy.left_out("file", within.mime_type or "", len(within.blob) * 3 // 4)


_WORDS: dict[str, Callable[[Any], str]] = {
    "text": _text,
    "image": partial(_left_out, kind="image"),
    "audio": partial(_left_out, kind="sound"),
    "resource_link": _link,
    "resource": _resource,
}


def _bounded(words: str) -> str:
    words = clean(words)
    return words if len(words) <= LONGEST else words[:LONGEST] + copy.cut(len(words) - LONGEST)
