"""A stop that comes between two steps of a run: nobody is asked any more, nothing waits, and nothing is booked."""

import asyncio

import pytest

from conch.db import look
from conch.models import Attempt, Entry, ToolCall, TurnEvent
from conch.turns import actions, doors, run
from conch.turns.clock import Clock
from conch.turns.live import live_of
from conch.turns.watch import watch
from tests.turns.tools import Ledger, call

pytestmark = pytest.mark.django_db(transaction=True)


def stopped_just_before(world, step):
    """That step of a run, right after the person's Stop was written down, as it comes from another process."""

    def stopped(tried, *given, **named):
        actions.stop(world.person.pk, tried.turn_id, world.time.now())
        return step(tried, *given, **named)

    return stopped


async def events_of(turn):
    rows = TurnEvent.objects.filter(turn_id=turn.pk, run=turn.run).order_by("position")
    return await look(lambda: [row.kind for row in rows if row.kind != "delta"])


async def test_a_stop_at_the_moment_of_a_refusal_ends_the_turn_that_would_have_waited(world, monkeypatch):
    """R16: a turn that its person stopped is not answered by itself later; the refusal is known all the same."""
    account = await look(world.account, "codex")
    account.key.refuses("usage_limit")
    monkeypatch.setattr(run, "after_refusal", stopped_just_before(world, run.after_refusal))

    turn = await world.say(await look(world.chat, "codex"))

    assert turn.state == "stopped"
    assert await events_of(turn) == ["queued", "attempt", "stopped"]
    assert await look(lambda: list(Attempt.objects.values_list("refusal_kind", flat=True))) == ["limit"]


async def test_a_stop_at_the_moment_of_a_refusal_asks_nobody_else(world, monkeypatch):
    """R17, R27: the account that would have carried on is not asked, and nothing is held for it."""
    account, key = await look(world.account, "codex"), await look(world.account, "openai")
    account.key.refuses("usage_limit")
    key.key.replies("Carried on.")
    await world.prefers(limit_paid=True)
    monkeypatch.setattr(run, "after_refusal", stopped_just_before(world, run.after_refusal))

    turn = await world.say(await look(world.chat, "codex"))

    assert (turn.state, turn.answer) == ("stopped", "")
    assert world.simulator.requests(key.key.secret) == []
    assert not await look(Entry.objects.exists)


async def test_a_stop_before_the_request_went_out_leaves_no_entry(world, monkeypatch):
    """R26: an attempt that surely cost nothing leaves no entry."""
    account = await look(world.account, "openai")
    account.key.replies("Nobody asked for this any more.")
    begin = run.begin

    def stopped(turn_id, *given, **named):
        begun = begin(turn_id, *given, **named)
        actions.stop(world.person.pk, turn_id, world.time.now())
        live_of(turn_id).stop.set()
        return begun

    monkeypatch.setattr(run, "begin", stopped)

    turn = await world.say(await look(world.chat, "openai"))

    assert turn.state == "stopped"
    assert world.simulator.requests(account.key.secret, path="/v1/chat/completions") == []
    assert not await look(Entry.objects.exists)
    assert await look(lambda: list(Attempt.objects.values_list("state", "cost_nano"))) == [("stopped", 0)]


async def test_a_stop_between_two_tries_leaves_no_entry(world):
    """R8, R26: what was throttled surely cost nothing, and the next try never went out."""
    account = await look(world.account, "openai")
    account.key.refuses("throttle", retry_after=5)
    clock = Clock(world.time.now, lambda _seconds: asyncio.Event().wait())
    chat = await look(world.chat, "openai")
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=clock)
    async for event in watch(turn.pk):
        if event is not None and event.kind == "progress":
            await doors.stop(world.person.pk, turn.pk, clock=clock)

    turn = await world.settled(turn)

    assert (turn.state, len(world.simulator.requests(account.key.secret))) == ("stopped", 1)
    assert not await look(Entry.objects.exists)


async def test_a_stop_while_a_tool_begins_to_ask_ends_the_turn_and_nothing_asks_on(world, monkeypatch, tmp_path):
    """The turn that would have rested until the person's word is stopped, its call is gone."""
    await look(Ledger, world.person, tmp_path)
    account = await look(world.account, "codex")
    account.key.replies("Let me look. ", calls=(call("look_up", "tides"),))
    monkeypatch.setattr(run, "wait_for_word", stopped_just_before(world, run.wait_for_word))

    turn = await world.say(await look(world.chat, "codex", tools=["ledger"]), "What moves the tides?")

    assert (turn.state, turn.answer) == ("stopped", "Let me look. ")
    assert not await look(ToolCall.objects.exists)
