"""Anthropic by key: what is its own beside the contract."""

import pytest

from conch.engines.anthropic import Anthropic, messages_body
from conch.engines.base import (
    Access,
    CallTool,
    Done,
    EngineFault,
    Image,
    Message,
    Overloaded,
    Progress,
    Rejected,
    Request,
    Text,
    ToolCall,
    ToolOutcome,
    Usage,
)
from tests.engines.provider import heard, heard_until_refused, payload, text_of

ASK = Request("claude-sonnet-5", (Message("user", "Hi"),), max_output_tokens=8192)


@pytest.fixture
async def ask(provider):
    engine = Anthropic()
    yield lambda request=ASK: engine.reply(Access("a", provider.url, "sk-ant-x"), request)
    await engine.close()


async def test_the_prompt_is_what_was_read_and_what_was_cached(provider, ask):
    """providers.md 0.5: cumulative figures; input and both cache fields are the prompt."""
    provider.says(payload("anthropic/stream_ok.sse"))
    events = await heard(ask())
    assert text_of(events) == "The tide turns at six."
    usage = [event for event in events if isinstance(event, Usage)]
    assert usage[0] == Usage(2000, 1960, 0, 1)
    assert usage[-1] == Usage(2000, 1960, 0, 12)
    assert events[-1] == Done("", "claude-sonnet-5")
    asked = provider.asked[0]
    assert asked.path == "/v1/messages"
    assert asked.headers["x-api-key"] == "sk-ant-x"
    assert asked.headers["anthropic-version"] == "2023-06-01"


async def test_thinking_and_its_signature_stay_out_of_the_answer(provider, ask):
    provider.says(payload("anthropic/stream_thinking.sse"))
    events = await heard(ask())
    assert text_of(events) == "At six."
    assert Progress("thinking") in events


async def test_a_tool_call_comes_whole(provider, ask):
    provider.says(payload("anthropic/stream_tool_use.sse"))
    events = await heard(ask())
    assert CallTool(ToolCall("toolu_ex_2", "search", {"query": "tide"})) in events


async def test_an_overload_amid_an_answer_may_be_paid_for(provider, ask):
    """R8: only before any event is it surely free."""
    provider.says(payload("anthropic/stream_error_midway.sse"))
    said, error = await heard_until_refused(ask())
    assert text_of(said) == "The tide turns"
    assert isinstance(error, Overloaded)
    assert error.accepted


async def test_lim_18_closing_bytes_that_are_lost_cost_nothing(provider, ask):
    """LIM-18: the stop reason was seen; complete, and asked once."""
    whole = payload("anthropic/stream_ok.sse")
    stop = whole.index(b"event: message_stop")
    provider.says([whole[: stop + 40]], end="cut")
    events = await heard(ask())
    assert text_of(events) == "The tide turns at six."
    assert events[-1] == Done("", "claude-sonnet-5")
    assert len(provider.asked) == 1


async def test_a_stream_without_a_stop_reason_is_cut(provider, ask):
    """LIM-17's kind: the same bytes without the stop reason."""
    whole = payload("anthropic/stream_ok.sse")
    provider.says([whole[: whole.index(b"event: message_delta")]])
    said, error = await heard_until_refused(ask())
    assert text_of(said) == "The tide turns at six."
    assert isinstance(error, EngineFault)
    assert error.cut


async def test_a_refusal_of_the_model_without_a_word_is_said(provider, ask):
    delta = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"refusal"}}\n\n'
    provider.says([delta, b'event: message_stop\ndata: {"type":"message_stop"}\n\n'])
    _, error = await heard_until_refused(ask())
    assert isinstance(error, Rejected)
    assert error.accepted


async def test_nothing_of_the_environment_reaches_the_provider(provider, ask, monkeypatch):
    """R34."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-env")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "tok-env")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-env: yes")
    provider.says(payload("anthropic/stream_ok.sse"))
    await heard(ask())
    assert "env" not in str(provider.asked[0].headers)
    assert "authorization" not in provider.asked[0].headers


def test_neighbours_of_one_role_become_one_message_and_blank_text_none():
    """The API wants roles to alternate and refuses blank text."""
    request = Request(
        "m",
        (
            Message("user", "One"),
            Message("user", "Two", images=(Image("image/png", b"x"),)),
            Message("assistant", " ", calls=(ToolCall("t1", "a", {}),)),
            Message("user", outcomes=(ToolOutcome("t1", "no", failed=True),)),
        ),
    )
    body = messages_body(request)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [part["type"] for part in body["messages"][0]["content"]] == ["text", "image", "text"]
    assert [part["type"] for part in body["messages"][1]["content"]] == ["tool_use"]
    assert body["messages"][2]["content"][0]["is_error"]
    assert body["max_tokens"] == 8192


async def test_no_word_but_the_cap_reached_says_so(provider, ask):
    """R34: all of the cap went into thinking."""
    provider.says(
        [b'data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}\n\n']
    )
    assert await heard(ask()) == [Usage(output_tokens=9), Done("length", "claude-sonnet-5")]


async def test_events_without_a_name_are_read_by_their_type(provider, ask):
    """A server in between may drop the names; the SDK's own reader would lose every word."""
    whole = payload("anthropic/stream_ok.sse").decode()
    provider.says(["\n".join(line for line in whole.split("\n") if not line.startswith("event:"))])
    events = await heard(ask())
    assert [event for event in events if isinstance(event, Text)]
    assert text_of(events) == "The tide turns at six."
