"""A chat that goes from one engine to another and comes back, as the providers' own endpoints see it (R20, R31)."""

import pytest

from conch.db import look
from conch.models import Account

pytestmark = pytest.mark.django_db(transaction=True)

FOREIGN = (
    "thinking",
    "signature",
    "c2ltdWxhdGVk",
    "secret thought",
    "encrypted",
    "tool_use",
    "toolu_",
    "reasoning_text",
)


def sent(world, key):
    """The bodies of all requests that were made with that key."""
    return [request.body.decode() for request in world.simulator.requests(key.secret)]


async def test_nothing_signed_or_thought_is_sent_across_and_the_chat_goes_on_everywhere(world):
    """FBK-08, R31: what another wrote is plain conversation; and so is what one wrote itself, when the chat is back."""
    claude = await look(world.account, "anthropic", label="Anthropic", model="claude-sonnet-4-5")
    codex = await look(world.account, "codex")
    claude.key.replies("Because of the tides.", thinking="secret thought").refuses("credit_too_low").replies(
        "And so to bed.", thinking="secret thought", times=9
    )
    codex.key.replies("The moon, mostly.", thinking="secret thought", times=9)
    chat = await look(world.chat, "anthropic", model="claude-sonnet-4-5")

    first = await world.say(chat, "Why?")
    second = await world.say(chat, "What moves them?")
    await look(Account.objects.filter(slug="anthropic").update, state="ok")
    await look(lambda: Account.objects.get(slug="anthropic").refusals.all().delete())
    third = await world.say(chat, "And then?")

    assert [turn.account for turn in (first, second, third)] == ["anthropic", "codex", "anthropic"]
    for body in (*sent(world, codex.key), *sent(world, claude.key)):
        assert not [word for word in FOREIGN if word in body], body
    assert "[Anthropic answered:]\\nBecause of the tides." in sent(world, codex.key)[-1]
    last = sent(world, claude.key)[-1]
    assert [words in last for words in ("Because of the tides.", "[Codex answered:]\\nThe moon, mostly.")] == [
        True,
        True,
    ]
    assert last.count("Because of the tides.") == 1
