"""The Responses stream, as OpenAI and the ChatGPT plan speak it (providers.md 4 and 5.1)."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from conch.engines.base import (
    CallTool,
    Done,
    EngineError,
    EngineFault,
    Event,
    Message,
    Progress,
    Request,
    Text,
    Tool,
    ToolCall,
    Usage,
)
from conch.engines.wire import Answering, Client, parsed
from conch.engines.wire_chat import data_url, filtered, tool_call
from conch.engines.wire_frames import Frame
from conch.engines.wire_text import Seam, clean, clean_json, count

Json = dict[str, Any]
# Looks at the answer's headers (with no event) and at every event of a type of the provider's own.
Aside = Callable[[Mapping[str, str], Mapping[str, Any] | None], list[Event]]


def responses_body(request: Request) -> Json:
    """The request as a Responses body; nothing of it is stored by the provider."""
    items: list[Json] = []
    for message in request.messages:
        items += _items(message)
    body: Json = {
        "model": request.model,
        "instructions": clean(request.instructions),
        "input": items,
        "stream": True,
        "store": False,
    }
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def _items(message: Message) -> list[Json]:
    found: list[Json] = [
        {"type": "function_call_output", "call_id": outcome.id, "output": clean(outcome.text)}
        for outcome in message.outcomes
    ]
    mine = message.role == "assistant"
    parts: list[Json] = []
    if message.text:
        parts.append({"type": "output_text" if mine else "input_text", "text": clean(message.text)})
    parts += [{"type": "input_image", "image_url": data_url(image)} for image in message.images]
    if parts:
        found.append({"type": "message", "role": message.role, "content": parts})
    return found + [_call(call) for call in message.calls]


def _call(call: ToolCall) -> Json:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": json.dumps(clean_json(call.arguments)),
    }


def _tool(tool: Tool) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": clean(tool.description),
        "parameters": clean_json(tool.schema),
        "strict": False,
    }


async def stream_responses(
    client: Client,
    path: str,
    body: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    aside: Aside | None = None,
) -> AsyncGenerator[Event, None]:
    """Send it once and say what comes, ending with Done. Raises EngineError; closing it stops the provider."""
    async with client.answer(path, body, headers=headers) as answering:
        reply = ResponsesReply(answering, str(body.get("model") or ""), aside)
        for event in aside(answering.headers, None) if aside else ():
            yield event
        try:
            async with aclosing(answering.frames()) as frames:
                async for frame in frames:
                    for event in reply.take(frame):
                        yield event
                    if reply.ended:
                        break
        except EngineFault:
            if not reply.ended:
                raise
        for event in reply.end():
            yield event
        await answering.drain()


class ResponsesReply:
    """What has come of one answer so far."""

    def __init__(self, answering: Answering, model: str, aside: Aside | None = None) -> None:
        self.ended = ""  # "completed" or "incomplete"
        self._answering = answering
        self._aside = aside
        self._model = model
        self._seam = Seam()
        self._why = ""
        self._said = False
        self._thinking = False
        self._spoken: set[Any] = set()  # items whose text came in pieces
        self._calls: list[ToolCall] = []

    @property
    def _started(self) -> bool:
        return self._said or self._thinking or bool(self._calls)

    def take(self, frame: Frame) -> list[Event]:
        """What this frame adds. Raises EngineError for an error inside the stream (R30)."""
        if frame.data.startswith("[DONE]"):
            return []
        event = parsed(frame.data)
        if not isinstance(event, Mapping):
            raise EngineFault("a part of the answer can't be read", cut=True)
        kind = event.get("type") or frame.name
        if kind in {"response.completed", "response.incomplete", "response.done"}:
            return self._terminal(event)
        if kind in {"error", "response.failed"} or (not event.get("type") and event.get("error")):
            raise self._failure(event)
        if kind in {"response.output_text.delta", "response.refusal.delta"}:
            self._spoken.add(event.get("item_id"))
            return self._text(event.get("delta"))
        if kind == "response.output_item.done":
            return self._item(event.get("item"))
        if str(kind).startswith("response.reasoning") and not self._thinking:
            self._thinking = True
            return [Progress("thinking")]
        return self._aside(self._answering.headers, event) if self._aside else []

    def _failure(self, event: Mapping[str, Any]) -> EngineError:
        return self._answering.failure(event, started=self._started)

    def _text(self, delta: Any) -> list[Event]:
        text = self._seam.add(delta) if isinstance(delta, str) else ""
        self._said = self._said or bool(text)
        return [Text(text)] if text else []

    def _item(self, item: Any) -> list[Event]:
        if not isinstance(item, Mapping):
            return []
        if item.get("type") == "function_call":
            call = {"id": str(item.get("call_id") or ""), "name": str(item.get("name") or "")}
            self._calls.append(tool_call(call | {"arguments": str(item.get("arguments") or "")}, len(self._calls)))
        if item.get("type") != "message" or item.get("id") in self._spoken:
            return []
        # An item whose text never came in pieces: it is here, whole.
        parts = item.get("content")
        texts = [part.get("text") for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
        return self._text("".join(text for text in texts if isinstance(text, str)))

    def _terminal(self, event: Mapping[str, Any]) -> list[Event]:
        response = event.get("response")
        response = response if isinstance(response, Mapping) else {}
        if response.get("status") == "failed" or response.get("error"):
            raise self._failure(event)
        events: list[Event] = []
        if not self._started:
            output = response.get("output")
            for item in output if isinstance(output, list) else ():
                events += self._item(item)
        why = response.get("incomplete_details")
        self._why = str(why.get("reason") or "") if isinstance(why, Mapping) else ""
        self.ended = "incomplete" if self._why or response.get("status") == "incomplete" else "completed"
        self._model = str(response.get("model") or self._model)
        usage = responses_usage(response.get("usage"))
        return [*events, usage] if usage else events

    def end(self) -> list[Event]:
        """The last events. Raises EngineFault for a stream that was cut or held no answer."""
        if not self.ended:
            raise EngineFault("the answer was cut off" if self._started else "the answer is empty", cut=True)
        rest = self._seam.end()
        events: list[Event] = [Text(rest)] if rest else []
        if self._why == "content_filter":
            raise filtered(started=self._said)
        cut_short = self.ended == "incomplete"
        if not cut_short:
            events += [CallTool(call) for call in self._calls]
            if not self._said and not self._calls:
                raise EngineFault("the answer is empty")
        return [*events, Done("length" if cut_short else "", self._model)]


def responses_usage(usage: Any) -> Usage | None:
    """The tokens of a reply; `input_tokens` includes the cached ones."""
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("input_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        cached_input_tokens=count(details.get("cached_tokens")),
        output_tokens=count(usage.get("output_tokens")),
    )
