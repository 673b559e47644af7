"""Trying a message again that waited once, or that stands before one that waits (R16, R35, R36)."""

import asyncio
from decimal import Decimal

import pytest

from conch.db import look
from conch.models import Account, Turn
from conch.turns import doors
from conch.turns.worker import look_round

pytestmark = pytest.mark.django_db(transaction=True)


async def waited_and_was_stopped(world):
    """A message to Codex, at its limit, that waited until its person stopped it."""
    account = await look(world.account, "codex")
    await world.prefers(limit_fallback="wait")
    account.key.refuses("usage_limit", resets_in=600)
    turn = await world.say(await look(world.chat, "codex"))
    assert turn.state == "waiting"
    await doors.stop(world.person.pk, turn.pk, clock=world.time.clock)
    return account, turn


async def tried_again(world, turn):
    await doors.retry(world.person.pk, turn.pk, clock=world.time.clock)
    return await world.settled(turn)


async def test_a_message_that_waited_once_is_not_routed_past_an_account_that_signed_out(world):
    """R36: only a turn that waits goes to somebody else then; tried again, the person chooses."""
    _, turn = await waited_and_was_stopped(world)
    other = await look(world.account, "codex", "codex-2")
    await world.prefers(limit_fallback="auto")
    await look(Account.objects.filter(slug="codex").update, state="signed_out")

    turn = await tried_again(world, turn)

    assert (turn.state, turn.failure_code) == ("failed", "signed_out")
    assert world.simulator.requests(other.key.secret) == []


async def test_a_message_tried_again_after_eight_days_waits_as_a_new_one_would(world):
    """R16: a retry begins a new run; the days that an earlier one waited don't count."""
    account, turn = await waited_and_was_stopped(world)
    world.time.moves(days=9)
    account.key.forgets().refuses("usage_limit", resets_in=600)

    turn = await tried_again(world, turn)

    assert (turn.state, turn.waits_for) == ("waiting", "codex")


async def answered_slowly(world, key, turn):
    """That account answers the message, by its person's word, and is in the middle of it."""
    key.replies("A long answer.", hold_after=1)
    await doors.answer_with(world.person.pk, turn.pk, "codex-2", clock=world.time.clock)
    await asyncio.to_thread(world.simulator.wait_for, 1, key.secret, timeout_s=30)


async def states():
    return await look(lambda: list(Turn.objects.order_by("pk").values_list("state", flat=True)))


async def ended(world, key, turn):
    """The slow answer comes to its end, and the worker looks."""
    key.release()
    await world.settled(turn)
    await world.worker_looks()
    return await look(lambda: list(Turn.objects.order_by("pk").values_list("state", "answer")))


async def test_one_that_waits_is_asked_for_after_an_earlier_one_that_was_tried_again(world, caplog):
    """R35: due while the other is answered, it goes out once that has ended."""
    codex, other = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    await world.prefers(limit_fallback="wait")
    chat = await look(world.chat, "codex")
    codex.key.refuses("bad_request").refuses("usage_limit", resets_in=600).replies("After it.")
    first, second = await world.say(chat, "first"), await world.say(chat, "second")
    assert (first.state, second.state) == ("failed", "waiting")

    await answered_slowly(world, other.key, first)
    world.time.moves(seconds=700)
    for _ in range(3):
        await look_round(world.time.clock)
        await doors.retry(world.person.pk, second.pk, clock=world.time.clock)

    assert await states() == ["running", "waiting"]
    assert await ended(world, other.key, first) == [("done", "A long answer."), ("done", "After it.")]
    assert "broke" not in caplog.text


async def test_one_that_the_cap_held_goes_on_after_an_earlier_one_that_was_tried_again(world, caplog):
    """R18, R35: the cap was raised while the other is answered; nobody needs to press anything again."""
    openai, other = await look(world.account, "openai"), await look(world.account, "codex", "codex-2")
    chat = await look(world.chat, "openai")
    openai.key.refuses("bad_request").replies("After it.")
    first = await world.say(chat, "first")
    await doors.raise_cap(world.person.pk, chat.pk, Decimal(0), clock=world.time.clock)
    second = await world.say(chat, "second")
    assert (first.state, second.state) == ("failed", "capped")

    await answered_slowly(world, other.key, first)
    await doors.raise_cap(world.person.pk, chat.pk, None, clock=world.time.clock)

    assert await states() == ["running", "capped"]
    assert await ended(world, other.key, first) == [("done", "A long answer."), ("done", "After it.")]
    assert "broke" not in caplog.text
