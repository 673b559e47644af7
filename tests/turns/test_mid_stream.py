"""What happens when a turn doesn't simply go well: limits in mid-stream, pauses, cuts, and who isn't asked then."""

import asyncio

import pytest

from conch.db import look
from conch.models import Account, Attempt, Entry, Refusal, Turn, TurnEvent
from conch.turns import doors
from conch.turns.live import all_live
from conch.turns.watch import watch

pytestmark = pytest.mark.django_db(transaction=True)


async def attempts(turn):
    rows = Attempt.objects.filter(turn=turn).order_by("pk").values_list("account", "state", "partial")
    return await look(lambda: list(rows))


async def test_a_limit_in_mid_stream_keeps_the_part_with_its_attempt_and_the_answer_is_one_new_piece(world):
    """FBK-11, R17: never spliced, and not handed over to the next account."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    first.key.breaks("The three causes are: 1. ", "usage_limit", inside="failed")
    second.key.replies("The three causes are: 1. Heat 2. Cold 3. Wear")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat, "Which three causes?")

    assert turn.answer == "The three causes are: 1. Heat 2. Cold 3. Wear"
    assert await attempts(turn) == [("codex", "refused", "The three causes are: 1. "), ("codex-2", "done", "")]
    assert "The three causes" not in str(world.simulator.requests(second.key.secret)[0].body)
    told = [event async for event in watch(turn.pk) if event is not None]
    assert "".join(event.data["text"] for event in told if event.kind == "delta") == turn.answer
    assert [event.kind for event in told if event.kind != "delta"] == [
        "queued",
        "attempt",
        "discard",
        "routed",
        "attempt",
        "done",
    ]


@pytest.mark.parametrize("how", ["before", "mid-stream", "in a retry"])
async def test_wait_holds_on_every_path_and_no_other_account_is_contacted(world, how):
    """FBK-13, R15."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    await world.prefers(limit_fallback="wait")
    if how == "in a retry":
        first.key.refuses("server_error")
    if how == "mid-stream":
        first.key.breaks("Some text ", "usage_limit", inside="failed")
    first.key.refuses("usage_limit")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)
    if how == "in a retry":
        await doors.retry(world.person.pk, turn.pk, clock=world.time.clock)
        turn = await world.settled(turn)

    assert turn.state == "waiting"
    assert world.simulator.requests(second.key.secret) == []


async def test_a_per_minute_limit_is_waited_for_on_the_same_account_and_marks_nobody(world):
    """RST-27, LIM-03, R8: the pause is kept to and shown, the account isn't passed over."""
    key = await look(world.account, "openrouter", model="openai/gpt-5.5")
    key.key.refuses("throttle", retry_after=20)
    key.key.replies("After a pause.")
    chat = await look(world.chat, "openrouter")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "After a pause.")
    assert 20 <= world.time.slept[0] < 21
    assert await look(Refusal.objects.count) == 0
    told = [event async for event in watch(turn.pk) if event is not None and event.kind == "progress"]
    assert told[0].data["text"] == "Openrouter asks for a pause. Trying again in 20 seconds."


async def test_a_throttle_that_never_ends_fails_the_turn_after_a_minute_and_switches_nobody(world):
    """R8: at most three times and sixty seconds in all; nothing outlives the turn."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    first.key.refuses("throttle", retry_after=15, times=9)
    second.key.replies("Nobody asked me.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code) == ("failed", "throttled")
    assert len(world.simulator.requests(first.key.secret)) == 4
    assert sum(world.time.slept) <= 60
    assert world.simulator.requests(second.key.secret) == []
    assert await look(Refusal.objects.count) == 0


@pytest.mark.parametrize("scenario", ["unauthorized", "model_gone", "bad_request", "server_error"])
async def test_the_chats_own_account_failing_for_another_reason_starts_no_switch(world, scenario):
    """FBK-17, R17."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    first.key.refuses(scenario, times=4)
    second.key.replies("Nobody asked me.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert turn.state == "failed"
    assert world.simulator.requests(second.key.secret) == []
    assert await look(Refusal.objects.count) == 0


async def test_a_model_that_is_gone_on_the_one_that_carries_on_is_asked_for_once_more_as_its_default(world):
    """FBK-05, R17: its default model once, and the line names it."""
    first = await look(world.account, "codex")
    known = [{"id": "gpt-5.5", "label": "GPT-5.5"}, {"id": "gpt-old", "label": "GPT old"}]
    second = await look(world.account, "codex", "codex-2", known_models=known)
    first.key.replies("One.")
    first.key.refuses("usage_limit", times=3)
    second.key.refuses("model_gone")
    second.key.replies("With the default.")
    chat = await look(world.chat, "codex")
    await world.say(chat)
    await look(
        Turn.objects.create,
        conversation=chat,
        text="x",
        answer="y",
        state="done",
        account="codex-2",
        model="gpt-old",
        created_at=world.time.now(),
        position=9,
    )

    turn = await world.say(chat, "next")

    assert (turn.state, turn.answer, turn.model) == ("done", "With the default.", "gpt-5.5")
    bodies = [seen.json["model"] for seen in world.simulator.requests(second.key.secret)]
    assert bodies == ["gpt-old", "gpt-5.5"]
    routed = [data for kind, data in await world.lines(chat) if kind == "limit.routed"]
    assert routed[-1]["to_model"] == "gpt-5.5"


async def test_a_key_that_says_what_it_can_pay_for_is_asked_once_more_with_that(world):
    """LIM-07, R34."""
    key = await look(world.account, "openrouter", model="openai/gpt-5.5")
    key.key.refuses("affordable", afford=3919)
    key.key.replies("A shorter answer.")
    chat = await look(world.chat, "openrouter")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "A shorter answer.")
    caps = [seen.json["max_tokens"] for seen in world.simulator.requests(key.key.secret)]
    assert caps[0] == 8192
    assert 3_000 < caps[1] <= 3919
    assert await look(Entry.objects.count) == 1
    assert await look(Refusal.objects.count) == 0


async def test_what_may_have_been_accepted_is_not_sent_again_and_is_booked_as_an_estimate(world):
    """BUD-11, R26, R34."""
    key = await look(world.account, "openai")
    key.key.cuts("Half of an answer ")
    key.key.replies("Nobody asked twice.")
    chat = await look(world.chat, "openai")

    turn = await world.say(chat)

    assert (turn.state, turn.ending) == ("failed", "cut")
    assert turn.answer.startswith("Half of an")
    assert len(world.simulator.requests(key.key.secret)) == 1
    entry = await look(Entry.objects.get)
    assert (entry.state, entry.estimated) == ("settled", True)
    assert entry.cost_nano > 0


async def test_a_connection_that_breaks_before_the_first_word_isnt_said_to_have_left_anything(world):
    """R34: it may have been accepted, so it isn't sent again by itself; the words are true."""
    key = await look(world.account, "openai", label="OpenAI")
    key.key.hangs_up()
    key.key.replies("Nobody asked twice.")
    chat = await look(world.chat, "openai")

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code, turn.answer) == ("failed", "cut", "")
    assert len(world.simulator.requests(key.key.secret)) == 1
    last = await look(TurnEvent.objects.filter(turn=turn.pk).latest, "pk")
    assert last.data["text"] == "OpenAI broke off before it had written anything. It may have been charged."


async def test_a_signed_out_account_that_would_carry_on_is_passed_over_and_known_as_signed_out(world):
    """R17, R36."""
    first = await look(world.account, "codex")
    second, third = await look(world.account, "codex", "codex-2"), await look(world.account, "codex", "codex-3")
    first.key.refuses("usage_limit")
    second.key.signed_out = True
    third.key.replies("The third answers.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert (turn.state, turn.account) == ("done", "codex-3")
    assert (await look(Account.objects.get, slug="codex-2")).state == "signed_out"


async def test_two_hundred_watchers_that_leave_leave_nothing_behind_and_the_turn_finishes(world):
    """STR-07: work is owned by nobody's request."""
    codex = await look(world.account, "codex")
    codex.key.replies("one two three four five six", hold_after=2)
    chat = await look(world.chat, "codex")
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    watchers = [watch(turn.pk) for _ in range(200)]
    await asyncio.gather(*(anext(watcher) for watcher in watchers))

    for watcher in watchers:
        await watcher.aclose()
    codex.key.release()
    turn = await world.settled(turn)

    assert (turn.state, turn.answer) == ("done", "one two three four five six")
    assert all_live() == []
