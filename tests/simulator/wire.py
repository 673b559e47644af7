"""What the wires share: what was asked, in plain words; what a reply has used; the frames of a stream."""

import itertools
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.simulator.scripts import Call
from tests.simulator.server import compact

_numbers = itertools.count(1)


def fresh_id(prefix: str) -> str:
    return f"{prefix}_sim{next(_numbers):08d}"


def sse(data: dict[str, Any], event: str = "") -> bytes:
    """One server-sent event."""
    named = f"event: {event}\n".encode() if event else b""
    return named + b"data: " + compact(data) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a reply, whatever wire it came by."""

    model: str
    messages: tuple[tuple[str, str], ...]  # role, text
    instructions: str = ""
    tools: tuple[str, ...] = ()
    images: int = 0
    max_output: int | None = None
    stream: bool = True
    usage_wanted: bool = True

    @property
    def last(self) -> str:
        """The newest words of the person."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")

    @property
    def characters(self) -> int:
        return len(self.instructions) + sum(len(text) for _, text in self.messages)


@dataclass(slots=True)
class Usage:
    """Tokens of one reply; `input_tokens` is the whole prompt. `cost` in USD where the provider says it."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal as a provider gives it: an HTTP answer, whose `error` can also be said in a stream."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def error(self) -> dict[str, Any]:
        """The error object inside the body."""
        found = self.body.get("error", self.body) if isinstance(self.body, dict) else {}
        return found if isinstance(found, dict) else {"message": found}


class Stream(Protocol):
    """The frames of one reply on one wire, in the order they are said."""

    def opening(self, usage: Usage) -> bytes: ...

    def thinking(self, text: str) -> bytes: ...

    def text(self, piece: str) -> bytes: ...

    def call(self, call: Call) -> bytes: ...

    def closing(self, usage: Usage, ending: str) -> bytes: ...

    def refusal(self, refusal: Refusal, inside: str) -> bytes: ...

    def whole(self, text: str, calls: tuple[Call, ...], usage: Usage, ending: str) -> dict[str, Any]: ...


def texts_of(content: Any, kinds: tuple[str, ...]) -> str:
    """The words in a message's content: a string, or blocks of these kinds."""
    if isinstance(content, str):
        return content
    parts = []
    for block in content or ():
        if block.get("type") in kinds:
            parts.append(block.get("text") or "")
        elif block.get("type") == "tool_result":
            parts.append(texts_of(block.get("content"), kinds))
    return "\n".join(parts)


def count_blocks(content: Any, kinds: tuple[str, ...]) -> int:
    return 0 if isinstance(content, str) else sum(block.get("type") in kinds for block in content or ())
