"""One turn of Codex CLI, read notice by notice: events out, an EngineError at the end where it failed. Pure.

Text comes as deltas; a finished message that reads otherwise replaces them. Windows come sparse, and are merged by
whoever keeps them (WIN-03).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from conch.engines import windows
from conch.engines.base import Discard, Done, EngineFault, Event, Progress, Room, Text, Usage
from conch.engines.codex_cli_refusals import Failed, refusal
from conch.engines.wire_text import Seam, clean, count

PLAN_METERS = {"", "codex", "premium"}  # other meters are of single models (providers.md 3.4)


def snapshot_room(snapshot: Any, now: datetime) -> Room | None:
    """The windows of one meter's snapshot; None where it has none: nothing said is nothing erased."""
    if not isinstance(snapshot, Mapping):
        return None
    meter = str(snapshot.get("limitId") or "")
    name = "" if meter.lower() in PLAN_METERS else str(snapshot.get("limitName") or meter)
    limits = {slot: _slot(snapshot.get(slot)) for slot in ("primary", "secondary")}
    event = {"rate_limits": limits, "plan_type": snapshot.get("planType") or "", "limit_name": name}
    return windows.codex_event(event, {}, now)


def read_room(answer: Mapping[str, Any], now: datetime) -> Room:
    """What `account/rateLimits/read` says: every meter, and whether the plan would answer now."""
    by_id = answer.get("rateLimitsByLimitId")
    meters = list(by_id.values()) if isinstance(by_id, Mapping) and by_id else [answer.get("rateLimits")]
    found = [room for room in (snapshot_room(meter, now) for meter in meters) if room]
    main = answer.get("rateLimits")
    main = main if isinstance(main, Mapping) else {}
    allowed = answer.get("ordinaryUsageAllowed")
    return Room(
        windows=tuple(window for room in found for window in room.windows),
        complete=bool(found),
        allowed=allowed if isinstance(allowed, bool) else False if main.get("rateLimitReachedType") else None,
        plan=str(main.get("planType") or ""),
    )


def _slot(window: Any) -> dict[str, Any] | None:
    if not isinstance(window, Mapping):
        return None
    return {
        "used_percent": window.get("usedPercent"),
        "window_minutes": window.get("windowDurationMins"),
        "reset_at": window.get("resetsAt"),
    }


class Turn:
    """What became of one message. `failed` says how, once it did; `ended` once it is over.

    `name` is the program's own for this turn: what is still said of another is passed over. The thread counts tokens
    from its first message on: `before` is what earlier ones used, `used` what all have with this one.
    """

    def __init__(self, model: str, clock: Callable[[], datetime], name: str = "", before: Usage | None = None) -> None:
        self.model = model
        self.used = before or Usage()
        # The answer, once it ended as the thread itself remembers it; None where a next message can't go on from it.
        self.answer: str | None = None
        self.used_tools = False
        self._name = name
        self._before = self.used
        self.ended = False
        self.failed: Failed | None = None
        self.room: Room | None = None
        self.reached = ""
        self._clock = clock
        self._items: dict[str, list[str]] = {}
        self._seams: dict[str, Seam] = {}
        self._usage: Usage | None = None
        self._extra = False

    @property
    def text(self) -> str:
        """The answer so far: its messages, a blank line between two."""
        return "\n\n".join("".join(pieces) for pieces in self._items.values() if pieces)

    def read(self, notice: Mapping[str, Any]) -> list[Event]:
        """The events of one notice; unknown ones say nothing."""
        params = notice.get("params")
        if isinstance(params, Mapping) and self._name and params.get("turnId") not in {None, self._name}:
            return []
        reads: Callable[[Mapping[str, Any]], list[Event]] | None = {
            "item/agentMessage/delta": self._delta,
            "item/completed": self._completed,
            "item/reasoning/summaryTextDelta": self._thinking,
            "thread/tokenUsage/updated": self._tokens,
            "account/rateLimits/updated": self._limits,
            "error": self._error,
            "turn/completed": self._over,
        }.get(str(notice.get("method")))
        return reads(params) if reads is not None and isinstance(params, Mapping) else []

    def _thinking(self, _params: Mapping[str, Any]) -> list[Event]:
        return [Progress("thinking")]

    def _delta(self, params: Mapping[str, Any]) -> list[Event]:
        item = str(params.get("itemId") or "")
        text = self._seams.setdefault(item, Seam()).add(str(params.get("delta") or ""))
        return self._add(item, text)

    def _add(self, item: str, text: str) -> list[Event]:
        if not text:
            return []
        between = "\n\n" if self.text and not self._items.get(item) else ""
        self._items.setdefault(item, []).append(text)
        return [Text(between + text)]

    def _completed(self, params: Mapping[str, Any]) -> list[Event]:
        item = params.get("item")
        if not isinstance(item, Mapping) or item.get("type") != "agentMessage":
            return []
        name, whole = str(item.get("id") or ""), clean(str(item.get("text") or ""))
        shown = "".join(self._items.get(name, ()))
        if whole.startswith(shown):
            return self._add(name, whole[len(shown) :])
        self._items[name] = [whole]
        return [Discard(), Text(self.text)]

    def _tokens(self, params: Mapping[str, Any]) -> list[Event]:
        used = params.get("tokenUsage")
        total = used.get("total") if isinstance(used, Mapping) else None
        if not isinstance(total, Mapping):
            return []
        self.used, before = _counted(total), self._before
        self._usage = Usage(
            input_tokens=_more(self.used.input_tokens, before.input_tokens),
            cached_input_tokens=_more(self.used.cached_input_tokens, before.cached_input_tokens),
            cache_write_tokens=_more(self.used.cache_write_tokens, before.cache_write_tokens),
            output_tokens=_more(self.used.output_tokens, before.output_tokens),
        )
        return [self._usage]

    def _limits(self, params: Mapping[str, Any]) -> list[Event]:
        snapshot = params.get("rateLimits")
        snapshot = snapshot if isinstance(snapshot, Mapping) else {}
        self.reached = str(snapshot.get("rateLimitReachedType") or "") or self.reached
        room = snapshot_room(snapshot, self._clock())
        if room is None:
            return []
        self.room = room
        self._extra = self._extra or (_has_credits(snapshot) and is_full(room))
        return [room]

    def _error(self, params: Mapping[str, Any]) -> list[Event]:
        if params.get("willRetry") is True:
            return [Progress("trying again")]
        self.failed = self._failure(params.get("error"))
        return []

    def _over(self, params: Mapping[str, Any]) -> list[Event]:
        turn = params.get("turn")
        turn = turn if isinstance(turn, Mapping) else {}
        self.ended = True
        if turn.get("status") != "completed":
            self.failed = self._failure(turn.get("error")) if turn.get("error") else self.failed or self._failure(None)
            return self._cut_by_cap()
        events = [event for item in turn.get("items") or () for event in self._completed({"item": item})]
        if not self.text:
            raise EngineFault("Codex answered nothing")
        # To the thread an answer of several messages, or with what its tools gave, is more than it is to the chat.
        plain = len(self._items) == 1 and not self.used_tools
        self.answer = self.text if plain and not self._extra else None
        return [*events, *self._paid(), Done("", self.model)]

    def _cut_by_cap(self) -> list[Event]:
        if self.failed is None or not self.failed.is_cap or not self.text:
            return []
        self.failed = None
        return [*self._paid(), Done("length", self.model)]

    def _paid(self) -> list[Event]:
        """What the answer cost, said once more where credits paid for it, the plan being full (R32)."""
        if not self._extra:
            return []
        usage = self._usage or Usage()
        return [
            Usage(
                usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens, None, True
            )
        ]

    def _failure(self, error: Any) -> Failed:
        error = error if isinstance(error, Mapping) else {}
        return Failed(
            message=str(error.get("message") or "Codex stopped before the end of its answer"),
            info=error.get("codexErrorInfo"),
            begun=bool(self._items),
            model=self.model,
        )

    def why(self, read: Room | None) -> Exception:
        """The error of a turn that failed. `read`: the windows as read after it, where they were asked for."""
        assert self.failed is not None
        return refusal(self.failed, self.room, read, self.reached, self._clock())


def _counted(total: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=count(total.get("inputTokens")),
        cached_input_tokens=count(total.get("cachedInputTokens")),
        cache_write_tokens=count(total.get("cacheWriteInputTokens")),
        output_tokens=count(total.get("outputTokens")),
    )


def _more(now: int | None, before: int | None) -> int | None:
    return None if now is None else max(0, now - (before or 0))


def is_full(room: Room | None) -> bool:
    """Whether a window of the whole plan is used up."""
    return any((window.used_percent or 0) >= 100 and not window.models for window in (room.windows if room else ()))


def _has_credits(snapshot: Mapping[str, Any]) -> bool:
    credit = snapshot.get("credits")
    return isinstance(credit, Mapping) and (credit.get("hasCredits") is True or credit.get("unlimited") is True)
