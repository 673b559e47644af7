"""Switch back in a chat that Automatic moved to a key: the press is no yes to pay by itself (R21, R23, R27)."""

import pytest

from conch.db import look
from conch.models import Conversation, Entry
from conch.turns import doors
from conch.turns.errors import NotNow

pytestmark = pytest.mark.django_db(transaction=True)


async def stayed_with_a_key(world):
    """A chat of Codex's that stayed with a key while keys were on; the key refused then, and a second plan answered."""
    codex, openai = await look(world.account, "codex"), await look(world.account, "openai")
    other = await look(world.account, "codex", "codex-2", carries_on=False)
    await world.prefers(limit_paid=True, limit_return=False, limit_order=["openai"])
    codex.key.refuses("usage_limit")
    openai.key.replies("Carried on.").refuses("insufficient_quota").replies("Paid for.")
    other.key.replies("By the second plan.", times=9)
    chat = await look(world.chat, "codex")
    await world.say(chat, "one")
    await look(type(other.row).objects.filter(slug="codex-2").update, carries_on=True)
    return openai, chat


async def asked_after_the_yes_was_taken_back(world, openai, chat):
    """Keys are off again, the key's refusal is over: what the next message in this chat asks the key."""
    await world.prefers(limit_paid=False)
    world.time.moves(hours=6)
    before = len(world.simulator.requests(openai.key.secret))
    turn = await world.say(chat, "three")
    consents = await look(lambda: list(Entry.objects.order_by("pk").values_list("consent", flat=True)))
    return len(world.simulator.requests(openai.key.secret)) - before, turn, consents


@pytest.mark.parametrize("goes_back", [True, False])
async def test_a_key_that_the_chat_only_stayed_with_isn_t_its_own_after_switch_back(world, goes_back):
    """Whether the chat stayed with the next one too (limit_return off) or was only carried on by it."""
    openai, chat = await stayed_with_a_key(world)
    await world.prefers(limit_return=goes_back)
    assert (await world.say(chat, "two")).account == "codex-2"

    back = await doors.switch_back(world.person.pk, chat.pk, clock=world.time.clock)
    now = await look(Conversation.objects.get, pk=chat.pk)
    asked, turn, consents = await asked_after_the_yes_was_taken_back(world, openai, chat)

    assert back["account"] == "openai"
    assert (now.account, now.stayed_from, now.stayed_consent) == ("openai", "codex", "paid_on")
    assert asked == 0
    assert set(consents) <= {"paid_on"}
    assert turn.account != "openai"
    assert ("limit.unstayed", "codex") in [(kind, data.get("account")) for kind, data in await world.lines(chat)]


async def test_there_is_nothing_to_switch_back_to_such_a_key_once_another_account_was_chosen(world):
    openai, chat = await stayed_with_a_key(world)
    assert (await world.say(chat, "two")).account == "codex-2"
    await doors.choose(world.person.pk, chat.pk, "codex-2", clock=world.time.clock)

    with pytest.raises(NotNow):
        await doors.switch_back(world.person.pk, chat.pk, clock=world.time.clock)

    asked, turn, _ = await asked_after_the_yes_was_taken_back(world, openai, chat)
    assert (asked, turn.account) == (0, "codex-2")
