"""A real program that has answered in a chat goes on in it: told only what is new, and of no other chat."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from conch.engines import cli_process_ready
from conch.engines.base import LimitReached, Message, Progress, Room, Usage
from tests.engines.provider import heard, heard_until_refused, text_of


def kept(plan):
    """The process that waits for the chat's next message."""
    return next((idle.process for idle in plan.engine._ready._idle if idle.chat), None)


def sign_in_again(home):
    (file,) = (file for file in home.iterdir() if file.name in {"auth.json", ".credentials.json"})
    file.write_bytes(file.read_bytes())


async def test_the_next_message_of_a_chat_goes_to_the_process_that_knows_it(plan):
    """The provider gets the whole chat, natively; its tokens are of each message alone."""
    plan.key.replies("One.", input_tokens=100, output_tokens=10).replies("Two.", input_tokens=120, output_tokens=20)
    first = await plan.turn("First?")
    process = kept(plan)
    second = await plan.turn("Second?")
    assert kept(plan) is process
    assert plan.chat_of(plan.asked[1]) == [("user", "First?"), ("assistant", "One."), ("user", "Second?")]
    used = [[event for event in events if isinstance(event, Usage)][-1] for events in (first, second)]
    assert [(each.input_tokens, each.output_tokens, each.cost) for each in used] == [(100, 10, None), (120, 20, None)]


async def test_what_another_said_meanwhile_is_handed_over_to_it(plan):
    """R20, R31: the one that comes back knows what it missed."""
    plan.key.replies("One.").replies("Three.")
    await plan.turn("First?")
    process = kept(plan)
    plan.said += [Message("user", "Second?"), Message("assistant", "[Codex answered:]\nTwo.")]
    await plan.turn("Third?")
    assert kept(plan) is process
    assert plan.chat_of(plan.asked[1]) == [
        ("user", "First?"),
        ("assistant", "One."),
        ("user", "Second?"),
        ("assistant", "[Codex answered:]\nTwo."),
        ("user", "Third?"),
    ]


async def test_a_message_that_was_edited_is_in_no_later_request(plan):
    """The process that heard it ends."""
    plan.key.replies("Noted.", times=2)
    await plan.turn("The word is xyzzy.")
    process = kept(plan)
    plan.said.clear()
    await plan.turn("The word is plugh.")
    assert not process.runs
    assert "xyzzy" not in str(plan.asked[1].json)


async def test_a_secret_of_one_chat_is_in_no_request_of_another_that_begins_alike(plan):
    """design.md, Engines."""
    plan.key.replies("Noted.", times=3)
    await plan.turn("Hello", chat="1")
    before = list(plan.said)
    await plan.turn("The word is xyzzy.", chat="1")
    plan.said[:] = before
    await plan.turn("Which word?", chat="2")
    assert "xyzzy" not in str(plan.asked[2].json)
    assert plan.chat_of(plan.asked[2]) == [("user", "Hello"), ("assistant", "Noted."), ("user", "Which word?")]


async def test_windows_are_as_fresh_from_a_process_that_was_kept(plan):
    """R29: from every turn, also where the program only tells what changed."""
    plan.key.window(300, used=40, resets_in=3600).replies("Noted.", times=9)
    rooms = []
    for used in (40, 40, 41):
        plan.key.windows[0].used = used
        events = await plan.turn("And?")
        rooms.append([event for event in events if isinstance(event, Room)][-1])
    assert [[(each.name, each.used_percent) for each in room.windows] for room in rooms] == [
        [("5-hour", 40)],
        [("5-hour", 40)],
        [("5-hour", 41)],
    ]


async def test_a_limit_ends_the_process_that_met_it(plan):
    """R17: in the chat's second message, known as from a new one."""
    plan.key.replies("One.").refuses(plan.limit, resets_in=3600)
    await plan.turn("First?")
    process = kept(plan)
    said, error = await heard_until_refused(plan.reply("Second?", chat="1"))
    assert text_of(said) == ""
    assert isinstance(error, LimitReached)
    assert error.until is not None
    assert kept(plan) is None
    assert not process.runs


async def test_a_sign_in_that_changed_is_not_answered_by_the_old_ones_process(plan):
    """R36: signed in again meanwhile, by whomever."""
    plan.key.replies("Noted.", times=2)
    await plan.turn("First?")
    process = kept(plan)
    sign_in_again(Path(plan.access.home))
    await plan.turn("Second?")
    assert not process.runs
    assert kept(plan) is not process


@pytest.mark.parametrize("change", [{"model": "other"}, {"instructions": "Be brief."}])
async def test_another_model_or_other_instructions_take_another_process(plan, change):
    change = {"model": {"sonnet": "haiku"}.get(plan.model, "gpt-5.5-mini")} if "model" in change else change
    plan.key.replies("Noted.", times=2)
    await plan.turn("First?")
    process = kept(plan)
    request = replace(plan.ask("Second?", chat="1"), **change)
    await heard(plan.engine.reply(plan.access, request))
    assert not process.runs
    assert plan.chat_of(plan.asked[1])[0] == ("user", "First?")


async def test_leaving_in_the_middle_ends_the_process_that_was_kept(plan):
    """R35."""
    plan.key.replies("Noted.").replies("one two three", pieces=3, hold_after=1)
    await plan.turn("First?")
    process = kept(plan)
    reply = plan.reply("Second?", chat="1")
    while text_of([await anext(reply)]) == "":
        pass
    await reply.aclose()
    await asyncio.wrap_future(process.end())
    assert kept(plan) is None
    assert not process.runs


async def test_where_all_places_are_taken_the_next_says_that_it_waits_and_is_answered(plan, monkeypatch):
    """So many programs at most."""
    monkeypatch.setattr(cli_process_ready, "AT_ONCE", 1)
    plan.key.replies("one two", pieces=2, hold_after=1).replies("Next.")
    first, said = plan.reply("First?", chat="1"), []
    while text_of(said) == "":
        said.append(await anext(first))
    second = plan.reply("Second?", chat="2")
    assert await anext(second) == Progress(cli_process_ready.WAITS)
    answered = asyncio.create_task(heard(second))
    await asyncio.sleep(0)
    assert len(plan.engine._open) == 1
    plan.key.release()
    said += await heard(first)
    assert text_of(said) == "one two"
    assert text_of(await answered) == "Next."
