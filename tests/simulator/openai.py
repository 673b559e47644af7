"""OpenAI's two wires: Responses and Chat Completions (providers.md 5)."""

from collections.abc import Iterator
from typing import Any

from tests.simulator.keys import Key
from tests.simulator.scripts import Call, split
from tests.simulator.server import compact
from tests.simulator.wire import Asked, Refusal, Usage, count_blocks, fresh_id, sse, texts_of

MODELS = {"gpt-5.5": "GPT-5.5", "gpt-5.5-pro": "GPT-5.5 Pro", "gpt-5-mini": "GPT-5 mini"}
GOOGLE_MODELS = ("models/gemini-embedding-001", "models/gemini-2.5-flash", "models/gemini-2.5-pro")
FINISHES = {"stop": "stop", "length": "length", "refusal": "content_filter", "tool": "tool_calls"}


def refusal(
    status: int, message: str, kind: str, code: str | None = None, headers: dict[str, str] | None = None
) -> Refusal:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return Refusal(status, body, {"x-request-id": fresh_id("req")} | (headers or {}))


def unauthorized(secret: str) -> Refusal:
    said = f"Incorrect API key provided: {secret[:7]}****{secret[-3:]}."
    return refusal(401, said, "invalid_request_error", "invalid_api_key")


def headers(key: Key) -> dict[str, str]:
    return {
        "x-request-id": fresh_id("req"),
        "openai-organization": key.organization or "org-example",
        "openai-processing-ms": "12",
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "27500",
        "x-ratelimit-reset-tokens": "5s",
    }


def models() -> dict[str, Any]:
    listed = [{"id": model, "object": "model", "created": 1780000000, "owned_by": "simulated"} for model in MODELS]
    return {"object": "list", "data": listed}


def google_models() -> dict[str, Any]:
    """Gemini's list on its OpenAI-compatible endpoint (providers.md 7)."""
    listed = [{"id": model, "object": "model", "owned_by": "google"} for model in GOOGLE_MODELS]
    return {"object": "list", "data": listed}


# Responses


def asked_responses(body: dict[str, Any]) -> Asked:
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = tuple(_said(item) for item in items if item.get("type") != "additional_tools")
    return Asked(
        model=str(body.get("model", "")),
        messages=messages,
        instructions=str(body.get("instructions") or ""),
        tools=tuple(_tools([body, *(item for item in items if item.get("type") == "additional_tools")])),
        images=sum(count_blocks(item.get("content"), ("input_image",)) for item in items),
        max_output=body.get("max_output_tokens"),
        stream=bool(body.get("stream")),
    )


def _tools(holders: list[dict[str, Any]]) -> Iterator[str]:
    """The names; newer models are told of them in an item of the input, in namespaces."""
    for tool in (tool for holder in holders for tool in holder.get("tools") or ()):
        yield from _tools([tool]) if tool.get("type") == "namespace" else (tool.get("name", ""),)


def _said(item: dict[str, Any]) -> tuple[str, str]:
    if item.get("type") == "function_call":
        return "assistant", f"{item.get('name')} {item.get('arguments')}"
    if item.get("type") == "function_call_output":
        output = item.get("output")
        return "tool", output if isinstance(output, str) else texts_of(output, ("input_text", "output_text"))
    return str(item.get("role", "")), texts_of(item.get("content"), ("input_text", "output_text", "text"))


class ResponsesStream:
    """The events of one response. ChatGPT's own backend may leave the final `output` empty (`bare`)."""

    def __init__(self, model: str, created: float, *, bare: bool = False) -> None:
        self._model = model
        self._created = int(created)
        self._bare = bare
        self._id = fresh_id("resp")
        self._sequence = -1
        self._output: list[dict[str, Any]] = []
        self._message_id = ""
        self._text: list[str] = []

    def _event(self, kind: str, **facts: Any) -> bytes:
        self._sequence += 1
        return sse({"type": kind, "sequence_number": self._sequence, **facts}, kind)

    def _response(self, status: str, usage: Usage | None = None, **facts: Any) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._model,
            "output": [] if self._bare else list(self._output),
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": responses_usage(usage) if usage else None,
            **facts,
        }

    def opening(self, usage: Usage) -> bytes:
        begun = self._event("response.created", response=self._response("in_progress"))
        return begun + self._event("response.in_progress", response=self._response("in_progress"))

    def thinking(self, text: str) -> bytes:
        item = {"id": fresh_id("rs"), "type": "reasoning", "summary": []}
        at = {"item_id": item["id"], "output_index": len(self._output), "summary_index": 0}
        added = self._event("response.output_item.added", output_index=len(self._output), item=item)
        said = self._event("response.reasoning_summary_text.delta", **at, delta=text)
        return added + said + self._done(item | {"summary": [{"type": "summary_text", "text": text}]})

    def _done(self, item: dict[str, Any]) -> bytes:
        self._output.append(item)
        return self._event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _message(self, status: str, *content: dict[str, Any]) -> dict[str, Any]:
        facts = {"id": self._message_id, "type": "message", "role": "assistant", "status": status}
        return facts | {"content": list(content)}

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}

    def _at(self) -> dict[str, Any]:
        return {"item_id": self._message_id, "output_index": len(self._output), "content_index": 0}

    def text(self, piece: str) -> bytes:
        started = b""
        if not self._message_id:
            self._message_id = fresh_id("msg")
            place = len(self._output)
            message = self._message("in_progress")
            started = self._event("response.output_item.added", output_index=place, item=message)
            started += self._event("response.content_part.added", **self._at(), part=self._part(""))
        self._text.append(piece)
        self._sequence += 1
        where = b'"item_id":"%b","output_index":%d' % (self._message_id.encode(), len(self._output))
        head = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":%d,'
        said = head % self._sequence + where + b',"content_index":0,"delta":'
        return started + said + compact(piece) + b',"logprobs":[]}\n\n'

    def _finish_text(self) -> bytes:
        if not self._message_id:
            return b""
        text = "".join(self._text)
        said = self._event("response.output_text.done", **self._at(), text=text, logprobs=[])
        said += self._event("response.content_part.done", **self._at(), part=self._part(text))
        said += self._done(self._message("completed", self._part(text)))
        self._message_id = ""
        self._text.clear()
        return said

    def call(self, call: Call) -> bytes:
        finished = self._finish_text()
        arguments = compact(call.arguments).decode()
        item = {"id": fresh_id("fc"), "type": "function_call", "status": "in_progress", "name": call.name}
        item |= {"call_id": call.id or fresh_id("call"), "arguments": ""}
        at = {"item_id": item["id"], "output_index": len(self._output)}
        said = self._event("response.output_item.added", output_index=len(self._output), item=item)
        for part in split(arguments, 2):
            said += self._event("response.function_call_arguments.delta", **at, delta=part)
        said += self._event("response.function_call_arguments.done", **at, arguments=arguments)
        return finished + said + self._done(item | {"status": "completed", "arguments": arguments})

    def closing(self, usage: Usage, ending: str) -> bytes:
        finished = self._finish_text()
        if ending == "length":
            why = {"reason": "max_output_tokens"}
            response = self._response("incomplete", usage, incomplete_details=why)
            return finished + self._event("response.incomplete", response=response)
        return finished + self._event("response.completed", response=self._response("completed", usage))

    def refusal(self, refusal: Refusal, inside: str) -> bytes:
        """An `error` event, nested as captured (and with its status), flat as documented, or `response.failed`."""
        error = refusal.error
        if inside == "failed":
            shown = {"code": error.get("code") or error.get("type")} | error
            return self._event("response.failed", response=self._response("failed", error=shown))
        if inside == "flat":
            return self._event("error", code=error.get("code"), message=error.get("message"), param=None)
        return sse({"type": "error", "status": refusal.status, "error": error}, "error")

    def whole(self, text: str, calls: tuple[Call, ...], usage: Usage, ending: str) -> dict[str, Any]:
        if text:
            self.text(text)
        for call in calls:
            self.call(call)
        self._finish_text()
        if ending == "length":
            return self._response("incomplete", usage, incomplete_details={"reason": "max_output_tokens"})
        return self._response("completed", usage)


def responses_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


# Chat Completions


def asked_chat(body: dict[str, Any]) -> Asked:
    messages = body.get("messages") or []
    said = [(each.get("role", ""), texts_of(each.get("content"), ("text",))) for each in messages]
    options = body.get("stream_options") or {}
    return Asked(
        model=str(body.get("model", "")),
        messages=tuple(pair for pair in said if pair[0] not in {"system", "developer"}),
        instructions="\n".join(text for role, text in said if role in {"system", "developer"}),
        tools=tuple(tool.get("function", {}).get("name", "") for tool in body.get("tools") or ()),
        images=sum(count_blocks(each.get("content"), ("image_url",)) for each in messages),
        max_output=body.get("max_completion_tokens") or body.get("max_tokens"),
        stream=bool(body.get("stream")),
        usage_wanted=bool(options.get("include_usage")),
    )


class ChatStream:
    """The chunks of one chat completion."""

    def __init__(self, model: str, created: float, *, usage_wanted: bool) -> None:
        self._usage_wanted = usage_wanted
        facts = {"id": fresh_id("chatcmpl"), "object": "chat.completion.chunk"}
        self._facts: dict[str, Any] = facts | {"created": int(created), "model": model}
        self._head = compact(self._facts)[:-1]
        self._calls = 0

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return sse(self._facts | {"choices": [choice], "usage": None} | more)

    def opening(self, usage: Usage) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def thinking(self, text: str) -> bytes:
        return self._chunk({"reasoning_content": text})

    def text(self, piece: str) -> bytes:
        said = (
            b',"choices":[{"index":0,"delta":{"content":' + compact(piece) + b'},"finish_reason":null}],"usage":null}'
        )
        return b"data: " + self._head + said + b"\n\n"

    def call(self, call: Call) -> bytes:
        place, self._calls = self._calls, self._calls + 1
        first, *rest = split(compact(call.arguments).decode(), 2)
        function = {"name": call.name, "arguments": first}
        begun = {"index": place, "id": call.id or fresh_id("call"), "type": "function", "function": function}
        said = self._chunk({"tool_calls": [begun]})
        for part in rest:
            said += self._chunk({"tool_calls": [{"index": place, "function": {"arguments": part}}]})
        return said

    def closing(self, usage: Usage, ending: str) -> bytes:
        said = self._chunk({}, FINISHES.get(ending, ending))
        if self._usage_wanted:
            said += sse(self._facts | {"choices": [], "usage": chat_usage(usage)})
        return said + b"data: [DONE]\n\n"

    def refusal(self, refusal: Refusal, inside: str) -> bytes:
        return sse(refusal.body)

    def whole(self, text: str, calls: tuple[Call, ...], usage: Usage, ending: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id or fresh_id("call"),
                    "type": "function",
                    "function": {"name": call.name, "arguments": compact(call.arguments).decode()},
                }
                for call in calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": FINISHES.get(ending, ending)}
        return self._facts | {"object": "chat.completion", "choices": [choice], "usage": chat_usage(usage)}


def chat_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
