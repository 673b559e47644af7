"""A chat with tools, from a message to its answer: real engines over HTTP, a real tool server, a real database."""

import json

import pytest

from conch.db import look
from conch.models import Attempt
from conch.turns.watch import watch
from tests.turns.tools import Ledger, asking, call, calls_of

pytestmark = pytest.mark.django_db(transaction=True)

MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5.5", "openrouter": "openai/gpt-5.5", "codex": "gpt-5.5"}


@pytest.fixture
def ledger(world, tmp_path):
    return Ledger(world.person, tmp_path)


def sent(world, account):
    """The bodies of all requests with that account, as text."""
    return [request.body.decode() for request in world.simulator.requests(account.key.secret)]


async def told(turn):
    """The turn's events again: its kinds, and the data of those of a kind."""
    return [event async for event in watch(turn.pk) if event is not None]


@pytest.mark.parametrize("engine", MODELS)
async def test_a_tool_that_is_asked_for_runs_and_the_answer_goes_on_with_what_it_gave(world, ledger, engine):
    """The loop is one for every engine with an API: text before a call stays, and each round stands apart."""
    await look(ledger.permits, "always")
    account = await look(world.account, engine, model=MODELS[engine])
    account.key.replies("Let me look. ", calls=[call("look_up", "tides")]).replies("The moon moves them.")
    chat = await look(world.chat, engine, model=MODELS[engine], tools=["ledger"])

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.answer) == ("done", "Let me look. \n\nThe moon moves them.")
    assert ledger.ran == ["look_up tides"]
    first, second = sent(world, account)
    assert "ledger__look_up" in first
    assert "All that is known of tides." in second
    assert await calls_of(turn) == [("look_up", "done", "All that is known of tides.")]
    tools = [event.data for event in await told(turn) if event.kind == "tool"]
    assert [each["state"] for each in tools] == ["running", "done"]
    assert tools[1] | {"seconds": 0} == {
        "id": tools[1]["id"],
        "name": "ledger__look_up",
        "title": "look up in Ledger",
        "state": "done",
        "arguments": {"what": "tides"},
        "outcome": "All that is known of tides.",
        "seconds": 0,
    }
    assert "".join(event.data["text"] for event in await told(turn) if event.kind == "delta") == turn.answer


async def test_asking_holds_the_turn_until_the_person_has_answered(world, ledger):
    """A tool asks by default: nothing runs, the turn waits for the person alone, and says for what."""
    account = await look(world.account, "codex")
    account.key.replies("Let me look. ", calls=[call("look_up", "tides")])
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.waits_for, turn.until, turn.wake_at) == ("waiting", "tool", None, None)
    assert ledger.ran == []
    last = (await told(turn))[-1]
    assert (last.kind, last.data) == (
        "waiting",
        {"for": "tool", "until": None, "text": "Codex wants to run look up in Ledger."},
    )
