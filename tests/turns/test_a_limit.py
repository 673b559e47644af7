"""The main job, from a message to its answer, over real HTTP to the simulator and a real database."""

import pytest

from conch.db import look
from conch.models import Attempt, Entry, Preferences, Refusal

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_chats_own_account_answers_while_it_has_room(world):
    """R11."""
    codex = await look(world.account, "codex")
    codex.key.replies("Hello, Ada.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert (turn.state, turn.answer, turn.account) == ("done", "Hello, Ada.", "codex")
    assert await world.lines(chat) == []


async def test_a_plan_that_refuses_for_its_limit_is_carried_on_by_the_next_plan_in_the_same_turn(world):
    """R12, R17, R22: one message, one answer, the line that says so; the refused one is asked once."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    first.key.refuses("usage_limit")
    second.key.replies("The second answers.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert (turn.state, turn.answer, turn.account) == ("done", "The second answers.", "codex-2")
    lines = await world.lines(chat)
    assert [kind for kind, _ in lines] == ["limit.routed"]
    assert (lines[0][1]["from"], lines[0][1]["to"], lines[0][1]["switch_back"]) == ("codex", "codex-2", True)
    assert len(world.simulator.requests(first.key.secret)) == 1


async def test_an_account_known_to_be_at_its_limit_is_not_asked_again_and_nothing_is_said_twice(world):
    """R8, R22, RST-25: no request goes to it until its reset, and the next turn on the same route adds no line."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    first.key.refuses("usage_limit", times=9)
    second.key.replies("Again.", times=9)
    chat = await look(world.chat, "codex")

    for _ in range(4):
        await world.say(chat)

    assert len(world.simulator.requests(first.key.secret)) == 1
    assert [kind for kind, _ in await world.lines(chat)] == ["limit.routed"]
    assert await look(Refusal.objects.count) == 1


async def test_a_key_is_not_used_by_itself_and_the_wait_says_why(world):
    """R13, R16: with neither a pick nor the switch, the turn waits, and no key is asked."""
    codex, key = await look(world.account, "codex"), await look(world.account, "openai")
    codex.key.refuses("usage_limit")
    key.key.replies("Paid.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert turn.state == "waiting"
    assert world.simulator.requests(key.key.secret) == []
    lines = await world.lines(chat)
    assert [(kind, data["why"]) for kind, data in lines] == [("limit.waiting", "only_keys")]
    assert lines[0][1]["could"]["slug"] == "openai"
    assert turn.wake_at is not None


async def test_a_key_that_is_named_answers_with_that_consent_in_the_ledger(world):
    """R13, R27."""
    codex, key = await look(world.account, "codex"), await look(world.account, "openai")
    codex.key.refuses("usage_limit")
    key.key.replies("Paid, and named.")
    await look(Preferences.objects.filter(pk=world.person.pk).update, limit_fallback="openai")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert (turn.state, turn.account) == ("done", "openai")
    entry = await look(Entry.objects.get)
    assert (entry.state, entry.consent, entry.turn, entry.cost_nano) == ("settled", "named", turn.pk, turn.cost_nano)
    assert turn.cost_nano > 0
    consents = await look(lambda: list(Attempt.objects.order_by("pk").values_list("account", "consent")))
    assert consents == [("codex", ""), ("openai", "named")]


async def test_a_key_without_credit_is_carried_on_by_an_allowed_key_and_costs_nothing(world):
    """R17, R26: the refused attempt leaves no entry; the second is billed once."""
    first, second = (
        await look(world.account, "openai"),
        await look(world.account, "anthropic", model="claude-sonnet-4-5"),
    )
    first.key.refuses("insufficient_quota")
    second.key.replies("I have credit.")
    await look(Preferences.objects.filter(pk=world.person.pk).update, limit_paid=True)
    chat = await look(world.chat, "openai")

    turn = await world.say(chat)

    assert (turn.state, turn.account, turn.answer) == ("done", "anthropic", "I have credit.")
    assert await look(lambda: list(Entry.objects.values_list("account", "consent"))) == [("anthropic", "paid_on")]
    assert len(world.simulator.requests(first.key.secret)) == 1
