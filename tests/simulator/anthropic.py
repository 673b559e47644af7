"""Anthropic Messages: what was asked, the stream, the headers (providers.md 2; unified headers 1.6)."""

from typing import Any

from tests.simulator.clock import iso
from tests.simulator.keys import Key
from tests.simulator.scripts import Call, split
from tests.simulator.server import compact
from tests.simulator.wire import Asked, Refusal, Usage, count_blocks, fresh_id, sse, texts_of

MODELS = {
    "claude-opus-5-5": "Claude Opus 5.5",
    "claude-sonnet-5": "Claude Sonnet 5",
    "claude-haiku-4-5": "Claude Haiku 4.5",
}
ENDINGS = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "tool": "tool_use"}
WINDOW_NAMES = {300: "5h", 10080: "7d"}
CLAIMS = {"5h": "five_hour", "7d": "seven_day"}


def asked(body: dict[str, Any]) -> Asked:
    messages = body.get("messages") or []
    return Asked(
        model=str(body.get("model", "")),
        messages=tuple((each["role"], texts_of(each.get("content"), ("text",))) for each in messages),
        instructions=texts_of(body.get("system"), ("text",)),
        tools=tuple(tool.get("name", "") for tool in body.get("tools") or ()),
        images=sum(count_blocks(each.get("content"), ("image",)) for each in messages),
        max_output=body.get("max_tokens"),
        stream=bool(body.get("stream")),
    )


def complaint(body: dict[str, Any]) -> Refusal | None:
    """What the Messages API itself would not take."""
    said = ""
    if "max_tokens" not in body:
        said = "max_tokens: Field required"
    elif not body.get("messages"):
        said = "messages: at least one message is required"
    elif any(_empty(each.get("content")) for each in body["messages"]):
        said = "messages: text content blocks must be non-empty"
    elif body["messages"][0].get("role") != "user":
        said = 'messages: first message must use the "user" role'
    return refusal(400, "invalid_request_error", said) if said else None


def _empty(content: Any) -> bool:
    if isinstance(content, str):
        return not content
    return any(block.get("type") == "text" and not block.get("text") for block in content or ())


def refusal(status: int, kind: str, message: str, headers: dict[str, str] | None = None, **details: Any) -> Refusal:
    request_id = fresh_id("req")
    error: dict[str, Any] = {"type": kind, "message": message}
    if details:
        error["details"] = details
    body = {"type": "error", "error": error, "request_id": request_id}
    return Refusal(status, body, {"request-id": request_id} | (headers or {}))


def unauthorized() -> Refusal:
    return refusal(401, "authentication_error", "invalid x-api-key")


def is_plan(key: Key) -> bool:
    """Whether this is a claude.ai sign-in: only those carry unified headers."""
    return key.secret.startswith("sk-ant-oat")


def headers(key: Key) -> dict[str, str]:
    shown = {"request-id": fresh_id("req")}
    if key.organization:
        shown["anthropic-organization-id"] = key.organization
    return shown | (unified(key) if is_plan(key) else per_minute(key))


def per_minute(key: Key) -> dict[str, str]:
    reset = iso(key.clock.now() + 6)
    figures = {"requests": (50, 49), "input-tokens": (30000, 27000), "output-tokens": (8000, 8000)}
    shown = {}
    for name, (limit, remaining) in figures.items():
        shown[f"anthropic-ratelimit-{name}-limit"] = str(limit)
        shown[f"anthropic-ratelimit-{name}-remaining"] = str(remaining)
        shown[f"anthropic-ratelimit-{name}-reset"] = reset
    return shown


def unified(key: Key, claim: str = "") -> dict[str, str]:
    """The plan's windows as headers; with a claim, as refused by that window."""
    start = "anthropic-ratelimit-unified"
    now = key.clock.now()
    shown = {f"{start}-status": "rejected" if claim else "allowed", f"{start}-overage-status": "rejected"}
    shown[f"{start}-overage-disabled-reason"] = "org_level_disabled"
    for window in key.windows:
        window.roll(now)
        name = WINDOW_NAMES.get(window.minutes, f"{window.minutes}m") + (f"_{window.model}" if window.model else "")
        reset = str(int(window.reset_shown(now) or now))
        rejected = bool(claim) and window.used >= 100
        shown[f"{start}-{name}-utilization"] = f"{window.used / 100:g}"
        shown[f"{start}-{name}-reset"] = reset
        shown[f"{start}-{name}-status"] = "rejected" if rejected else "allowed"
        if rejected or f"{start}-reset" not in shown:
            shown[f"{start}-reset"] = reset
            shown[f"{start}-representative-claim"] = claim or CLAIMS.get(name, name)
    return shown


def usage(key: Key) -> dict[str, Any]:
    """`GET /api/oauth/usage`: the plan's windows in percent, with ISO times (providers.md 1.5)."""
    now = key.clock.now()
    shown: dict[str, Any] = {"five_hour": None, "seven_day": None}
    for window in key.windows:
        window.roll(now)
        name = CLAIMS.get(WINDOW_NAMES.get(window.minutes, ""), "") + (f"_{window.model}" if window.model else "")
        reset = window.reset_shown(now)
        shown[name] = {"utilization": window.used, "resets_at": None if reset is None else iso(reset)}
    return shown


def profile(key: Key) -> dict[str, Any]:
    """`GET /api/oauth/profile`: whose plan it is, asked where the sign-in has the scope for it."""
    account = {"uuid": key.user_id, "email": key.email, "has_claude_max": False, "has_claude_pro": True}
    kind = {"organization_type": f"claude_{key.plan}", "rate_limit_tier": f"default_claude_{key.plan}"}
    return {"account": account, "organization": {"uuid": key.organization, "name": key.label, **kind}}


def models() -> dict[str, Any]:
    data = [
        {"type": "model", "id": model, "display_name": label, "created_at": "2026-05-01T00:00:00Z"}
        for model, label in MODELS.items()
    ]
    return {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}


class Stream:
    """The events of one message."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id = fresh_id("msg")
        self._index = -1
        self._open = ""

    def _start(self, kind: str, block: dict[str, Any]) -> bytes:
        closed = self._stop()
        self._index += 1
        self._open = kind
        started = {"type": "content_block_start", "index": self._index, "content_block": block}
        return closed + sse(started, "content_block_start")

    def _stop(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return sse({"type": "content_block_stop", "index": self._index}, "content_block_stop")

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return sse({"type": "content_block_delta", "index": self._index, "delta": delta}, "content_block_delta")

    def _message(self, usage: Usage, output_tokens: int) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input_tokens - usage.cached_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": usage.cached_tokens,
                "output_tokens": output_tokens,
            },
        }

    def opening(self, usage: Usage) -> bytes:
        message = {"type": "message_start", "message": self._message(usage, 1)}
        return sse(message, "message_start") + sse({"type": "ping"}, "ping")

    def thinking(self, text: str) -> bytes:
        started = self._start("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        said = self._delta({"type": "thinking_delta", "thinking": text})
        return started + said + self._delta({"type": "signature_delta", "signature": "c2ltdWxhdGVk"})

    def text(self, piece: str) -> bytes:
        started = b"" if self._open == "text" else self._start("text", {"type": "text", "text": ""})
        said = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":' % self._index
        return started + said + b'{"type":"text_delta","text":' + compact(piece) + b"}}\n\n"

    def call(self, call: Call) -> bytes:
        block = {"type": "tool_use", "id": call.id or fresh_id("toolu"), "name": call.name, "input": {}}
        parts = split(compact(call.arguments).decode(), 2)
        started = self._start("tool_use", block)  # first: the pieces carry this block's index
        said = [self._delta({"type": "input_json_delta", "partial_json": part}) for part in parts]
        return started + b"".join(said)

    def closing(self, usage: Usage, ending: str) -> bytes:
        delta = {"stop_reason": ENDINGS.get(ending, ending), "stop_sequence": None}
        last = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage.output_tokens}}
        return self._stop() + sse(last, "message_delta") + sse({"type": "message_stop"}, "message_stop")

    def refusal(self, refusal: Refusal, inside: str) -> bytes:
        return sse(refusal.body, "error")

    def whole(self, text: str, calls: tuple[Call, ...], usage: Usage, ending: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        for call in calls:
            block_id = call.id or fresh_id("toolu")
            content.append({"type": "tool_use", "id": block_id, "name": call.name, "input": call.arguments})
        ended = {"content": content, "stop_reason": ENDINGS.get(ending, ending)}
        return self._message(usage, usage.output_tokens) | ended
