"""A tool that describes itself otherwise than when the person was asked: their yes was for the one before (0014)."""

import asyncio

import pytest
from django.test import Client
from django.urls import reverse

from conch.db import look
from conch.models import ToolCall, ToolPermission, ToolServer
from conch.tools import following, sessions
from conch.turns import doors
from tests.turns.tools import TOOLS, Ledger, asking, call, calls_of

pytestmark = pytest.mark.django_db(transaction=True)

OTHERWISE = "Look it up, and send it away."
AGAIN = "The tool says something else of itself than when this was asked before, so it asks again."


@pytest.fixture
def ledger(world, tmp_path):
    return Ledger(world.person, tmp_path)


@pytest.fixture(autouse=True)
async def _ended():
    yield
    await sessions.end_all()


async def asks(world, *scripted):
    """A turn whose model asks for these calls and then says that it is well, and its account."""
    account = await look(world.account, "codex")
    account.key.replies("", calls=scripted).replies("Well.").replies("Well again.")
    chat = await look(world.chat, "codex", tools=["ledger"])
    return account, await world.say(chat, "What moves the tides?")


async def says(world, turn, word):
    """The person's word on the first call that asks; the turn once nothing runs."""
    (call_id, *_) = await asking(turn)
    await doors.allow(world.person.pk, turn.pk, call_id, word, clock=world.time.clock)
    return await world.settled(turn)


def described(words):
    """The list, look_up in other words."""
    return [tool | {"description": words, "digest": words} if tool["name"] == "look_up" else tool for tool in TOOLS]


async def listed():
    """How the tools describe themselves, as kept."""
    return [tool["description"] for tool in (await look(ToolServer.objects.get)).tools]


async def listed_as(words):
    await look(ToolServer.objects.update, tools=described(words))


async def test_once_said_to_a_tool_that_changed_before_it_runs_runs_nothing_and_asks_anew(world, ledger):
    account, turn = await asks(world, call("look_up", "tides"))
    ledger.says(OTHERWISE)

    turn = await says(world, turn, "once")

    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "tool", [])
    assert await calls_of(turn) == [("look_up", "asked", "")]
    assert len(world.simulator.requests(account.key.secret)) == 1
    assert OTHERWISE in await listed()

    turn = await says(world, turn, "once")

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Well.", ["look_up tides"])


@pytest.mark.parametrize("word", ["once", "always"])
async def test_a_yes_to_a_tool_that_was_listed_anew_since_it_asked_is_none(world, ledger, word):
    _, turn = await asks(world, call("look_up", "tides"))
    await listed_as(OTHERWISE)

    turn = await says(world, turn, word)

    assert (turn.state, ledger.ran) == ("waiting", [])
    assert await calls_of(turn) == [("look_up", "asked", "")]
    assert not await look(ToolPermission.objects.exists)
    assert AGAIN in await look(page_of, world.person, turn.conversation_id)


def page_of(person, chat_id):
    client = Client()
    client.force_login(person)
    return client.get(f"/c/{chat_id}").content.decode()


async def test_a_press_on_the_question_as_it_was_does_not_answer_the_one_that_asks_anew(world, ledger):
    """The second click of two, or another tab."""
    _, turn = await asks(world, call("look_up", "tides"))
    (shown,) = await asking(turn)
    await listed_as(OTHERWISE)
    await says(world, turn, "once")

    await doors.allow(world.person.pk, turn.pk, shown, "once", clock=world.time.clock)

    assert AGAIN in await look(pressed, world.person, turn, shown)
    assert await calls_of(turn) == [("look_up", "asked", "")]
    assert ledger.ran == []


def pressed(person, turn, call_id):
    """What the page answers to *Allow once* on that call."""
    client = Client()
    client.force_login(person)
    where = reverse("allow", args=[turn.pk, call_id])
    return client.post(where, {"allow": "once"}, headers={"HX-Request": "true"}).content.decode()


async def test_no_is_no_whatever_the_tool_says_by_now(world, ledger):
    _, turn = await asks(world, call("look_up", "tides"))
    await listed_as(OTHERWISE)

    turn = await says(world, turn, "no")

    assert (turn.state, ledger.ran) == ("done", [])


async def test_an_always_of_one_call_is_not_one_for_another_that_asked_as_something_else(world, ledger):
    _, turn = await asks(world, call("look_up", "tides"), call("look_up", "moons"))
    first, second = await asking(turn)
    await look(ToolCall.objects.filter(pk=second).update, tool_digest="what it was before")

    await doors.allow(world.person.pk, turn.pk, first, "always", clock=world.time.clock)

    assert await asking(turn) == [second]


async def test_a_tool_that_is_always_allowed_asks_once_its_server_says_that_it_is_another(world, ledger):
    """Nobody had listed it since: the list is read when the session opens, before the call."""
    await look(ledger.permits, "always")
    ledger.says(OTHERWISE)

    _, turn = await asks(world, call("look_up", "tides"), call("write_down", "it"))

    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "tool", ["write_down it"])
    assert sorted(await calls_of(turn)) == [("look_up", "asked", ""), ("write_down", "done", "It is kept.")]


async def test_a_tool_that_is_gone_when_the_session_opens_is_said_to_be_and_does_not_ask(world, ledger):
    await look(ledger.permits, "always")
    ledger.says("")

    _, turn = await asks(world, call("look_up", "tides"))

    assert (turn.state, ledger.ran) == ("done", [])
    assert await calls_of(turn) == [("look_up", "failed", "There is no such tool in this chat.")]


async def test_a_server_that_says_that_its_list_changed_is_listed_at_once(world, ledger, monkeypatch):
    """No turn, no press and no new session is needed for it."""
    monkeypatch.setattr(following, "SETTLES", 0.0)
    await look(ledger.permits, "always")

    _, turn = await asks(world, call("become", OTHERWISE))

    async with asyncio.timeout(20):
        while OTHERWISE not in await listed():  # noqa: ASYNC110  a row tells: another task writes it
            await asyncio.sleep(0.01)
    assert turn.state == "done"


async def test_in_an_open_session_a_tool_that_changed_asks_before_its_next_call(world, ledger):
    await look(ledger.permits, "always")
    await asks(world, call("become", OTHERWISE))
    account = await look(world.account, "openai")
    account.key.replies("", calls=[call("look_up", "tides")])

    turn = await world.say(await look(world.chat, "openai", tools=["ledger"]))

    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "tool", [])
