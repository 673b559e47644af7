"""Providers that take a message and say nothing: a turn ends in bounded time, and says why (R8, R30, R34)."""

import asyncio
import contextlib

import httpx2
import pytest

from conch import ledger
from conch.copy.clock import Viewer
from conch.copy.failures import failure_text
from conch.db import look
from conch.engines import wire_transport
from conch.engines.registry import engine
from conch.models import Account, Entry, MonthTotal
from conch.turns import doors, streaming
from conch.turns.clock import SYSTEM
from tests.turns.conftest import world  # noqa: F401  a fixture is found by name

pytestmark = pytest.mark.django_db(transaction=True)

SILENCE = 0.8  # seconds; in the product minutes


@pytest.fixture
def impatient(monkeypatch):
    """Silence is over sooner: connections that are made from now on are given less time."""
    monkeypatch.setattr(wire_transport, "TIMES", httpx2.Timeout(SILENCE, connect=5, write=5, pool=5))


def said(turn):
    return failure_text(turn.failure, Viewer(SYSTEM.now()))


async def held(person):
    total = await look(MonthTotal.objects.filter(person=person, account="").first)
    return total.held_nano if total is not None else 0


@pytest.mark.parametrize("name", ["openai", "anthropic", "openrouter", "codex"])
async def test_a_provider_that_takes_the_message_and_says_nothing(world, impatient, name):  # noqa: F811
    """R34: it may have been accepted, so it is not sent again by itself; what it can have cost is booked."""
    account = await look(world.account, name, model="gpt-5.5", label="Them")
    account.key.stays_silent().replies("Never asked for.", times=3)
    other = await look(world.account, "codex", "codex-2")
    chat = await look(world.chat, name)
    began = asyncio.get_running_loop().time()

    turn = await world.say(chat)

    assert asyncio.get_running_loop().time() - began < 30 * SILENCE
    assert (turn.state, turn.failure_code) == ("failed", "cut")
    assert said(turn).startswith("Them broke off before it had written anything.")
    assert len(world.simulator.requests(account.key.secret)) == 1
    assert world.simulator.requests(other.key.secret) == []
    assert await held(world.person) == 0
    assert await look(ledger.check) == []


@pytest.mark.parametrize("name", ["openai", "anthropic", "openrouter", "codex"])
async def test_a_provider_that_falls_silent_in_the_middle(world, impatient, name):  # noqa: F811
    """R30: what had arrived is kept, said to be cut off, and booked as an estimate."""
    account = await look(world.account, name, model="gpt-5.5", label="Them")
    account.key.falls_silent("The first half of it. ")
    chat = await look(world.chat, name)

    turn = await world.say(chat)

    assert (turn.state, turn.ending, turn.answer) == ("failed", "cut", "The first half of it. ")
    assert said(turn).startswith("Them stopped before the end. What had arrived is kept.")
    assert await held(world.person) == 0
    entries = await look(lambda: list(Entry.objects.values_list("state", "estimated")))
    assert entries == ([] if name == "codex" else [("settled", True)])


class Pings:
    """A provider that answers with signs of life and never with a word."""

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def answer(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            while not writer.is_closing():
                writer.write(b": still here\n\n")
                await writer.drain()
                await asyncio.sleep(0.02)


async def test_signs_of_life_alone_do_not_keep_a_turn(world, impatient, monkeypatch):  # noqa: F811
    monkeypatch.setattr(streaming, "WORDLESS_SECONDS", 2 * SILENCE)
    async with Pings() as pings:
        account = await look(world.account, "openai", label="Them")
        await look(Account.objects.filter(pk=account.row.pk).update, base_url=pings.url)
        chat = await look(world.chat, "openai")

        turn = await world.say(chat)

    assert (turn.state, turn.failure_code) == ("failed", "cut")
    assert said(turn).startswith("Them broke off before it had written anything.")
    assert await held(world.person) == 0


async def test_a_slow_answer_that_goes_on_is_waited_for(world, impatient):  # noqa: F811
    """Bounded is each silence, not the answer."""
    account = await look(world.account, "openai")
    account.key.replies("one two three four five six seven eight nine ten", delay=SILENCE / 8)
    chat = await look(world.chat, "openai")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "one two three four five six seven eight nine ten")


async def test_a_stop_during_a_silence_counts_at_once(world):  # noqa: F811
    account = await look(world.account, "openai")
    account.key.stays_silent()
    chat = await look(world.chat, "openai")
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    await asyncio.to_thread(world.simulator.wait_for, 1, account.key.secret)
    await doors.stop(world.person.pk, turn.pk, clock=world.time.clock)

    assert (await world.settled(turn)).state == "stopped"
    assert await held(world.person) == 0
    await engine("openai").close()
