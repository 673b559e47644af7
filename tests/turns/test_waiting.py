"""Turns that wait are answered by themselves, once, in any process, also after a restart (R16)."""

import asyncio

import pytest

from conch.db import look
from conch.models import Turn
from conch.turns import doors

pytestmark = pytest.mark.django_db(transaction=True)


async def waits(world, messages=1):
    codex = await look(world.account, "codex")
    codex.key.refuses("usage_limit", resets_in=3600)
    chats = [await look(world.chat, "codex") for _ in range(messages)]
    turns = [await world.say(chat, f"message {n}") for n, chat in enumerate(chats)]
    assert {turn.state for turn in turns} == {"waiting"}
    return codex, chats, turns


async def test_a_waiting_message_goes_out_by_itself_after_the_reset(world):
    codex, chats, turns = await waits(world)
    codex.key.replies("At last.")
    codex.key.resets_early()
    await world.worker_looks()
    assert (await world.settled(turns[0])).state == "waiting"

    world.time.moves(hours=1, minutes=1)
    await world.worker_looks()

    turn = await world.settled(turns[0])
    assert (turn.state, turn.answer, turn.run) == ("done", "At last.", 2)
    assert [kind for kind, _ in await world.lines(chats[0])] == ["limit.sent"]


async def test_many_looks_at_once_send_it_once(world):
    """RST-29: claimed atomically, not per worker."""
    codex, _, turns = await waits(world)
    codex.key.replies("Once.", times=5)
    codex.key.resets_early()
    world.time.moves(hours=2)

    await asyncio.gather(*(world.worker_looks() for _ in range(5)))

    assert (await world.settled(turns[0])).state == "done"
    assert len(world.simulator.requests(codex.key.secret)) == 2


async def test_those_waiting_for_one_account_go_one_after_another_and_a_refusal_of_the_first_holds_the_others(world):
    codex, _, turns = await waits(world, messages=3)
    codex.key.refuses("usage_limit", resets_in=7200)
    world.time.moves(hours=1, minutes=1)

    await world.worker_looks()

    assert [(await world.settled(turn)).state for turn in turns] == ["waiting"] * 3
    assert len(world.simulator.requests(codex.key.secret)) == 2


async def test_a_waiting_message_can_be_taken_back_and_is_not_sent_later(world):
    codex, _, turns = await waits(world)
    codex.key.replies("Nobody asked.")

    await doors.cancel(world.person.pk, turns[0].pk)
    world.time.moves(hours=2)
    await world.worker_looks()

    assert (await world.settled(turns[0])).state == "stopped"
    assert len(world.simulator.requests(codex.key.secret)) == 1


async def test_an_account_connected_meanwhile_answers_at_once(world):
    """R16: the route is asked again when something makes somebody able to answer."""
    _, chats, turns = await waits(world)
    second = await look(world.account, "codex", "codex-2")
    second.key.replies("I am new here.")

    await doors.asked_again(world.person.pk, clock=world.time.clock)
    await world.worker_looks()

    turn = await world.settled(turns[0])
    assert (turn.state, turn.account) == ("done", "codex-2")
    assert [kind for kind, _ in await world.lines(chats[0])] == ["limit.sent", "limit.routed"]


async def test_a_turn_whose_process_is_gone_is_interrupted_once_with_its_text_kept(world):
    """design.md, A turn: never run twice, never lost."""
    codex = await look(world.account, "codex")
    codex.key.replies("After the crash.")
    chat = await look(world.chat, "codex")
    now = world.time.now()
    broken = await look(
        Turn.objects.create,
        conversation=chat,
        text="first",
        answer="Half",
        account="codex",
        state="running",
        owner="another.example/1/1",
        lease_until=now,
        position=5,
        created_at=now,
    )
    queued = await look(Turn.objects.create, conversation=chat, text="second", created_at=now, position=1)
    world.time.moves(minutes=1)

    await world.worker_looks()
    await world.worker_looks()

    broken = await world.settled(broken)
    assert (broken.state, broken.answer, broken.failure_code) == ("interrupted", "Half", "interrupted")
    assert (await world.settled(queued)).answer == "After the crash."
