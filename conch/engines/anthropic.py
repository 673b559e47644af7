"""Anthropic by API key: the Messages stream (providers.md 2)."""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar

from conch.engines.base import (
    Access,
    Billing,
    CallTool,
    ConnectBy,
    Done,
    EngineFault,
    Event,
    Identity,
    Image,
    Message,
    Model,
    Progress,
    Rejected,
    Request,
    Room,
    Text,
    Usage,
)
from conch.engines.refusals import Speaks
from conch.engines.wire import Answering, Clients, parsed
from conch.engines.wire_chat import tool_call
from conch.engines.wire_frames import Frame
from conch.engines.wire_text import Seam, clean, clean_json, count

Json = dict[str, Any]
DEFAULT_OUTPUT = 8192  # the API requires a cap (R34's, where the caller gave none)


class Anthropic:
    """Replies by an Anthropic API key, which pays per use. What it has left can't be read."""

    id: ClassVar[str] = "anthropic"
    label: ClassVar[str] = "Anthropic"
    billing: ClassVar[Billing] = Billing.KEY
    shares_account: ClassVar[str] = "anthropic"
    meters: ClassVar[bool] = False
    connect_by: ClassVar[ConnectBy] = ConnectBy.KEY
    plan_name: ClassVar[str] = ""
    monogram: ClassVar[str] = "An"
    official_base_url: ClassVar[str] = "https://api.anthropic.com"
    preferred_models: ClassVar[tuple[str, ...]] = ("claude-sonnet-5", "claude-sonnet", "claude-opus", "claude-haiku")
    billing_page: ClassVar[str] = "https://console.anthropic.com/settings/billing"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"
    address_variable: ClassVar[str] = "ANTHROPIC_BASE_URL"

    def __init__(self) -> None:
        self.clients = Clients(Speaks.ANTHROPIC)

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer."""
        client = self.clients.client(access, access.base_url or self.official_base_url)
        async with client.answer("/v1/messages", messages_body(request)) as answering:
            reply = MessagesReply(answering, request.model)
            try:
                async with aclosing(answering.frames()) as frames:
                    async for frame in frames:
                        for event in reply.take(frame):
                            yield event
                        if reply.stopped:
                            break
            except EngineFault:
                # The stop reason was seen: the answer is whole, whatever became of the closing bytes (LIM-18).
                if not reply.stop_reason:
                    raise
            for event in reply.end():
                yield event
            await answering.drain()

    async def read_room(self, access: Access) -> Room | None:  # noqa: ARG002 - nothing can be read with a plain key
        """A plain key's spend can't be read, and its per-minute buckets are no room."""
        return None

    async def identify(self, access: Access) -> Identity:
        """The organisation that the key's limits belong to; a key is an account of its own (R1)."""
        reading = await self._client(access).read("/v1/models?limit=1")
        return Identity(organization=reading.headers.get("anthropic-organization-id", ""))

    async def models(self, access: Access) -> Sequence[Model]:
        """What the key can answer with. The list says nothing of tools and images: all of them take both."""
        reading = await self._client(access).read("/v1/models?limit=1000")
        listed = reading.body.get("data") if isinstance(reading.body, Mapping) else None
        return [
            Model(
                id=str(entry["id"]),
                label=str(entry.get("display_name") or ""),
                tools=True,
                images=True,
                context=count(entry.get("max_input_tokens")),
            )
            for entry in listed or ()
            if isinstance(entry, Mapping) and entry.get("id")
        ]

    def prepare(self) -> None:
        """Load what the first turn would otherwise wait for. Blocking."""
        self.clients.prepare()

    async def close(self) -> None:
        """Close the connections."""
        await self.clients.close()

    def _client(self, access: Access) -> Any:
        return self.clients.client(access, access.base_url or self.official_base_url)


def messages_body(request: Request) -> Json:
    """The request as a Messages body. Neighbouring messages of one role become one, as the API wants them."""
    messages: list[Json] = []
    for message in request.messages:
        content = _content(message)
        if messages and messages[-1]["role"] == message.role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": message.role, "content": content})
    body: Json = {
        "model": request.model,
        "max_tokens": request.max_output_tokens or DEFAULT_OUTPUT,
        "messages": messages,
        "stream": True,
    }
    if request.instructions:
        body["system"] = clean(request.instructions)
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": clean(tool.description), "input_schema": clean_json(tool.schema)}
            for tool in request.tools
        ]
    return body


def _content(message: Message) -> list[Json]:
    parts: list[Json] = [
        {"type": "tool_result", "tool_use_id": outcome.id, "content": clean(outcome.text), "is_error": outcome.failed}
        for outcome in message.outcomes
    ]
    parts += [_picture(image) for image in message.images]
    # The API refuses a text block that is empty or blank.
    if message.text.strip():
        parts.append({"type": "text", "text": clean(message.text)})
    parts += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": clean_json(call.arguments)}
        for call in message.calls
    ]
    return parts


def _picture(image: Image) -> Json:
    data = base64.b64encode(image.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


class MessagesReply:
    """What has come of one answer so far."""

    def __init__(self, answering: Answering, model: str) -> None:
        self.stop_reason = ""
        self.stopped = False  # the terminal event was seen
        self._answering = answering
        self._model = model
        self._seam = Seam()
        self._usage = Usage()
        self._counted: dict[str, int] = {}
        self._calls: dict[Any, Json] = {}
        self._started = False
        self._said = False

    def take(self, frame: Frame) -> list[Event]:
        """What this frame adds. Raises EngineError for an error inside the stream (R30)."""
        event = parsed(frame.data)
        if not isinstance(event, Mapping):
            raise EngineFault("a part of the answer can't be read", cut=True)
        kind = event.get("type") or frame.name
        if kind == "error" or (kind == "" and event.get("error")):
            raise self._answering.failure(event, started=self._started)
        if kind == "message_start":
            return self._start(event.get("message"))
        if kind == "content_block_start":
            return self._block(event.get("index"), event.get("content_block"))
        if kind == "content_block_delta":
            return self._delta(event.get("index"), event.get("delta"))
        if kind == "message_delta":
            delta = event.get("delta")
            if isinstance(delta, Mapping):
                self.stop_reason = str(delta.get("stop_reason") or self.stop_reason)
            return self._count(event.get("usage"))
        self.stopped = self.stopped or kind == "message_stop"
        return []

    def _start(self, message: Any) -> list[Event]:
        self._started = True
        if not isinstance(message, Mapping):
            return []
        self._model = str(message.get("model") or self._model)
        return self._count(message.get("usage"))

    def _block(self, index: Any, block: Any) -> list[Event]:
        if not isinstance(block, Mapping):
            return []
        if block.get("type") == "tool_use":
            name, call_id = str(block.get("name") or ""), str(block.get("id") or "")
            self._calls[index] = {"id": call_id, "name": name, "arguments": ""}
        if block.get("type") in {"thinking", "redacted_thinking"}:
            return [Progress("thinking")]
        return self._text(block.get("text"))

    def _delta(self, index: Any, delta: Any) -> list[Event]:
        if not isinstance(delta, Mapping):
            return []
        if delta.get("type") == "input_json_delta" and index in self._calls:
            self._calls[index]["arguments"] += str(delta.get("partial_json") or "")
            return []
        return self._text(delta.get("text")) if delta.get("type") == "text_delta" else []

    def _text(self, piece: Any) -> list[Event]:
        text = self._seam.add(piece) if isinstance(piece, str) else ""
        self._said = self._said or bool(text)
        return [Text(text)] if text else []

    def _count(self, usage: Any) -> list[Event]:
        """Figures are cumulative: each one that is said replaces the last. The prompt is what was read and cached."""
        if not isinstance(usage, Mapping):
            return []
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"):
            said = count(usage.get(name))
            if said is not None:
                self._counted[name] = said
        known = self._counted
        cached, written = known.get("cache_read_input_tokens"), known.get("cache_creation_input_tokens")
        prompt = known["input_tokens"] + (cached or 0) + (written or 0) if "input_tokens" in known else None
        figures = Usage(prompt, cached, written, known.get("output_tokens"))
        if figures == self._usage:
            return []
        self._usage = figures
        return [replace(figures)]

    def end(self) -> list[Event]:
        """The last events. Raises EngineFault for a stream that was cut or held no answer."""
        if not self.stop_reason and not (self.stopped and self._said):
            raise EngineFault("the answer was cut off" if self._said else "the answer is empty", cut=True)
        rest = self._seam.end()
        events: list[Event] = [Text(rest)] if rest else []
        cut_short = self.stop_reason in {"max_tokens", "model_context_window_exceeded"}
        if not cut_short:
            events += [CallTool(tool_call(call, place)) for place, call in enumerate(self._calls.values())]
            if not self._said and not self._calls:
                if self.stop_reason == "refusal":
                    raise Rejected("the model refused", accepted=True)
                raise EngineFault("the answer is empty")
        return [*events, Done("length" if cut_short else "", self._model)]
