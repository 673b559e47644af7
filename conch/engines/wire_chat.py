"""Chat Completions, as OpenAI-compatible servers stream it (providers.md 5.2, 6, 7, 8).

`chat_body(request)` writes a request; `stream_chat(client, body)` sends it once and yields base events until Done, or
raises an EngineError. Used by openrouter, by openai for other servers, and by the model on this computer:

    clients = Clients(Speaks.COMPATIBLE)                      # one per engine (wire.py)
    client = clients.client(access, base_url)                 # kept per base URL and key; `key=` if the access has none
    async for event in stream_chat(client, chat_body(request)):
        ...
"""

import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from conch.engines.base import (
    CallTool,
    Done,
    EngineFault,
    Event,
    Image,
    Message,
    Progress,
    Rejected,
    Request,
    Text,
    Tool,
    ToolCall,
    Usage,
)
from conch.engines.wire import Answering, Client, parsed
from conch.engines.wire_frames import Frame
from conch.engines.wire_text import Seam, clean, clean_json, count, money, too_deep

Json = dict[str, Any]
LONGEST_NAME = 200  # characters of a tool's name, and of a call's id


def chat_body(request: Request, *, extra: Mapping[str, Any] | None = None) -> Json:
    """The request as a Chat Completions body, `extra` members added."""
    messages: list[Json] = []
    if request.instructions:
        messages.append({"role": "system", "content": clean(request.instructions)})
    for message in request.messages:
        messages += _messages(message)
    body: Json = {
        "model": request.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body | dict(extra or {})


def _messages(message: Message) -> list[Json]:
    if message.role == "assistant":
        said: Json = {"role": "assistant", "content": clean(message.text)}
        if message.calls:
            said["tool_calls"] = [_call(call) for call in message.calls]
        return [said]
    found: list[Json] = [
        {"role": "tool", "tool_call_id": outcome.id, "content": clean(outcome.text)} for outcome in message.outcomes
    ]
    if message.text or message.images or not found:
        found.append({"role": "user", "content": _content(message)})
    return found


def _content(message: Message) -> str | list[Json]:
    if not message.images:
        return clean(message.text)
    parts: list[Json] = [{"type": "text", "text": clean(message.text)}] if message.text else []
    return parts + [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in message.images]


def data_url(image: Image) -> str:
    """A picture as a data: URL."""
    return f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"


def _call(call: ToolCall) -> Json:
    said: Json = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": json.dumps(clean_json(call.arguments))},
    }
    return said | ({"extra_content": call.sealed} if call.sealed else {})


def _tool(tool: Tool) -> Json:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": clean(tool.description),
            "parameters": clean_json(tool.schema),
        },
    }


async def stream_chat(
    client: Client, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[Event, None]:
    """Send it once and say what comes, ending with Done. Raises EngineError; closing it stops the provider."""
    async with client.answer("/chat/completions", body, headers=headers) as answering:
        reply = ChatReply(answering, str(body.get("model") or ""))
        try:
            async with aclosing(answering.frames()) as frames:
                async for frame in frames:
                    for event in reply.take(frame):
                        yield event
                    if reply.closed:
                        break
        except EngineFault:
            # The finish was seen: the answer is whole, whatever happens to the rest of the connection (LIM-18).
            if not reply.finish:
                raise
        for event in reply.end():
            yield event
        await answering.drain()


class ChatReply:
    """What has come of one answer so far."""

    def __init__(self, answering: Answering, model: str) -> None:
        self.finish = ""
        self.closed = False  # [DONE] was seen
        self._answering = answering
        self._model = model
        self._seam = Seam()
        self._calls: list[Json] = []
        self._said = False
        self._thinking = False

    def take(self, frame: Frame) -> list[Event]:
        """What this frame adds. Raises EngineError for an error inside the stream (R30)."""
        if frame.data.startswith("[DONE]"):
            self.closed = True
            return []
        chunk = parsed(frame.data)
        if isinstance(chunk, list) and len(chunk) == 1:
            chunk = chunk[0]  # Google's errors come in an array of one
        if not isinstance(chunk, Mapping):
            raise EngineFault("a part of the answer can't be read", cut=True)
        if chunk.get("error") or frame.name == "error":
            raise self._answering.failure(chunk, started=self._started)
        self._model = str(chunk.get("model") or self._model)
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        events = self._choice(choice) if isinstance(choice, Mapping) else []
        usage = chat_usage(chunk.get("usage"))
        return [*events, usage] if usage else events

    @property
    def _started(self) -> bool:
        return self._said or bool(self._calls) or self._thinking

    def _choice(self, choice: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, Mapping):
            raise EngineFault("a part of the answer can't be read", cut=True)
        if (delta.get("reasoning_content") or delta.get("reasoning")) and not self._thinking:
            self._thinking = True
            events.append(Progress("thinking"))
        text = self._seam.add(_text(delta.get("content")) or _text(delta.get("refusal")))
        if text:
            self._said = True
            events.append(Text(text))
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else ():
            if isinstance(piece, Mapping):
                self._add_call(piece)
        self.finish = str(choice.get("finish_reason") or self.finish)
        if self.finish == "error":
            raise self._answering.failure({"error": choice.get("error") or {}}, started=self._started)
        return events

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, Mapping) else {}
        call_id, index = piece.get("id"), piece.get("index")
        known = [call for call in self._calls if call["index"] == index] if index is not None else self._calls[-1:]
        call = known[-1] if known else None
        # Some servers give every call the index 0 and tell them apart by id.
        if call is None or (call_id and call["id"] and call_id != call["id"]):
            call = {"index": index, "id": "", "name": "", "arguments": ""}
            self._calls.append(call)
        # Gemini refuses the next round without what it sealed into the call.
        call["sealed"] = piece.get("extra_content") or call.get("sealed")
        call["id"] = call["id"] or str(call_id or "")
        call["name"] = call["name"] or str(function.get("name") or "")
        arguments = function.get("arguments")
        call["arguments"] += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""

    def end(self) -> list[Event]:
        """The last events. Raises EngineFault for a stream that was cut or held no answer."""
        if not self.finish and not (self.closed and self._started):
            raise EngineFault("the answer was cut off" if self._started else "the answer is empty", cut=True)
        rest = self._seam.end()
        events: list[Event] = [Text(rest)] if rest else []
        cut_short = self.finish in {"length", "max_tokens"}
        if not cut_short:
            events += [CallTool(tool_call(call, place)) for place, call in enumerate(self._calls)]
        if self.finish == "content_filter":
            raise filtered(started=self._said)
        if not cut_short and not self._said and not self._calls:
            raise EngineFault("the answer is empty")
        return [*events, Done("length" if cut_short else "", self._model)]


def filtered(*, started: bool) -> EngineFault | Rejected:
    """What a provider's content filter did: cut the answer, or took no request."""
    if started:
        return EngineFault("the provider's content filter ended the answer", cut=True)
    return Rejected("the provider's content filter refused", accepted=True)


def tool_call(call: Mapping[str, Any], place: int) -> ToolCall:
    """A call whose arguments are whole. Raises EngineFault where they are no JSON object."""
    arguments = parsed(call["arguments"]) if call["arguments"].strip() else {}
    name, call_id = clean(call["name"])[:LONGEST_NAME], clean(call["id"])
    if not isinstance(arguments, dict) or not name or too_deep(arguments):
        raise EngineFault(f"the call of {name or 'a tool'} can't be read")
    # The id goes back with what the call gave, as a part of what is paid for.
    call_id = call_id if 0 < len(call_id) <= LONGEST_NAME else f"call_{place}"
    return ToolCall(call_id, name, clean_json(arguments), call.get("sealed"))


def _text(content: Any) -> str:
    """Text of a delta: a string, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def chat_usage(usage: Any) -> Usage | None:
    """The tokens of a reply, and what OpenRouter says it charged."""
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    cost = money(usage.get("cost"))
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        cached_input_tokens=count(details.get("cached_tokens")),
        cache_write_tokens=count(details.get("cache_write_tokens")),
        output_tokens=_output_tokens(usage),
        cost=cost if cost is not None and cost >= 0 else None,
    )


def _output_tokens(usage: Mapping[str, Any]) -> int | None:
    """What was written, thoughts included: Gemini counts those in the total only, and charges for them."""
    said, whole, prompt = (count(usage.get(name)) for name in ("completion_tokens", "total_tokens", "prompt_tokens"))
    if said is None or whole is None or prompt is None:
        return said
    return max(said, whole - prompt)
