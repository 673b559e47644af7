"""The model on this computer, for real: the packaged runtime, the tiny model's weights, processes that are killed."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing

import pytest

from conch.engines import local, local_models, local_server
from conch.engines.base import Access, Billing, Done, EngineFault, Message, Rejected, Request, Text, Usage
from conch.engines.local import Local
from conch.engines.local_models import Setup
from tests import weights

ACCESS = Access("local")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """One data folder for the module, so that its server is started once."""
    folder = tmp_path_factory.mktemp("data")
    weights.put_into(folder)
    return folder


@pytest.fixture
async def engine(data):
    made = Local(Setup(data))
    yield made
    await made.close()


def asking(text, **fields):
    return Request(local_models.TINY_ID, (Message("user", text),), **fields)


async def answer(engine, request):
    """All that one reply says: its text and its other events."""
    events = [event async for event in engine.reply(ACCESS, request)]
    return "".join(event.text for event in events if isinstance(event, Text)), events


def server_of(engine):
    return json.loads((engine._process.place / local_server.ADDRESS).read_text())


async def until(true, seconds=60):
    """Wait for something that another process does."""
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, "it never came to be"
        await asyncio.sleep(0.05)


async def test_it_answers_a_simple_question(engine):
    # The tiny model is often wrong, by its own label: of a few answers one is right.
    for _ in range(8):
        text, events = await answer(engine, asking("What is the capital of France?"))
        if "Paris" in text:
            break

    assert "Paris" in text
    assert events[-1] == Done("", local_models.TINY_ID)
    (usage,) = [event for event in events if isinstance(event, Usage)]
    assert usage.input_tokens > 10
    assert usage.output_tokens > 3


async def test_it_streams_word_by_word(engine):
    _, events = await answer(engine, asking("Name three fruits."))

    assert sum(isinstance(event, Text) for event in events) > 3


async def test_instructions_of_an_agent_replace_its_own(engine):
    _, events = await answer(engine, asking("Hi", instructions="Be brief. " * 30))
    (usage,) = [event for event in events if isinstance(event, Usage)]

    assert usage.input_tokens > 90


async def test_a_prompt_that_is_too_long_is_said_to_be(engine):
    """R9: the server's own words and size."""
    with pytest.raises(Rejected) as refused:
        await answer(engine, asking("word " * 5000))

    assert refused.value.reason == "too_long"
    assert refused.value.accepted is False


async def test_closing_the_reply_stops_the_generation(engine):
    """One slot: were the long story still written, the next answer would wait for it."""
    async with aclosing(engine.reply(ACCESS, asking("Write a very long story about a whale."))) as events:
        async for event in events:
            assert isinstance(event, Text)
            break
    begun = time.monotonic()
    text, _ = await answer(engine, asking("What is the capital of France?"))

    assert text
    assert time.monotonic() - begun < 20


async def test_replies_asked_for_at_once_are_all_answered(engine):
    answers = await asyncio.gather(*(answer(engine, asking(f"What is {number}+2?")) for number in range(2)))

    assert all(text for text, _ in answers)


async def test_only_who_has_the_key_is_answered(engine):
    await engine.warm()
    url = server_of(engine)["url"]
    stranger = Local(Setup(engine.given.folder, url=url, key="guessed"))

    with pytest.raises(Exception, match=r"(?i)key") as refused:
        await answer(stranger, asking("Hi"))
    await stranger.close()

    assert type(refused.value).__name__ == "SignedOut"


async def test_the_key_is_kept_where_only_its_owner_can_read(engine):
    await engine.warm()
    place = engine._process.place

    assert (place / local_server.ADDRESS).stat().st_mode & 0o777 == 0o600
    assert place.stat().st_mode & 0o777 == 0o700
    assert url_host(server_of(engine)["url"]) == "127.0.0.1"


def url_host(url):
    return url.partition("//")[2].partition(":")[0]


async def test_two_processes_share_one_server(engine, data):
    """design.md: one server process for all workers."""
    await engine.warm()
    asked = (
        "import asyncio, sys; from pathlib import Path\n"
        "from conch.engines.local import Local, Setup\n"
        "engine = Local(Setup(Path(sys.argv[1])))\n"
        "print(asyncio.run(engine._address()).url)\n"
    )
    other = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", asked, str(data)], capture_output=True, text=True, check=True
    )

    assert other.stdout.strip() == server_of(engine)["url"]


async def test_processes_that_start_it_at_once_agree_on_one(tmp_path):
    weights.put_into(tmp_path)
    engines = [Local(Setup(tmp_path)) for _ in range(4)]

    addresses = await asyncio.gather(*(one._address() for one in engines))
    for one in engines:
        await one.close()

    assert len({address.url for address in addresses}) == 1


async def test_a_server_that_is_killed_is_started_again_with_the_next_message(engine):
    await engine.warm()
    killed = server_of(engine)["pid"]
    os.kill(killed, signal.SIGKILL)
    await until(lambda: not engine._process.runs())

    text, _ = await answer(engine, asking("What is the capital of France?"))

    assert text
    assert server_of(engine)["pid"] != killed


async def test_a_server_that_is_killed_while_it_answers_says_so(engine):
    """The part that came is kept by the turn; the error tells what happened, and that the stream was cut (R30)."""
    events = engine.reply(ACCESS, asking("Write a very long story about a whale."))
    came = [await anext(events)]
    os.kill(server_of(engine)["pid"], signal.SIGKILL)
    with pytest.raises(EngineFault) as fault:
        came += [event async for event in events]

    assert fault.value.cut is True
    assert fault.value.said.startswith("The model's process ")
    assert fault.value.said.endswith("It is started again with the next message.")
    assert came


async def test_it_ends_when_nobody_uses_it_any_more(tmp_path):
    weights.put_into(tmp_path)
    first, second = Local(Setup(tmp_path)), Local(Setup(tmp_path))
    await first.warm()
    await second.warm()
    process = first._process

    await first.close()
    await asyncio.sleep(3 * local_server.LOOK_EVERY)
    assert process.runs()

    await second.close()
    await until(lambda: not process.runs())
    assert not (process.place / local_server.ADDRESS).exists()


async def test_it_ends_with_a_conch_that_was_killed(tmp_path):
    """The system lets go of a dead process's locks: nothing is left running."""
    weights.put_into(tmp_path)
    holding = (
        "import asyncio, sys, time; from pathlib import Path\n"
        "from conch.engines.local import Local, Setup\n"
        "engine = Local(Setup(Path(sys.argv[1])))\n"
        "asyncio.run(engine._address()); print('up', flush=True); time.sleep(600)\n"
    )
    conch = await asyncio.create_subprocess_exec(
        sys.executable, "-c", holding, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert await conch.stdout.readline() == b"up\n"
    (place,) = (tmp_path / "local").iterdir()
    assert runs_at(place)
    conch.kill()
    await conch.wait()

    await until(lambda: not runs_at(place))
    assert not (place / local_server.ADDRESS).exists()


def runs_at(place):
    """Whether the server of that folder holds its lock still."""
    with local_server.held(place / local_server.SERVER_LOCK, fcntl.LOCK_SH | fcntl.LOCK_NB) as free:
        return free is None


@pytest.mark.parametrize(
    ("content", "said"), [(b"hello, I am no model", "couldn't be loaded"), (b"", "couldn't be loaded")]
)
async def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path, content, said):
    (tmp_path / "mine.gguf").write_bytes(content)
    engine = Local(Setup(tmp_path, model=str(tmp_path / "mine.gguf")))

    with pytest.raises(EngineFault, match=said) as fault:
        await answer(engine, asking("Hi"))
    await engine.close()

    assert fault.value.accepted is False


async def test_a_file_that_was_cut_short_is_said_to_be(tmp_path):
    whole = weights.folder() / local_models.TINY_FILE
    (tmp_path / "mine.gguf").write_bytes(whole.read_bytes()[:5_000_000])
    engine = Local(Setup(tmp_path, model=str(tmp_path / "mine.gguf")))

    with pytest.raises(EngineFault, match="corrupted or incomplete"):
        await answer(engine, asking("Hi"))
    await engine.close()


async def test_a_file_of_ones_own_answers_under_its_name(tmp_path):
    (tmp_path / "llama-mine.gguf").symlink_to(weights.folder() / local_models.TINY_FILE)
    engine = Local(Setup(tmp_path, model=str(tmp_path / "llama-mine.gguf")))

    text, events = await answer(engine, asking("What is the capital of France?"))
    (model,) = await engine.models(ACCESS)
    await engine.close()

    assert text
    assert events[-1].model == model.id == "llama-mine"
    assert model.context == local_models.OWN_CONTEXT


async def test_without_a_model_it_says_what_to_do_and_answers_nothing(tmp_path):
    """Never a faked answer."""
    engine = Local(Setup(tmp_path))

    with pytest.raises(EngineFault, match="make run") as fault:
        await answer(engine, asking("Hi"))

    assert fault.value.accepted is False
    assert not local_models.facts(Setup(tmp_path)).present


async def test_it_costs_nothing_and_has_no_limits(engine):
    assert Local.billing is Billing.LOCAL
    assert await engine.read_room(ACCESS) is None
    assert (await engine.identify(ACCESS)).identity == local.Local.id
