"""What a key does when it is asked: steps, taken in order, the last one again and again.

A step is plain data, so that it can be sent to a simulator of another process as JSON (`step_from`).
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model asks for."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """A refusal by its name in `scenarios`, with the facts it takes (`resets_in`, `retry_after`, `model` …).

    `inside`: said under HTTP 200 instead, as an "event" (`error`) or as "failed" (`response.failed`).
    """

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, and how it arrives. Times are seconds; what isn't said is derived from the text.

    `text` None: says back what was asked; `quotes`: "{said}" in it stands for the first words of that.
    `pieces`: how many parts; None: a word each. `hold_after`: after so many it waits for `Key.release()`.
    `then`, its end: "" whole, "cut" connection broken off, "close" without its terminal event, "refuse" with
    `refusal`, "endless" goes on for ever, "silent" says nothing more and stays open.
    """

    text: str | None = None
    pieces: int | None = None
    delay: float = 0.0
    wait: float = 0.0
    hold_after: int | None = None
    input_tokens: int | None = None
    cached_tokens: int = 0
    output_tokens: int | None = None
    cost: float | None = None
    calls: Sequence[Call] = ()
    thinking: str = ""
    ending: str = "stop"
    quotes: bool = False
    model: str = ""
    then: str = ""
    refusal: Refuse | None = None
    line_bytes: int = 0  # the text is one line of so many bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """Exactly this answer, whatever was asked."""

    status: int
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Silence:
    """No byte of an answer; the connection stays open."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is broken off before any byte of an answer."""


Step = Reply | Refuse | Raw | Silence | HangUp
KINDS: dict[str, type] = {"reply": Reply, "refuse": Refuse, "raw": Raw, "silence": Silence, "hang_up": HangUp}
_PIECE = re.compile(r"\s*\S+\s*")


def step_from(data: dict[str, Any]) -> Step:
    """A step from JSON: {"do": "reply", "text": …}. Raises ValueError for what there isn't."""
    given = dict(data)
    kind = KINDS.get(given.pop("do", ""))
    if kind is None:
        raise ValueError(f"do: one of {', '.join(KINDS)}")
    unknown = set(given) - {known.name for known in fields(kind)}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    if given.get("calls"):
        given["calls"] = tuple(Call(**call) for call in given["calls"])
    if given.get("refusal"):
        given["refusal"] = Refuse(**given["refusal"])
    return kind(**given)


def split(text: str, pieces: int | None) -> list[str]:
    """The text in parts that together are the text: so many, or a word each."""
    if not text:
        return []
    if pieces is None:
        return _PIECE.findall(text) or [text]
    pieces = max(1, min(pieces, len(text)))
    edges = [len(text) * number // pieces for number in range(pieces + 1)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def tokens_of(text: str) -> int:
    """About how many tokens a text has: four characters each."""
    return max(1, (len(text) + 3) // 4)
