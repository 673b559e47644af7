"""One contract over every engine that speaks HTTP, against the simulated providers.

An engine of one's own joins by a line in WAYS (docs/adding-an-engine.md).
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from conch.engines.base import (
    Access,
    Billing,
    CallTool,
    Done,
    EngineFault,
    Image,
    LimitReached,
    Message,
    Overloaded,
    Rejected,
    Request,
    Room,
    SignedOut,
    Text,
    Throttled,
    Tool,
    ToolCall,
    ToolOutcome,
    Unreachable,
    Usage,
)
from conch.engines.registry import ENGINES, paths
from tests.engines.provider import heard, heard_until_refused, text_of

PNG = bytes.fromhex("89504e470d0a1a0a")


@dataclass(frozen=True)
class Way:
    """How an engine is reached at the simulator, and how its provider says that a limit is reached."""

    limit: str
    key: Callable[..., object]
    model: str = "gpt-5.5"


def by_key(simulator, tmp_path):
    return simulator.key("sk-contract"), {"key": "sk-contract"}


def by_home(simulator, tmp_path):
    key = simulator.codex("ada@work.example", tmp_path / "codex")
    return key, {"home": key.home}


WAYS = {
    "anthropic": Way("spend_limit", by_key, "claude-sonnet-5"),
    "openai": Way("insufficient_quota", by_key),
    "openrouter": Way("no_credit", by_key, "openai/gpt-5.5"),
    "gemini": Way("gemini_per_day", by_key, "gemini-2.5-flash"),
    "codex": Way("usage_limit", by_home),
}
# Engines that drive a program or a model of this computer have tests of their own.
OTHERS = {"local", "claude-code", "codex-cli"}


def test_every_registered_engine_is_held_to_a_contract():
    assert set(ENGINES) == set(WAYS) | OTHERS


@dataclass
class Held:
    """One engine at the simulator."""

    engine: object
    access: Access
    key: object
    way: Way
    simulator: object

    def ask(self, *texts, **more):
        texts = texts or ("Hello",)
        messages = tuple(Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts))
        given = {"model": self.way.model, "messages": messages, "max_output_tokens": 8192} | more
        return self.engine.reply(self.access, Request(**given))

    @property
    def asked(self):
        return self.simulator.requests(self.key.secret)


@pytest.fixture(params=sorted(WAYS))
async def held(request, simulator, tmp_path, monkeypatch):
    from importlib import import_module

    monkeypatch.setattr("conch.engines.codex_renewal.find_program", lambda: None)
    module, _, name = paths()[request.param].partition(":")
    engine = getattr(import_module(module), name)()
    way = WAYS[request.param]
    key, facts = way.key(simulator, tmp_path)
    access = Access(request.param, base_url=simulator.base_urls[request.param], **facts)
    yield Held(engine, access, key, way, simulator)
    await engine.close()


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


async def test_an_answer_streams_in_order_and_ends_with_done(held):
    held.key.replies("Good morning, Ada.", pieces=4, input_tokens=200, output_tokens=50)
    events = await heard(held.ask())
    assert text_of(events) == "Good morning, Ada."
    assert len(only(events, Text)) == 4
    assert events[-1] == Done("", events[-1].model)
    assert events[-1].model
    usage = only(events, Usage)[-1]
    assert (usage.input_tokens, usage.output_tokens) == (200, 50)
    assert len(held.asked) == 1


async def test_the_first_words_come_before_the_last(held):
    held.key.replies("one two", pieces=2, hold_after=1)
    reply = held.ask()
    while not isinstance(first := await anext(reply), Text):
        pass
    assert first.text == "one "[: len(first.text)]
    held.key.release()
    assert text_of([first, *await heard(reply)]) == "one two"


async def test_the_whole_conversation_and_its_instructions_arrive(held):
    await heard(held.ask("First?", "Yes.", "Second?", instructions="Be brief."))
    asked = held.asked[0].asked
    assert asked.messages[-3:] == (("user", "First?"), ("assistant", "Yes."), ("user", "Second?"))
    assert "Be brief." in str(held.asked[0].json)
    assert asked.model == held.way.model
    assert asked.stream


async def test_keys_are_asked_with_a_cap_and_plans_without(held):
    """R34."""
    await heard(held.ask())
    cap = held.asked[0].asked.max_output
    assert cap == (8192 if held.engine.billing is Billing.KEY else None)


async def test_pictures_arrive(held):
    messages = (Message("user", "What is this?", images=(Image("image/png", PNG),)),)
    await heard(held.ask(messages=messages))
    assert held.asked[0].asked.images == 1


async def test_a_tool_is_asked_for_and_its_outcome_handed_in(held):
    tool = Tool("search", "Look something up", {"type": "object", "properties": {"query": {"type": "string"}}})
    held.key.calls_tool("search", {"query": "tide"}).replies("Six.")
    events = await heard(held.ask(tools=(tool,)))
    call = only(events, CallTool)[0].call
    assert (call.name, call.arguments) == ("search", {"query": "tide"})
    assert isinstance(events[-1], Done)
    rounds = (
        Message("user", "When is high tide?"),
        Message("assistant", "Let me see.", calls=(call,)),
        Message("user", outcomes=(ToolOutcome(call.id, "At six."),)),
    )
    assert text_of(await heard(held.ask(messages=rounds, tools=(tool,)))) == "Six."
    assert call.id in str(held.asked[1].json)
    assert "At six." in str(held.asked[1].json)
    assert held.asked[1].asked.tools == ("search",)


async def test_text_is_cleaned_on_its_way_out(held):
    """INP-01: a lone surrogate and a NUL never reach a provider; families, flags and marks do."""
    odd = "🔥\ud83d… \0 👩‍👩‍👧 🇨🇭 e\u0301"
    assert text_of(await heard(held.ask(odd, instructions=odd)))
    assert held.asked[0].messages[-1][1] == "🔥\ufffd…  👩‍👩‍👧 🇨🇭 e\u0301"
    tool = Tool("a", odd, {"type": "object", "description": odd})
    rounds = (
        Message("user", "Hi"),
        Message("assistant", "", calls=(ToolCall("c1", "a", {odd: odd}),)),
        Message("user", outcomes=(ToolOutcome("c1", odd),)),
    )
    assert text_of(await heard(held.ask(messages=rounds, tools=(tool,))))


async def test_a_limit_is_a_limit_and_asked_once(held):
    """R8, R30."""
    held.key.refuses(held.way.limit)
    said, error = await heard_until_refused(held.ask())
    assert only(said, Text) == []
    assert isinstance(error, LimitReached)
    assert not error.accepted
    assert error.said
    assert len(held.asked) == 1


async def test_a_limit_inside_the_stream_is_a_limit_and_the_text_before_it_is_kept(held):
    """R17, R30: under HTTP 200, after some words."""
    held.key.breaks("Let me see. ", held.way.limit)
    said, error = await heard_until_refused(held.ask())
    assert text_of(said).strip() == "Let me see."
    assert isinstance(error, LimitReached)
    assert error.accepted
    assert len(held.asked) == 1


async def test_a_limit_inside_the_stream_before_any_word_costs_nothing(held):
    held.key.refuses(held.way.limit, inside="event")
    said, error = await heard_until_refused(held.ask())
    assert only(said, Text) == []
    assert isinstance(error, LimitReached)
    assert not error.accepted


async def test_a_throttle_is_a_pause(held):
    """R8: never a limit."""
    held.key.refuses("throttle")
    _, error = await heard_until_refused(held.ask())
    assert isinstance(error, Throttled)
    assert 0 < error.retry_after <= 60
    assert len(held.asked) == 1


@pytest.mark.parametrize(
    ("scenario", "kind", "accepted"),
    [
        ("overloaded", Overloaded, False),
        ("server_error", EngineFault, True),
        ("unauthorized", SignedOut, False),
        ("model_gone", Rejected, False),
        ("too_long", Rejected, False),
        ("bad_request", Rejected, False),
    ],
)
async def test_what_is_no_limit_is_told_apart(held, scenario, kind, accepted):
    """R8, R34, R36."""
    held.key.refuses(scenario)
    _, error = await heard_until_refused(held.ask())
    assert type(error) is kind
    assert error.accepted is accepted
    if kind is Rejected:
        assert error.reason == scenario.removesuffix("_request")


async def test_an_answer_that_breaks_off_is_cut(held):
    """R30: what arrived is kept; it may be paid for."""
    for step in (held.key.cuts, held.key.stops_short):
        held.key.forgets()
        step("Half an answer", pieces=2)
        said, error = await heard_until_refused(held.ask())
        assert text_of(said) == "Half an answer"
        assert isinstance(error, EngineFault)
        assert error.cut
        assert error.accepted


async def test_an_empty_answer_is_a_fault(held):
    """R30."""
    held.key.answers(200, b"", {"content-type": "text/event-stream"})
    _, error = await heard_until_refused(held.ask())
    assert isinstance(error, EngineFault)


async def test_a_connection_that_breaks_without_a_word_may_be_paid_for(held):
    """BUD-11."""
    held.key.hangs_up()
    _, error = await heard_until_refused(held.ask())
    assert isinstance(error, EngineFault)
    assert error.accepted


async def test_a_closed_port_took_nothing(held):
    """R19."""
    away = replace(held.access, base_url=held.access.base_url.replace(str(held.simulator.port), "1"))
    _, error = await heard_until_refused(held.engine.reply(away, Request("m", (Message("user", "Hi"),))))
    assert isinstance(error, Unreachable)
    assert not error.accepted
    assert error.host == "127.0.0.1"


async def test_fbk_05_an_empty_model_is_never_sent(held):
    """FBK-05."""
    _, error = await heard_until_refused(held.ask(model=""))
    assert isinstance(error, Rejected)
    assert error.reason == "model_gone"
    assert held.simulator.all_requests(held.key.secret) == []


async def test_an_answer_cut_by_the_cap_says_so(held):
    """R34."""
    held.key.replies("As far as it", ending="length")
    assert (await heard(held.ask()))[-1].ending == "length"


async def test_leaving_stops_the_provider(held):
    held.key.replies("one two three", pieces=3, hold_after=1)
    reply = held.ask()
    while not isinstance(await anext(reply), Text):
        pass
    await reply.aclose()
    deadline = time.monotonic() + 60
    while held.asked[-1].outcome != "left":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_an_endless_line_does_not_fill_the_memory(held, monkeypatch):
    monkeypatch.setattr("conch.engines.wire_frames.LONGEST_EVENT", 100_000)
    held.key.replies("", line_bytes=10_000_000)
    _, error = await heard_until_refused(held.ask())
    assert isinstance(error, EngineFault)


async def test_its_preferred_model_is_one_of_its_models(held):
    """R12."""
    models = await held.engine.models(held.access)
    assert models
    assert any(model.id.startswith(held.engine.preferred_models[0]) for model in models)
    assert all(model.id for model in models)
    assert held.asked == []


async def test_verifying_asks_for_no_reply(held):
    """doors.md: connecting asks for models or the key's facts."""
    await held.engine.identify(held.access)
    await held.engine.read_room(held.access)
    assert held.asked == []


async def test_a_key_that_is_not_known_is_signed_out(held):
    held.simulator.forget(held.key.secret)
    for asking in (held.engine.identify, held.engine.read_room):
        if asking == held.engine.read_room and not held.engine.meters:
            assert await asking(held.access) is None
            continue
        with pytest.raises(SignedOut):
            await asking(held.access)


async def test_a_meter_that_cannot_be_read_says_nothing_of_the_account(held):
    """LIM-20, R29."""
    if not held.engine.meters:
        assert await held.engine.read_room(held.access) is None
        return
    held.key.window(300, used=20, resets_in=600).capped(20, spent=1)
    assert isinstance(await held.engine.read_room(held.access), Room)
    held.key.usage_status = 429
    with pytest.raises(Throttled):
        await held.engine.read_room(held.access)
    held.key.usage_status = 500
    with pytest.raises(EngineFault):
        await held.engine.read_room(held.access)
