"""Conch's tools in the real programs: run once, by Conch alone, and what they gave goes back into the same answer."""

import asyncio
import json
from pathlib import Path

import pytest

from conch.engines.base import Held, Text, Tool, ToolOutcome
from tests.engines.hostile import EVIL, spoil_claude, spoil_codex
from tests.engines.provider import heard, text_of
from tests.engines.test_programs_kept import kept
from tests.simulator.scripts import Call, Reply

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
WEATHER = Tool("weather__look", "Says what the weather is.", SCHEMA)
NOTES = Tool("notes__search", "Finds notes.", {"type": "object", "properties": {}})


class Runs:
    """Runs tools for a reply: keeps the calls, gives what it is told to."""

    def __init__(self, text="It is 12 degrees.", *, failed=False):
        self.calls = []
        self.text, self.failed = text, failed

    async def __call__(self, call):
        self.calls.append((call.name, dict(call.arguments)))
        return ToolOutcome(call.id, self.text, self.failed)


def named(plan, tool):
    """The tool's name as the model sees it in that program."""
    return f"mcp__conch__{tool.name}" if plan.access.slug == "claude-code" else tool.name


def calls(plan, *tools, text="Let me look."):
    called = tuple(Call(named(plan, tool), {"place": "Bern"}) for tool in tools)
    return plan.key.does(Reply(text, calls=called))


def given(plan):
    """What the last request says that tools gave."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            if value.get("type") in {"tool_result", "function_call_output"}:
                found.append(json.dumps(value, ensure_ascii=False))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(plan.asked[-1].json)
    return found


async def test_a_tool_runs_once_and_the_answer_goes_on_with_what_it_gave(plan):
    calls(plan, WEATHER).replies("12 degrees in Bern.")
    runs = Runs()
    events = await plan.turn("Is it warm?", tools=(WEATHER, NOTES), run_tool=runs)
    assert runs.calls == [("weather__look", {"place": "Bern"})]
    assert text_of(events) == "Let me look.\n\n12 degrees in Bern."
    assert len(plan.asked) == 2
    (gave,) = given(plan)
    assert "It is 12 degrees." in gave
    own = set(plan.asked[0].asked.tools) - {"request_user_input"}  # the one that nothing turns off in Codex
    assert own == {named(plan, WEATHER), named(plan, NOTES)}


async def test_a_tool_whose_arguments_are_oddly_described_hides_no_other(plan):
    """A program that checks what it is told would pass over all of them."""
    odd = [Tool(f"odd__{place}", "", schema) for place, schema in enumerate(({}, {"type": "array"}, {"anyOf": []}))]
    plan.key.replies("Noted.")
    await plan.turn(tools=(WEATHER, *odd), run_tool=Runs())
    assert {named(plan, tool) for tool in (WEATHER, *odd)} <= set(plan.asked[0].asked.tools)


async def test_several_calls_of_one_message_each_run_once(plan):
    calls(plan, WEATHER, NOTES, text="").replies("Both.")
    runs = Runs()
    assert text_of(await plan.turn(tools=(WEATHER, NOTES), run_tool=runs)) == "Both."
    assert sorted(name for name, _ in runs.calls) == ["notes__search", "weather__look"]
    assert len(given(plan)) == 2


async def test_a_tool_that_fails_is_told_as_failed_and_the_answer_ends_all_the_same(plan):
    calls(plan, WEATHER).replies("I couldn't find out.")
    events = await plan.turn(tools=(WEATHER,), run_tool=Runs("The server isn't there.", failed=True))
    assert text_of(events).endswith("I couldn't find out.")
    (gave,) = given(plan)
    assert "The server isn't there." in gave
    if plan.access.slug == "claude-code":
        assert json.loads(gave)["is_error"] is True


async def test_a_long_outcome_arrives_whole(plan):
    """Conch bounds it; the program would show the model its beginning only."""
    calls(plan, WEATHER).replies("Long.")
    await plan.turn(tools=(WEATHER,), run_tool=Runs("It is 12 degrees, said long. " * 3400 + "The end."))
    (gave,) = given(plan)
    assert len(gave) > 98_000
    assert "The end." in gave


async def test_a_tool_that_asks_the_person_first_ends_the_reply_and_its_process(plan):
    """R31: Held passes; nothing more is asked of the provider."""
    calls(plan, WEATHER).replies("Never.")

    async def holds(_call):
        raise Held

    said = []

    async def hears():
        async for event in plan.reply(tools=(WEATHER,), run_tool=holds, chat="1"):
            said.append(event)  # noqa: PERF401 - what came before it is looked at

    with pytest.raises(Held):
        await hears()
    assert text_of(said) == "Let me look."
    assert len(plan.asked) == 1
    assert kept(plan) is None
    assert plan.engine._open == set()


async def test_leaving_while_a_tool_runs_ends_it_and_the_process(plan):
    """R35."""
    calls(plan, WEATHER)
    begun, ended = asyncio.Event(), asyncio.Event()

    async def runs(_call):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    turn = asyncio.create_task(heard(plan.reply(tools=(WEATHER,), run_tool=runs)))
    await begun.wait()
    (process,) = plan.engine._open
    turn.cancel()
    await asyncio.wait({turn})
    assert ended.is_set()
    await process.ended()
    assert len(plan.asked) == 1  # the failed call is answered by nobody


async def test_a_process_that_used_a_tool_is_not_kept_and_one_that_could_have_is(plan):
    """What the chat keeps of a tool is plain conversation, and is handed over as such."""
    plan.key.replies("No need.")
    calls(plan, WEATHER).replies("12 degrees.")
    await plan.turn("Hello", tools=(WEATHER,), run_tool=Runs())
    process = kept(plan)
    events = await plan.turn("Is it warm?", tools=(WEATHER,), run_tool=Runs())
    assert text_of([event for event in events if isinstance(event, Text)]).endswith("12 degrees.")
    assert kept(plan) is None
    assert not process.runs


async def test_other_tools_take_another_process(plan):
    """A chat whose tools were turned off offers none."""
    plan.key.replies("Noted.", times=2)
    await plan.turn("Hello", tools=(WEATHER,), run_tool=Runs())
    process = kept(plan)
    await plan.turn("And now?")
    assert not process.runs
    assert named(plan, WEATHER) not in plan.asked[1].asked.tools


async def test_no_tool_of_the_persons_own_comes_in_beside_them(plan, tmp_path, monkeypatch):
    """design.md, Engines: nor any hook around them."""
    above, ran = tmp_path / "above", tmp_path / "ran"
    above.mkdir()
    monkeypatch.setenv("TMPDIR", str(above))
    monkeypatch.setattr("tempfile.tempdir", None)
    if plan.access.slug == "claude-code":
        spoil_claude(Path(plan.access.home), [above, tmp_path / "person"], ran)
    else:
        spoil_codex(Path(plan.access.home), [above], ran)
    calls(plan, WEATHER).replies("12 degrees.")
    runs = Runs()
    await plan.turn(tools=(WEATHER,), run_tool=runs)
    await plan.engine.close()
    assert runs.calls == [("weather__look", {"place": "Bern"})]
    assert not ran.exists()
    assert set(plan.asked[0].asked.tools) - {"request_user_input"} == {named(plan, WEATHER)}
    assert EVIL not in json.dumps([seen.json for seen in plan.asked])
