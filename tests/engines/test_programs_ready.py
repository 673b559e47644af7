"""Which process answers next: the chat's own, one that has heard nothing, or a new one; and how few there are."""

import asyncio
import sys

import pytest

from conch.engines import cli_process_ready
from conch.engines.base import EngineFault, Image, Message
from conch.engines.cli_process import CliProcess, Folder
from conch.engines.cli_process_ready import Ready
from conch.engines.programs import scrubbed

WAITS = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
HI, HELLO, MORE = Message("user", "Hi"), Message("assistant", "Hello."), Message("user", "And more")


async def start():
    return await CliProcess.start([sys.executable, "-c", WAITS], scrubbed(), Folder())


@pytest.fixture
async def ready():
    made = Ready()
    yield made
    await made.close()


async def settled(ready):
    await asyncio.gather(*ready._starting.values())


async def answered(ready, chat, *said, key="way"):
    """A turn in that chat: who answered it, and how much of the chat it knew."""
    taken = await ready.take(key, chat, said[:-1], start)
    ready.keep(taken, (*said, HELLO))
    await settled(ready)
    return taken


async def test_the_chats_own_answers_again_and_is_told_only_what_is_new(ready):
    first = await answered(ready, "a", HI)
    second = await answered(ready, "a", HI, HELLO, MORE)
    assert second.process is first.process
    assert (first.told, second.told) == (0, 2)


async def test_what_the_chat_has_gained_elsewhere_is_still_to_be_told(ready):
    first = await answered(ready, "a", HI)
    later = await ready.take("way", "a", (HI, HELLO, MORE, Message("assistant", "From another.")), start)
    assert later.process is first.process
    assert later.told == 2
    later.process.end()


@pytest.mark.parametrize(
    "changed",
    [
        (Message("user", "Hi there"), HELLO),
        (HI, Message("assistant", "Hello.\n\n[This answer was cut off here.]")),
        (HI,),
        (Message("user", "Hi", (Image("image/png", b"x"),)), HELLO),
        (Message("assistant", "Hi"), HELLO),
    ],
)
async def test_one_that_was_told_something_else_is_ended(ready, changed):
    """An edit, a cut answer, a chat made shorter: nothing of it may stay."""
    first = await answered(ready, "a", HI)
    second = await answered(ready, "a", *changed, MORE)
    assert second.process is not first.process
    assert second.told == 0
    assert not first.process.runs


async def test_another_chat_gets_one_that_has_heard_nothing(ready):
    first = await answered(ready, "a", HI)
    second = await answered(ready, "b", HI, HELLO, MORE)
    assert second.process is not first.process
    assert second.told == 0
    again = await answered(ready, "a", HI, HELLO, MORE)
    assert again.process is first.process


async def test_one_started_another_way_is_not_used(ready):
    """Another home, model or instructions: the chat's own is ended, and no spare of the old way serves it."""
    first = await answered(ready, "a", HI)
    second = await answered(ready, "a", HI, HELLO, MORE, key="another way")
    assert second.process is not first.process
    assert not first.process.runs


async def test_what_belongs_to_no_chat_is_not_kept(ready):
    first = await answered(ready, "", HI)
    assert not first.process.runs
    assert (await answered(ready, "", HI, HELLO, MORE)).told == 0


async def test_few_wait_and_the_oldest_goes_first(ready, monkeypatch):
    """Memory is bounded by their number."""
    monkeypatch.setattr(cli_process_ready, "MOST", 2)
    took = [await answered(ready, name, HI) for name in "abcd"]
    assert len(ready._idle) == 2
    assert not took[0].process.runs
    assert not took[1].process.runs


async def test_none_waits_longer_than_its_age_nor_lives_longer_than_its_life(ready, monkeypatch):
    monkeypatch.setattr(cli_process_ready, "AGE", 0.0)
    first = await answered(ready, "a", HI)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert ready._idle == []
    assert not first.process.runs
    monkeypatch.setattr(cli_process_ready, "AGE", 600.0)
    monkeypatch.setattr(cli_process_ready, "LIFE", -1.0)
    assert not (await answered(ready, "b", HI)).process.runs


async def test_one_that_died_meanwhile_is_not_used(ready):
    first = await answered(ready, "a", HI)
    first.process.popen.kill()
    first.process.popen.wait()
    assert (await answered(ready, "a", HI, HELLO, MORE)).process is not first.process


async def test_a_spare_that_does_not_start_is_the_next_turns_to_find_out(ready):
    async def fails():
        raise EngineFault("no")

    ready.prepare("way", fails)
    await settled(ready)
    assert ready._idle == []
    with pytest.raises(EngineFault):
        await ready.take("way", "a", (), fails)


async def test_only_so_many_answer_at_once(ready, monkeypatch):
    """The next waits for a place."""
    monkeypatch.setattr(cli_process_ready, "AT_ONCE", 2)
    inside, most, go = 0, 0, asyncio.Event()

    async def turn():
        nonlocal inside, most
        async with ready.place:
            inside += 1
            most = max(most, inside)
            await go.wait()
            inside -= 1

    turns = [asyncio.create_task(turn()) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert inside == 2
    go.set()
    await asyncio.gather(*turns)
    assert most == 2


async def test_all_end_with_the_engine(ready):
    took = [await answered(ready, name, HI) for name in "ab"]
    await ready.close()
    assert ready._idle == []
    assert not any(taken.process.runs for taken in took)
