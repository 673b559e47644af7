"""A turn whose tool is at a server that the person is signed out of by then: a failure like any other, nothing lost."""

import pytest

from conch.db import look
from conch.models import ToolCall, ToolPermission, ToolServer
from tests.simulator.scripts import Call
from tests.tools.servers.guarded import guarded

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site():
    with guarded() as running:
        yield running


async def chat_with(world, site):
    account = await look(world.account, "codex", model="gpt-5.5")

    def connected():
        server = site.server_of(world.person)
        ToolPermission.objects.create(server=server, tool="who", permission="always", digest=server.tools[0]["digest"])

    await look(connected)
    return account, await look(world.chat, "codex", model="gpt-5.5", tools=["books"])


async def calls():
    return await look(lambda: list(ToolCall.objects.values_list("state", "outcome")))


async def test_a_sign_in_that_has_run_out_is_renewed_within_the_turn(world, site):
    account, chat = await chat_with(world, site)
    site.keeper.access.clear()
    account.key.replies("", calls=[Call(name="books__who", arguments={})]).replies("You are ada.")

    turn = await world.say(chat, "Who am I?")

    assert (turn.state, turn.answer) == ("done", "You are ada.")
    assert await calls() == [("done", "ada")]


async def test_a_sign_in_that_is_over_fails_the_call_and_the_answer_goes_on(world, site):
    account, chat = await chat_with(world, site)
    site.keeper.access.clear()
    site.keeper.renews = False
    account.key.replies("", calls=[Call(name="books__who", arguments={})]).replies("I can’t look that up now.")

    turn = await world.say(chat, "Who am I?")

    assert (turn.state, turn.text, turn.answer) == ("done", "Who am I?", "I can’t look that up now.")
    said = "You are signed out of it. Sign in again under Settings, Tools. This call didn’t run."
    assert await calls() == [("failed", said)]
    assert await look(lambda: ToolServer.objects.get().trouble) == {"code": "sign_in_over"}
    assert "access-" not in "".join(body.body.decode() for body in world.simulator.requests(account.key.secret))
