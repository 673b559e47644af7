"""A refusal as it was told: the provider's error object, out of whatever it was wrapped in. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from conch.engines import resets
from conch.engines.base import EngineError, LimitReached, Rejected, Throttled
from conch.engines.wire_text import said

THROTTLE_SECONDS = 60.0  # an untyped 429 up to this is a throttle, beyond it a refusal until then (providers.md 10)
DEFAULT_PAUSE = 5.0


class Speaks(StrEnum):
    """Whose ways a server has."""

    ANTHROPIC = "anthropic"
    OPENROUTER = "openrouter"
    CODEX = "codex"
    COMPATIBLE = "compatible"  # OpenAI, and any server with its interface: Gemini, Ollama, llama.cpp, …


# Characters of a message that are looked at; looking through millions would hold up everybody's streams.
LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is no answer. `headers` by lower-case names; `model` is the one that was asked.

    `in_stream`: it came inside an HTTP 200 stream; `accepted`: after the provider had begun to answer.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    model: str = ""
    secret: str = ""
    in_stream: bool = False
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """The same, with the provider's error object taken out of whatever it was wrapped in."""

    answer: Answer
    error: Mapping[str, Any]
    status: int
    type: str
    code: str
    message: str
    structured: bool

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer."""
        return self.answer.headers

    @property
    def model(self) -> str:
        """The model that was asked."""
        return self.answer.model

    @property
    def words(self) -> str:
        """The provider's own words, fit to be shown."""
        return said(self.message, secret=self.answer.secret)

    @property
    def codes(self) -> set[str]:
        """Type and code together: providers put the same words in either."""
        return {self.type, self.code} - {""}

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A member of the error object that is an object itself."""
        value = self.error.get(name)
        return value if isinstance(value, Mapping) else {}

    def limit(
        self, now: datetime, *, until: datetime | None = None, scope: str = "limit", **facts: Any
    ) -> LimitReached:
        """A limit, with what every limit knows."""
        return LimitReached(
            self.words,
            until=until,
            scope=scope,
            accepted=self.answer.accepted,
            status=self.status,
            clock_off_seconds=resets.clock_off(self.headers, now),
            **facts,
        )

    def rejected(self, reason: str, *, fits_tokens: int | None = None) -> Rejected:
        """A request that can't be taken."""
        return Rejected(
            self.words, reason=reason, fits_tokens=fits_tokens, accepted=self.answer.accepted, status=self.status
        )


Rule = Callable[[Told, datetime], EngineError | None]

# Error types and codes that come inside a 200 stream, where no status tells what they are.
_STATUS_OF = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "usage_limit_reached": 429,
    "usage_not_included": 429,
    "overloaded_error": 529,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
}


def tell(answer: Answer) -> Told:
    """Unwrap the error object: nested, flat, in a list of one (Gemini), a bare text (Ollama) or `detail` (Codex)."""
    body = answer.body
    if isinstance(body, list) and body:
        body = body[0]
    error: Any = body
    if isinstance(body, Mapping):
        response = body.get("response")
        error = response.get("error") if isinstance(response, Mapping) else body.get("error")
        if not error:
            error = body.get("detail") or body
    if not isinstance(error, Mapping):
        error = {"message": error if isinstance(error, str) else ""}
    kind, code = error.get("type"), error.get("code")
    kind = kind if isinstance(kind, str) and kind != "error" else ""
    code = str(code) if code is not None else ""
    message = error.get("message")
    return Told(
        answer,
        error,
        _status(answer.status, body, code, kind),
        kind,
        code,
        message[:LONGEST] if isinstance(message, str) else "",
        isinstance(body, Mapping),
    )


def _status(status: int, body: Any, code: str, kind: str) -> int:
    if status >= 300:
        return status
    outer = (body.get("status"), body.get("status_code")) if isinstance(body, Mapping) else ()
    for value in (code, *outer):
        if str(value).isdigit() and 400 <= int(value) <= 599:
            return int(value)
    return _STATUS_OF.get(code) or _STATUS_OF.get(kind) or 500


def by_time(told: Told, now: datetime, wait: float | None = None) -> EngineError:
    """An untyped 429: a throttle, or, when it says to wait longer than a turn would, a refusal until then."""
    wait = wait or resets.pause(told.headers, now) or resets.again_in(told.message) or _bucket(told, now)
    if wait is None:
        return Throttled(told.words, retry_after=default_pause(told), accepted=told.answer.accepted, status=told.status)
    until = resets.ahead(wait, now)
    if wait <= THROTTLE_SECONDS:
        return Throttled(told.words, retry_after=max(wait, 1.0), accepted=told.answer.accepted, status=told.status)
    # Limits by the day are a model's own where the message names it; an account's other models may go on.
    return told.limit(now, until=until, model=told.model if told.model and told.model in told.message else "")


def default_pause(told: Told) -> float:
    """The pause where none was asked for, in seconds."""
    return resets.SHORTEST_PAUSE if resets.asks_for_none(told.headers) else DEFAULT_PAUSE


def _bucket(told: Told, now: datetime) -> float | None:
    """The seconds until the emptied bucket fills again, by the headers of Anthropic or OpenAI."""
    waits: list[float] = []
    off = resets.clock_off(told.headers, now) or 0
    for name in ("requests", "tokens", "input-tokens", "output-tokens"):
        for left, again in (
            (f"anthropic-ratelimit-{name}-remaining", f"anthropic-ratelimit-{name}-reset"),
            (f"x-ratelimit-remaining-{name}", f"x-ratelimit-reset-{name}"),
        ):
            if told.headers.get(left) != "0":
                continue
            wait, at = resets.duration(told.headers.get(again)), resets.instant(told.headers.get(again))
            if wait is None and at is not None:
                wait = (at - now).total_seconds() + off
            waits += [wait] if wait and wait > 0 else []
    return max(waits, default=None)
