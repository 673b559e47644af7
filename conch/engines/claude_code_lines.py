"""One turn of Claude Code, read line by line: lines in, events out, an EngineError at the end where it failed.

Pure; `now` is given. What streamed is provisional until the program's own `assistant` message confirms it. A synthetic
message is the program speaking, never an answer (LIM-13). Decided by typed events and codes, by wording last (R30).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any

from conch.engines import claude_code_refusals as refusals
from conch.engines import claude_code_room as rooms
from conch.engines.base import Discard, Done, EngineFault, Event, LimitReached, Progress, Rejected, Room, Text, Usage
from conch.engines.limit_sentences import limit_sentence
from conch.engines.wire_text import Seam, clean, count, money

SYNTHETIC = "<synthetic>"
BETWEEN = "\n\n"
# How the program says that the plan's own sign-in pays, whatever else it may report.
BY_PLAN = {"", "none"}


def check_payer(source: Any, *, accepted: bool) -> None:
    """Raise Rejected where the program reports another way of paying than the plan's sign-in (R34)."""
    if str(source or "").lower() not in BY_PLAN:
        raise Rejected(f"Claude Code would pay by {source}, not by the plan", reason="paying", accepted=accepted)


@dataclass(frozen=True, slots=True)
class Before:
    """What a process has cost so far, in USD, and the windows as it last told them."""

    cost: Decimal = Decimal(0)
    room: Room | None = None


class Turn:
    """What became of one message. `ended` once its result was read.

    The program counts what it cost over all its life, and tells the windows when they change: `before` is what an
    earlier message of the same process left.
    """

    def __init__(
        self, model: str, clock: Callable[[], datetime], zone: tzinfo = UTC, before: Before | None = None
    ) -> None:
        self.model = model
        self.ended = False
        self.begun = False  # the provider has started to answer: it may count
        self.extra = False
        self._clock = clock
        self._zone = zone
        self._seam = Seam()
        self._shown: list[str] = []
        self._said: list[str] = []
        # An answer may be several messages, with calls of tools between them: a blank line between two.
        self._gap = ""
        self._messages: set[str] = set()
        self._answered_by = ""
        self._refusal: dict[str, Any] = {}
        self._limit: Mapping[str, Any] = {}
        self._before = before or Before()
        self._room: Room | None = None
        self._cost = self._before.cost
        # The answer, once it ended as the program itself remembers it; None where a next message can't go on from it.
        self.answer: str | None = None

    @property
    def after(self) -> Before:
        """What this message leaves to the next of the same process."""
        return Before(self._cost, self._room or self._before.room)

    def read(self, line: Mapping[str, Any]) -> list[Event]:
        """The events of one line; unknown ones say nothing. Raises the turn's EngineError when it failed."""
        reads = {
            "system": self._system,
            "stream_event": self._stream_event,
            "assistant": self._assistant,
            "rate_limit_event": self._rate_limit,
            "result": self._result,
        }.get(str(line.get("type")))
        if reads is None or line.get("parent_tool_use_id") is not None:
            return []  # a subagent talks, or something newer than this
        return reads(line)

    def _system(self, line: Mapping[str, Any]) -> list[Event]:
        if line.get("subtype") == "init":
            check_payer(line.get("apiKeySource"), accepted=False)
        if line.get("subtype") == "api_retry":
            return [Progress("trying again")]
        return []

    def _stream_event(self, line: Mapping[str, Any]) -> list[Event]:
        event = _mapping(line, "event")
        if event.get("type") == "message_start":
            self.begun = True
            self._gap = BETWEEN if self._shown else ""
            self._answered_by = str(_mapping(event, "message").get("model") or "")
        delta = _mapping(event, "delta")
        if event.get("type") != "content_block_delta":
            return []
        if delta.get("type") == "thinking_delta":
            return [Progress("thinking")]
        text = self._seam.add(str(delta.get("text") or "")) if delta.get("type") == "text_delta" else ""
        if not text:
            return []
        text, self._gap = self._gap + text, ""
        self._shown.append(text)
        return [Text(text)]

    def _assistant(self, line: Mapping[str, Any]) -> list[Event]:
        message = _mapping(line, "message")
        blocks = message.get("content")
        texts = (
            [str(block.get("text") or "") for block in blocks if _is_text(block)] if isinstance(blocks, list) else []
        )
        if line.get("error") or line.get("is_api_error_message") or message.get("model") == SYNTHETIC:
            self._refusal = {**line, "text": "".join(texts)}
            return []
        name = str(message.get("id") or "")
        if texts and self._said and name not in self._messages:
            texts.insert(0, BETWEEN)
        self._messages.add(name)
        self._said += texts
        return []

    def _rate_limit(self, line: Mapping[str, Any]) -> list[Event]:
        info = _mapping(line, "rate_limit_info")
        self._room = rooms.event_room(info, self.model, self._clock())
        self.extra = self.extra or rooms.pays_extra(info)
        if info.get("status") == "rejected" and not rooms.pays_extra(info):
            self._limit = info  # said again with the refusal; where an answer comes all the same, it was stale
            return []
        return [self._room] if self._room else []

    def _result(self, line: Mapping[str, Any]) -> list[Event]:
        self.ended = True
        failed = line.get("is_error") or self._refusal or str(line.get("subtype") or "success") != "success"
        if failed and not self._cut_by_cap(line):
            raise self._why(line)
        final = clean("".join(self._said)) or "".join(self._shown) or clean(str(line.get("result") or ""))
        usage = self._usage(line)
        self._check_answer(final, usage)
        events: list[Event] = []
        shown = "".join(self._shown)
        if final != shown:
            events += [Discard()] if shown else []
            events.append(Text(final))
        length = "length" if failed or line.get("stop_reason") == "max_tokens" else ""
        plain = len(self._messages) == 1 and final == clean("".join(self._said))
        self.answer = final if plain and not length and not self.extra else None
        unchanged = [self._before.room] if self._before.room and self._room is None else []
        return [*events, *unchanged, usage, Done(length, self._answered_by or self.model)]

    def _cut_by_cap(self, line: Mapping[str, Any]) -> bool:
        kinds = {line.get("api_error"), self._refusal.get("api_error"), self._refusal.get("error")}
        return "max_output_tokens" in kinds and bool(self._shown or self._said)

    def _check_answer(self, final: str, usage: Usage) -> None:
        if not final:
            raise EngineFault("Claude Code answered nothing")
        sentence = None if usage.output_tokens else limit_sentence(final, self._clock(), self._zone)
        if sentence is not None:  # R30's one exception
            raise LimitReached(until=sentence.until, model=self.model if sentence.model else "")

    def _why(self, line: Mapping[str, Any]) -> Exception:
        told = refusals.Told(
            text=str(self._refusal.get("text") or line.get("result") or _first(line.get("errors"))),
            error=str(self._refusal.get("error") or ""),
            code=str(line.get("api_error") or self._refusal.get("api_error") or ""),
            kind=str(line.get("api_error_type") or self._refusal.get("api_error_type") or ""),
            status=count(line.get("api_error_status") or self._refusal.get("api_error_status")) or 0,
            ending=str(line.get("terminal_reason") or ""),
            limit=self._limit or _mapping(_mapping(self._refusal, "api_error_params"), "rate_limit_info"),
            room=self._room,
            model=self.model,
            begun=self.begun,
            shown=bool(self._shown),
        )
        return refusals.refusal(told, self._clock(), self._zone)

    def _usage(self, line: Mapping[str, Any]) -> Usage:
        said = _mapping(line, "usage")
        parts = [
            count(said.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        ]
        total = money(line.get("total_cost_usd"))
        cost = total - self._before.cost if total is not None and self.extra else None
        self._cost = self._cost if total is None else total
        return Usage(
            input_tokens=None if parts[0] is None else sum(part or 0 for part in parts),
            cached_input_tokens=parts[1],
            cache_write_tokens=parts[2],
            output_tokens=count(said.get("output_tokens")),
            cost=cost if cost is None or cost > Decimal(0) else None,
            extra=self.extra,
        )


def _mapping(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text"


def _first(errors: Any) -> str:
    return str(errors[0]) if isinstance(errors, list) and errors else ""
