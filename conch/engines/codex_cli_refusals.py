"""What Codex CLI's "no" means: its `codexErrorInfo` → one EngineError. Pure (providers.md 3.3, clis.md 2.5).

`usageLimitExceeded` has three causes, and a failure in mid-stream is "other" whatever caused it: only the windows, from
the notices before it or read after it, tell which is a limit, and until when.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from conch.engines import resets, windows
from conch.engines.base import (
    EngineError,
    EngineFault,
    LimitReached,
    Overloaded,
    Rejected,
    Room,
    SignedOut,
    Throttled,
    Unreachable,
)
from conch.engines.refusals import Answer, Speaks
from conch.engines.refusals import refusal as api_refusal
from conch.engines.wire_text import said

CUT = "stream disconnected before completion"
# The provider's own words for its limit, inside a stream, where Codex gives no code (R30).
LIMIT_WORDS = "The usage limit has been reached"
# The program's own words for two answers that it gives no codes: the plan has it not, and there is no credit.
NOT_INCLUDED, NO_CREDIT = "To use Codex with your ChatGPT plan", "Quota exceeded."
# The sign-in had run out, and the host that renews it wasn't there.
RENEWING = "error sending request for url ("
CAPPED = "reason: max_output_tokens"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed turn. `info` is `codexErrorInfo`: a word, or an object with one; `begun`: an answer had begun."""

    message: str
    info: Any = None
    begun: bool = False
    model: str = ""

    @property
    def words(self) -> str:
        """Codex's own words, fit to be shown."""
        return said(self.message)

    @property
    def kind(self) -> str:
        """The word, whether it came plain or as an object's only key."""
        if isinstance(self.info, Mapping):
            return str(next(iter(self.info), ""))
        return str(self.info or "")

    @property
    def status(self) -> int:
        """The HTTP status that it names, else 0."""
        facts = self.info.get(self.kind) if isinstance(self.info, Mapping) else None
        status = facts.get("httpStatusCode") if isinstance(facts, Mapping) else None
        return status if isinstance(status, int) else 0

    @property
    def is_cap(self) -> bool:
        """Whether the answer just reached its longest."""
        return CAPPED in self.message

    @property
    def needs_windows(self) -> bool:
        """Whether only the plan's windows can say what it means."""
        return self.kind == "usageLimitExceeded" or (self.kind in {"other", ""} and self.message.startswith(CUT))


def refusal(failed: Failed, told: Room | None, read: Room | None, reached: str, now: datetime) -> EngineError:
    """What it means. `told`: the windows that came with the turn; `read`: those read after it; `reached`: its type."""
    if failed.needs_windows:
        full = _full(failed, told, read, reached, now)
        if full is not None:
            return full
    return _by_kind(failed, now) or _by_message(failed, now)


def _full(failed: Failed, told: Room | None, read: Room | None, reached: str, now: datetime) -> EngineError | None:
    for room in (told, read):
        full = room is not None and any(_used_up(window, now) for window in room.windows)
        if full:
            until = resets.bounded(windows.full_until(room), now, longest=resets.LONGEST_MONTH)
            return LimitReached(failed.words, until=until, room=room, accepted=failed.begun, status=429)
    if failed.kind != "usageLimitExceeded":
        return (
            LimitReached(failed.words, accepted=failed.begun, status=429)
            if failed.message.endswith(LIMIT_WORDS)
            else None
        )
    if reached.endswith("credits_depleted") or failed.message.startswith(NO_CREDIT):
        return LimitReached(failed.words, scope="money", room=told, accepted=failed.begun, status=429)
    scope = "not_entitled" if failed.message.startswith(NOT_INCLUDED) else "limit"
    return LimitReached(failed.words, scope=scope, room=read or told, accepted=failed.begun, status=429)


def _used_up(window: Any, now: datetime) -> bool:
    over = window.resets_at is not None and window.resets_at <= now
    return (window.used_percent or 0) >= 100 and not window.models and not over


def _by_kind(failed: Failed, now: datetime) -> EngineError | None:
    """What a code or a status says before an answer has begun to break off."""
    words, begun, status = failed.words, failed.begun, failed.status
    if failed.kind == "contextWindowExceeded":
        return Rejected(words, reason="too_long", accepted=begun)
    if failed.kind == "unauthorized" or status == 401:
        return SignedOut(words, status=401)
    if failed.kind == "rateLimitExceeded" or status == 429:
        return Throttled(words, retry_after=resets.again_in(failed.message) or 5.0, accepted=begun, status=429)
    if failed.kind == "serverOverloaded" or status in {503, 529}:
        return Overloaded(words, accepted=begun, status=status or 503)
    return _broken(failed, now)


def _broken(failed: Failed, now: datetime) -> EngineError | None:
    """A connection that failed, at its start, by its status, or in the middle."""
    words, begun, status = failed.words, failed.begun, failed.status
    if failed.kind == "httpConnectionFailed" and not status:
        return Unreachable(words)
    if failed.message.startswith(RENEWING) and not begun:  # the 401 before it took nothing
        return Unreachable(words, host=urlsplit(failed.message[len(RENEWING) :].rstrip(")")).hostname or "")
    if failed.kind == "internalServerError" or status >= 500:
        return EngineFault(words, cut=begun, accepted=True, status=status or 500)
    if failed.kind == "responseStreamDisconnected" or failed.message.startswith(CUT):
        return EngineFault(words, cut=True, accepted=True)
    if status:
        return api_refusal(Speaks.CODEX, Answer(status, {}, _body(failed.message), failed.model, accepted=begun), now)
    return None


def _by_message(failed: Failed, now: datetime) -> EngineError:
    """Of a bad request the message is the provider's whole answer, as JSON."""
    body = _body(failed.message)
    if body is not None:
        return api_refusal(Speaks.CODEX, Answer(400, {}, body, failed.model, accepted=failed.begun), now)
    if failed.kind == "badRequest":
        return Rejected(failed.words, reason="bad", accepted=failed.begun)
    return EngineFault(failed.words, cut=failed.begun, accepted=True)


def _body(message: str) -> Any:
    start = message.find("{")
    if start < 0:
        return None
    try:
        body, _ = json.JSONDecoder().raw_decode(message[start:])
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, Mapping) else None


def reading_failure(message: str) -> EngineError:
    """What a failed reading means: signed out, come again later, or nothing. Never a limit (LIM-20)."""
    words = said(message)
    if "401 Unauthorized" in message or "authentication required" in message:
        return SignedOut(words, status=401)
    if "429 Too Many Requests" in message:
        return Throttled(words, retry_after=resets.SHORTEST_PAUSE, status=429)
    if "error sending request" in message and "failed:" not in message.partition("error sending request")[0]:
        return Unreachable(words)
    return EngineFault(words, accepted=False)
