"""Chat Completions over a real connection: what counts as an answer, and what doesn't."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from conch.engines.base import (
    Access,
    CallTool,
    Done,
    EngineFault,
    Image,
    LimitReached,
    Message,
    Progress,
    Rejected,
    Request,
    SignedOut,
    Text,
    Tool,
    ToolCall,
    ToolOutcome,
    Unreachable,
    Usage,
)
from conch.engines.refusals import Speaks
from conch.engines.wire import Clients
from conch.engines.wire_chat import chat_body, stream_chat
from tests.engines.provider import heard, heard_until_refused, payload, text_of

ASK = Request(model="m-1", messages=(Message("user", "Hi"),), max_output_tokens=8192)


@pytest.fixture
async def chat(provider):
    """Asks the provider once, as that kind of server."""
    made = []

    def ask(request=ASK, speaks=Speaks.COMPATIBLE, now=None):
        clients = Clients(speaks, now) if now else Clients(speaks)
        made.append(clients)
        client = clients.client(Access("a", key="k-123456"), provider.url + "/v1")
        return stream_chat(client, chat_body(request))

    yield ask
    for clients in made:
        await clients.close()


def sse(*chunks):
    return [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]


def piece(text="", finish=None, **delta):
    return {"choices": [{"index": 0, "delta": {"content": text} | delta, "finish_reason": finish}]}


async def test_a_plain_answer_is_its_text_its_tokens_and_done(provider, chat):
    provider.says(payload("openai/chat_ok.sse"))
    events = await heard(chat())
    assert text_of(events) == "The tide turns at six."
    assert Usage(input_tokens=2000, cached_input_tokens=1536, output_tokens=500) in events
    assert events[-1] == Done("", "gpt-5.5")
    asked = provider.asked[0]
    assert asked.path == "/v1/chat/completions"
    assert asked.body["max_tokens"] == 8192
    assert asked.headers["authorization"] == "Bearer k-123456"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
async def test_bytes_may_be_cut_anywhere(provider, chat, size):
    whole = payload("openrouter/chat_ok.sse")
    provider.says([whole[at : at + size] for at in range(0, len(whole), size)])
    events = await heard(chat(speaks=Speaks.OPENROUTER))
    assert text_of(events) == "The tide turns at six."
    assert [event for event in events if isinstance(event, Usage)][-1].cost == Decimal("0.0213")


async def test_lim_16_comments_blank_lines_and_a_chunk_without_choices_are_no_faults(provider, chat):
    """LIM-16: the answer is complete, its cost from the last chunk."""
    provider.says(
        [
            ": OPENROUTER PROCESSING\n\n",
            "\n\n\n",
            'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]}\r\n\r\n',
            'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
            'data: {"choices":[],"usage":{"prompt_tokens":13,"completion_tokens":16,"cost":0.000093}}\n\n',
            "data: [DONE]\n\n",
        ]
    )
    events = await heard(chat(speaks=Speaks.OPENROUTER))
    assert events == [
        Text("Hi"),
        Usage(input_tokens=13, output_tokens=16, cost=Decimal("0.000093")),
        Done("", "m-1"),
    ]


async def test_lim_15_a_limit_after_some_text_is_a_limit_with_its_reset(provider, chat):
    """LIM-15: finish_reason "error" with a top-level error; the reset is in milliseconds."""
    first = 'data: {"choices":[{"delta":{"content":"The first step is "},"finish_reason":null}]}\n\n'
    error = {
        "code": 429,
        "message": "Rate limit exceeded: free-models-per-day",
        "metadata": {"headers": {"X-RateLimit-Reset": "1784246400000"}},
    }
    provider.says(
        [
            first,
            *sse({"choices": [{"delta": {"content": ""}, "finish_reason": "error"}], "error": error}),
            "data: [DONE]\n\n",
        ]
    )
    then = chat(speaks=Speaks.OPENROUTER, now=lambda: datetime(2026, 7, 16, 12, tzinfo=UTC))
    events, refused = await heard_until_refused(then)
    assert events == [Text("The first step is ")]
    assert isinstance(refused, LimitReached)
    assert refused.until == datetime(2026, 7, 17, tzinfo=UTC)
    assert refused.accepted


async def test_a_stream_that_ends_without_its_finish_is_cut(provider, chat):
    """R30: what arrived is kept by the turn; the stream is said to be cut."""
    provider.says(payload("openai/chat_cut_no_usage.sse"))
    events, fault = await heard_until_refused(chat())
    assert text_of(events) == "The tide turns"
    assert isinstance(fault, EngineFault)
    assert fault.cut
    assert fault.accepted


async def test_a_connection_that_breaks_after_the_finish_spoils_nothing(provider, chat):
    """LIM-18, BUD-13: the answer was complete."""
    provider.says(sse(piece("Hi"), piece(finish="stop")), end="cut")
    assert await heard(chat()) == [Text("Hi"), Done("", "m-1")]


@pytest.mark.parametrize(
    "chunks",
    [[], ["data: [DONE]\n\n"], [": ping\n\n"], sse(piece(finish="stop")), sse({"choices": []})],
    ids=["nothing", "only done", "only a comment", "only a finish", "no choices"],
)
async def test_an_empty_stream_is_never_an_answer(provider, chat, chunks):
    """R30."""
    provider.says(chunks)
    with pytest.raises(EngineFault):
        await heard(chat())


async def test_an_answer_cut_by_the_cap_says_so(provider, chat):
    """R34."""
    provider.says([*sse(piece("Half an ans"), piece(finish="length")), "data: [DONE]\n\n"])
    assert (await heard(chat()))[-1] == Done("length", "m-1")


async def test_an_answer_ended_by_a_filter_is_cut_or_refused(provider, chat):
    provider.says(sse(piece("Half"), piece(finish="content_filter")))
    with pytest.raises(EngineFault) as fault:
        await heard(chat())
    assert fault.value.cut
    provider.says(sse(piece(finish="content_filter")))
    with pytest.raises(Rejected):
        await heard(chat())


async def test_a_server_that_does_not_stream_is_understood(provider, chat):
    message = {"role": "assistant", "content": "All at once."}
    provider.says({"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}})
    assert text_of(await heard(chat())) == "All at once."


async def test_a_no_under_200_without_a_stream_is_a_no(provider, chat):
    """R30: the error object decides, not the status."""
    provider.says({"error": {"type": "insufficient_quota", "message": "You exceeded your current quota."}})
    with pytest.raises(LimitReached) as refused:
        await heard(chat())
    assert refused.value.scope == "money"
    assert not refused.value.accepted


async def test_calls_come_whole_after_all_their_pieces(provider, chat):
    def call(index, **function):
        return {"index": index, "function": function}

    provider.says(
        sse(
            piece(tool_calls=[call(0, name="search", arguments="") | {"id": "c1"}]),
            piece(tool_calls=[call(0, arguments='{"que')]),
            piece(tool_calls=[call(0, arguments='ry": "tide"}')]),
            piece(tool_calls=[call(0, name="clock", arguments="{}") | {"id": "c2"}]),
            piece(finish="tool_calls"),
        )
    )
    events = await heard(chat())
    assert events == [
        CallTool(ToolCall("c1", "search", {"query": "tide"})),
        CallTool(ToolCall("c2", "clock", {})),
        Done("", "m-1"),
    ]


async def test_what_a_provider_sealed_into_a_call_goes_back_with_it(provider, chat):
    """Gemini refuses the next round without it; nobody else is given any."""
    sealed = {"google": {"thought_signature": "c2VhbGVk"}}
    asked = {"index": 0, "id": "c1", "function": {"name": "clock", "arguments": "{}"}, "extra_content": sealed}
    provider.says(sse(piece(tool_calls=[asked]), piece(finish="tool_calls")))
    call = (await heard(chat()))[0].call

    said = [Message("user", "When?"), Message("assistant", calls=(call, replace(call, sealed=None)))]
    given = chat_body(Request("m", tuple(said)))["messages"][-1]["tool_calls"]

    assert [each.get("extra_content") for each in given] == [sealed, None]


async def test_a_call_that_cannot_be_read_is_a_fault_and_a_cut_one_is_never_run(provider, chat):
    broken = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"query": '}}
    provider.says(sse(piece(tool_calls=[broken]), piece(finish="tool_calls")))
    with pytest.raises(EngineFault):
        await heard(chat())
    provider.says(sse(piece(tool_calls=[broken]), piece(finish="length")))
    assert await heard(chat()) == [Done("length", "m-1")]


async def test_thinking_is_progress_and_no_part_of_the_answer(provider, chat):
    provider.says(sse(piece(reasoning="Moon."), piece(reasoning="Sun."), piece("Six."), piece(finish="stop")))
    assert await heard(chat()) == [Progress("thinking"), Text("Six."), Done("", "m-1")]


async def test_text_parts_and_halves_of_an_emoji_are_joined(provider, chat):
    """INP-01, STR-09: a surrogate pair cut between two chunks is one character, a lone one is U+FFFD."""
    provider.says(
        sse(
            piece([{"type": "text", "text": "Hi "}]),
            piece("\ud83d"),
            piece("\ude00 a\0b "),
            piece("\ud83d", finish="stop"),
        )
    )
    assert text_of(await heard(chat())) == "Hi 😀 ab \ufffd"


async def test_an_endless_line_is_a_fault(provider, chat, monkeypatch):
    monkeypatch.setattr("conch.engines.wire_frames.LONGEST_EVENT", 10_000)
    provider.says(["data: {"] + ["x" * 1000] * 50, end="hang")
    with pytest.raises(EngineFault):
        await heard(chat())


async def test_what_is_no_json_is_a_fault(provider, chat):
    provider.says(["data: {broken\n\n"])
    with pytest.raises(EngineFault):
        await heard(chat())


async def test_closing_the_reply_stops_the_provider(provider, chat):
    import asyncio

    provider.says(sse(piece("One ")), end="hang")
    reply = chat()
    assert await anext(reply) == Text("One ")
    await reply.aclose()
    async with asyncio.timeout(5):
        await provider.disconnected.wait()


async def test_a_request_is_sent_once_and_no_redirect_is_followed(provider, chat):
    """R34: no retry by itself, and a redirect leads nowhere."""
    provider.says({"x": 1}, status=302, headers={"location": "/v1/elsewhere"})
    with pytest.raises(EngineFault):
        await heard(chat())
    provider.says({"error": {"message": "broken"}}, status=500)
    with pytest.raises(EngineFault) as fault:
        await heard(chat())
    assert fault.value.accepted
    assert len(provider.asked) == 2


async def test_bud_11_only_what_was_never_sent_is_known_not_to_be_accepted(provider, chat):
    """BUD-11: a closed port took nothing; a connection that broke, or a 504, may have been paid for."""
    provider.says([], end="refuse")
    with pytest.raises(EngineFault) as broke:
        await heard(chat())
    assert broke.value.accepted
    provider.says({}, status=504)
    with pytest.raises(EngineFault) as late:
        await heard(chat())
    assert late.value.accepted
    reply = chat()
    await provider.stop()
    with pytest.raises(Unreachable) as nobody:
        await heard(reply)
    assert not nobody.value.accepted
    assert nobody.value.host == "127.0.0.1"


async def test_nothing_of_the_environment_reaches_a_provider(provider, monkeypatch):
    """R34: no key, organisation, header, address or proxy of the machine's own."""
    for name, value in {
        "OPENAI_API_KEY": "sk-env",
        "OPENAI_ORG_ID": "org-env",
        "OPENAI_PROJECT_ID": "proj-env",
        "OPENAI_CUSTOM_HEADERS": "x-env: yes\nauthorization: Bearer env",
        "OPENAI_BASE_URL": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    clients = Clients(Speaks.COMPATIBLE)
    provider.says(payload("openai/chat_ok.sse"))
    await heard(stream_chat(clients.client(Access("a", key="k-own"), provider.url), chat_body(ASK)))
    await clients.close()
    asked = provider.asked[0]
    assert asked.headers["authorization"] == "Bearer k-own"
    assert "env" not in str(asked.headers)
    assert "openai-organization" not in asked.headers


async def test_a_cookie_of_one_account_is_never_sent_for_another(provider, chat):
    provider.says(payload("openai/chat_ok.sse"), headers={"set-cookie": "who=ada; Path=/"})
    provider.says(payload("openai/chat_ok.sse"))
    clients = Clients(Speaks.COMPATIBLE)
    for key in ("k-ada", "k-bob"):
        await heard(stream_chat(clients.client(Access(key, key=key), provider.url), chat_body(ASK)))
    await clients.close()
    assert "cookie" not in provider.asked[1].headers


async def test_one_client_is_kept_for_one_key_and_one_pool_for_all(provider):
    clients = Clients(Speaks.COMPATIBLE)
    ada = clients.client(Access("ada", key="k-ada"), provider.url)
    assert clients.client(Access("again", key="k-ada"), provider.url) is ada
    bob = clients.client(Access("bob", key="k-bob"), provider.url)
    assert bob is not ada
    assert bob.sdk._client is ada.sdk._client
    await clients.close()


@pytest.mark.parametrize("key", ["", "  ", "schlüssel-123", "k\n123"])
async def test_a_key_that_no_request_can_carry_is_signed_out(key):
    with pytest.raises(SignedOut):
        Clients(Speaks.COMPATIBLE).client(Access("a", key=key), "http://127.0.0.1:1")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::1]", "[::ffff:127.0.0.1]"])
async def test_sec_04_a_guests_account_reaches_no_private_address(provider, host):
    """SEC-04: checked where the connection is made, whatever the name resolves to."""

    guest = Access("guest", key="k-guest", public_only=True)
    clients = Clients(Speaks.COMPATIBLE)
    with pytest.raises(Unreachable):
        await heard(stream_chat(clients.client(guest, f"http://{host}:{provider.port}"), chat_body(ASK)))
    await clients.close()
    assert provider.asked == []


def test_a_conversation_with_pictures_and_tools_is_written_in_the_wires_words():
    request = Request(
        model="m",
        instructions="Be brief.\0",
        messages=(
            Message("user", "What is this?", images=(Image("image/png", b"PNG"),)),
            Message("assistant", "", calls=(ToolCall("c1", "search", {"q": "tide \ud83d"}),)),
            Message("user", outcomes=(ToolOutcome("c1", "six"),)),
            Message("user", "Thanks 👩‍👩‍👧 🇨🇭 e\u0301"),
        ),
        tools=(Tool("search", "Look up", {"type": "object"}),),
    )
    body = chat_body(request)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,UE5H"}},
            ],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"q": "tide \\ufffd"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "six"},
        {"role": "user", "content": "Thanks 👩‍👩‍👧 🇨🇭 e\u0301"},
    ]
    assert body["tools"][0]["function"] == {
        "name": "search",
        "description": "Look up",
        "parameters": {"type": "object"},
    }
    assert "max_tokens" not in body
