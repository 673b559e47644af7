"""OpenAI by key, and servers that speak as it does: what is their own beside the contract."""

import json

import pytest

from conch.engines.base import (
    Access,
    CallTool,
    Done,
    EngineFault,
    LimitReached,
    Message,
    Rejected,
    Request,
    Text,
    Throttled,
    ToolCall,
    Usage,
)
from conch.engines.openai import OpenAI
from tests.engines.provider import heard, heard_until_refused, payload, text_of

ASK = Request("gpt-5.5", (Message("user", "Hi"),), max_output_tokens=8192)
NO_PATH = {"error": {"message": "Not Found"}}


@pytest.fixture
async def ask(provider):
    engine = OpenAI()
    yield lambda request=ASK: engine.reply(Access("o", provider.url + "/v1", "sk-x"), request)
    await engine.close()


def sse(*events):
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def completed(**response):
    return {"type": "response.completed", "response": {"status": "completed", "model": "gpt-5.5"} | response}


async def test_a_responses_stream_is_read(provider, ask):
    provider.says(payload("openai/responses_ok.sse"))
    events = await heard(ask())
    assert text_of(events) == "The tide turns at six."
    usage = [event for event in events if isinstance(event, Usage)][-1]
    assert usage.input_tokens == 2000
    assert events[-1] == Done("", "gpt-5.5")
    body = provider.asked[0].body
    assert provider.asked[0].path == "/v1/responses"
    assert body["store"] is False
    assert body["max_output_tokens"] == 8192


@pytest.mark.parametrize(
    ("name", "kind", "scope"),
    [
        ("responses_error_flat", Throttled, None),
        ("responses_error_nested_quota", LimitReached, "money"),
        ("responses_failed", EngineFault, None),
    ],
)
async def test_a_no_inside_the_stream_is_read_flat_and_nested(provider, ask, name, kind, scope):
    """R30, providers.md 5.1."""
    provider.says(payload(f"openai/{name}.sse"))
    _, error = await heard_until_refused(ask())
    assert type(error) is kind
    assert getattr(error, "scope", None) == scope


async def test_an_answer_cut_by_the_cap_says_so(provider, ask):
    provider.says(payload("openai/responses_incomplete.sse"))
    events = await heard(ask())
    assert events[-1].ending == "length"
    assert text_of(events) == "The tide turns at six."


async def test_text_that_never_came_in_pieces_is_taken_from_the_end(provider, ask):
    item = {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "All at once."}]}
    provider.says(sse(completed(output=[item])))
    assert text_of(await heard(ask())) == "All at once."
    provider.says(sse({"type": "response.output_item.done", "item": item}, completed(output=[item])))
    assert text_of(await heard(ask())) == "All at once."


async def test_a_call_comes_whole(provider, ask):
    item = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": '{"query":"tide"}'}
    provider.says(sse({"type": "response.output_item.done", "item": item}, completed()))
    assert CallTool(ToolCall("c1", "search", {"query": "tide"})) in await heard(ask())


async def test_an_empty_response_is_a_fault_and_a_lost_end_is_a_cut(provider, ask):
    """R30."""
    provider.says(sse(completed()))
    _, error = await heard_until_refused(ask())
    assert isinstance(error, EngineFault)
    whole = payload("openai/responses_ok.sse")
    provider.says([whole[: whole.index(b"event: response.completed") + 60]], end="cut")
    said, error = await heard_until_refused(ask())
    assert text_of(said) == "The tide turns at six."
    assert error.cut


async def test_another_server_is_asked_by_its_own_interface_from_then_on(provider, ask):
    """A 404 for the path accepted nothing; the second request goes straight to Chat Completions."""
    provider.says(NO_PATH, status=404, path="/v1/responses")
    provider.always("/v1/chat/completions", payload("gemini/chat_ok.sse"))
    for _ in range(2):
        assert text_of(await heard(ask())) == "The tide turns at six."
    assert [asked.path for asked in provider.asked] == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]


async def test_a_refusal_is_never_sent_again_by_another_interface(provider, ask):
    """R34: only a missing path is a reason."""
    for status, body in (
        (429, {"error": {"type": "insufficient_quota"}}),
        (500, {}),
        (400, {"error": {"message": "x"}}),
    ):
        provider.says(body, status=status)
        await heard_until_refused(ask())
    provider.says({"error": {"code": "model_not_found", "message": "The model `x` does not exist"}}, status=404)
    _, error = await heard_until_refused(ask())
    assert isinstance(error, Rejected)
    assert error.reason == "model_gone"
    assert {asked.path for asked in provider.asked} == {"/v1/responses"}


async def test_a_server_that_spoke_responses_is_not_asked_otherwise(provider, ask):
    provider.says(payload("openai/responses_ok.sse"))
    await heard(ask())
    provider.says(NO_PATH, status=404)
    await heard_until_refused(ask())
    assert {asked.path for asked in provider.asked} == {"/v1/responses"}


async def test_geminis_no_in_an_array_is_understood(provider, ask):
    provider.says(NO_PATH, status=404, path="/v1/responses")
    provider.says_payload("gemini/error_429_per_day_array.json")
    _, error = await heard_until_refused(ask(Request("gemini-2.5-flash", ASK.messages)))
    assert isinstance(error, LimitReached)
    assert error.model == "gemini-2.5-flash"
    assert error.until


async def test_models_that_cannot_chat_are_left_out(provider):
    listed = [
        "gpt-5.5",
        "text-embedding-3-large",
        "gpt-5.5-mini",
        "whisper-1",
        "tts-1",
        "models/gemini-2.5-flash",
        "llama-8b-instruct",
    ]
    provider.says({"data": [{"id": name, "object": "model"} for name in listed]})
    engine = OpenAI()
    models = await engine.models(Access("o", provider.url, "sk-x"))
    await engine.close()
    assert [model.id for model in models] == ["gpt-5.5", "gpt-5.5-mini", "gemini-2.5-flash", "llama-8b-instruct"]
    assert [model.label for model in models] == [
        "GPT-5.5",
        "GPT-5.5 Mini",
        "gemini-2.5-flash",
        "llama-8b-instruct",
    ]


async def test_the_organisation_is_read_from_the_models_answer(provider):
    provider.says({"data": []}, headers=payload("openai/headers_ok.json"))
    engine = OpenAI()
    assert (await engine.identify(Access("o", provider.url, "sk-x"))).organization == "org-example"
    await engine.close()


async def test_thinking_is_progress(provider, ask):
    provider.says(
        sse(
            {"type": "response.reasoning_summary_text.delta", "delta": "Moon."},
            {"type": "response.output_text.delta", "item_id": "m", "delta": "Six."},
            completed(),
        )
    )
    events = await heard(ask())
    assert [type(event).__name__ for event in events] == ["Progress", "Text", "Done"]
    assert events[1] == Text("Six.")
