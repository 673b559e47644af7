"""What a person presses: stop, retry, answer with, Switch back, Carry on, another account, another cap."""

import asyncio
from decimal import Decimal

import pytest

from conch.db import look
from conch.models import Conversation, Entry, Preferences, Turn
from conch.turns import doors
from conch.turns.errors import NotHere, NotNow
from conch.turns.watch import watch
from tests.conftest import make_person

pytestmark = pytest.mark.django_db(transaction=True)


async def carried_on(world, **preferences):
    """A chat of Codex's, at its limit, that the second sign-in carried on."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    await world.prefers(**preferences)
    first.key.refuses("usage_limit")
    second.key.replies("Carried on.", times=9)
    chat = await look(world.chat, "codex")
    turn = await world.say(chat)
    return first, second, chat, turn


async def test_switch_back_gives_the_chat_back_and_pressed_twice_the_first_stands(world):
    """R23."""
    _, second, chat, _ = await carried_on(world)

    first_press = await doors.switch_back(world.person.pk, chat.pk)
    second_press = await doors.switch_back(world.person.pk, chat.pk)

    assert first_press == second_press
    assert (first_press["account"], first_press["until"] is not None) == ("codex", True)
    asked = len(world.simulator.requests(second.key.secret))
    turn = await world.say(chat, "and now?")
    assert turn.state == "waiting"
    assert len(world.simulator.requests(second.key.secret)) == asked
    kinds = [(kind, data.get("why")) for kind, data in await world.lines(chat)]
    assert ("limit.waiting", "switched_back") in kinds


async def test_carry_on_ends_switch_back_and_the_waiting_message_goes_out_with_the_one_it_names(world):
    """R23."""
    _, _, chat, _ = await carried_on(world)
    await doors.switch_back(world.person.pk, chat.pk)
    waiting = await world.say(chat, "and now?")

    await doors.carry_on(world.person.pk, chat.pk)
    turn = await world.settled(waiting)

    assert (turn.state, turn.account) == ("done", "codex-2")
    assert (await look(Conversation.objects.get, pk=chat.pk)).waits_until is None
    assert [kind for kind, _ in await world.lines(chat)] == ["limit.routed"]


async def test_there_is_nothing_to_switch_back_from_in_a_chat_that_was_never_routed(world):
    await look(world.account, "codex")
    chat = await look(world.chat, "codex")

    with pytest.raises(NotNow):
        await doors.switch_back(world.person.pk, chat.pk)


async def test_a_chat_stays_with_who_carried_it_on_when_coming_back_is_off_and_switch_back_undoes_it(world):
    """R21, R23."""
    _, _, chat, _ = await carried_on(world, limit_return=False)

    assert (await look(Conversation.objects.get, pk=chat.pk)).account == "codex-2"

    await doors.switch_back(world.person.pk, chat.pk)

    assert (await look(Conversation.objects.get, pk=chat.pk)).account == "codex"


async def test_a_stay_with_a_key_ends_also_where_the_next_message_has_to_wait(world):
    """R21: once the yes is gone the chat is again its first account's, and a line says so, whoever answers and when."""
    codex, key = await look(world.account, "codex"), await look(world.account, "openai")
    codex.key.refuses("usage_limit")
    key.key.replies("Paid.")
    await look(Preferences.objects.filter(pk=world.person.pk).update, limit_return=False, limit_paid=True)
    chat = await look(world.chat, "codex")
    await world.say(chat)
    assert (await look(Conversation.objects.get, pk=chat.pk)).account == "openai"

    await look(Preferences.objects.filter(pk=world.person.pk).update, limit_paid=False)
    turn = await world.say(chat, "and now?")

    assert turn.state == "waiting"
    assert (await look(Conversation.objects.get, pk=chat.pk)).account == "codex"
    kinds = [kind for kind, _ in await world.lines(chat)]
    assert kinds == ["limit.routed", "limit.unstayed", "limit.waiting"]


async def test_once_the_limit_has_reset_the_chats_own_account_answers_with_what_it_missed(world):
    """R20."""
    first, _, chat, _ = await carried_on(world)
    first.key.replies("I am back.")
    world.time.moves(hours=6)

    turn = await world.say(chat, "and now?")

    assert (turn.state, turn.account, turn.answer) == ("done", "codex", "I am back.")
    kinds = [kind for kind, _ in await world.lines(chat)]
    assert kinds[-1] == "limit.returned"
    sent = str(world.simulator.requests(first.key.secret)[-1].body)
    assert sent.count("Carried on.") == 1
    assert "answered:]" in sent


async def test_a_yes_for_one_message_lets_a_key_answer_it_and_nothing_else_changes(world):
    """R27: consent once, preference and chat as they were, the waiting line becomes the routed line."""
    codex, key = await look(world.account, "codex"), await look(world.account, "openai")
    codex.key.refuses("usage_limit")
    key.key.replies("Once.", times=3)
    chat = await look(world.chat, "codex")
    waiting = await world.say(chat)

    await doors.answer_with(world.person.pk, waiting.pk, "openai")
    turn = await world.settled(waiting)

    assert (turn.state, turn.account) == ("done", "openai")
    assert await look(lambda: list(Entry.objects.values_list("consent", flat=True))) == ["once"]
    assert [kind for kind, _ in await world.lines(chat)] == ["limit.routed"]
    following = await world.say(chat, "next")
    assert following.state == "waiting"
    assert len(world.simulator.requests(key.key.secret)) == 1


async def test_answer_with_an_account_at_its_limit_is_refused_with_what_would_help(world):
    _, _, _, turn = await carried_on(world)

    with pytest.raises(NotNow, match="at its limit"):
        await doors.answer_with(world.person.pk, turn.pk, "codex")


async def test_stopping_keeps_what_had_arrived_and_the_next_message_goes(world):
    """R35, R31."""
    codex = await look(world.account, "codex")
    codex.key.falls_silent("Half an ans")
    codex.key.replies("The next one.")
    chat = await look(world.chat, "codex")
    turn = await doors.send(world.person.pk, chat.pk, "first")
    async for event in watch(turn.pk):
        if event is not None and event.kind == "delta":
            break
    following = await doors.send(world.person.pk, chat.pk, "second")
    assert (await look(Turn.objects.get, pk=following.pk)).state == "queued"

    await doors.stop(world.person.pk, turn.pk)
    following = await world.settled(following)

    stopped = await look(Turn.objects.get, pk=turn.pk)
    assert stopped.state == "stopped"
    assert stopped.answer
    assert "Half an ans".startswith(stopped.answer)
    assert (following.state, following.answer) == ("done", "The next one.")


async def test_a_retry_answers_anew_and_pressed_again_while_it_runs_sends_nothing_more(world):
    codex = await look(world.account, "codex")
    codex.key.refuses("server_error")
    codex.key.replies("This time.")
    chat = await look(world.chat, "codex")
    failed = await world.say(chat)
    assert failed.state == "failed"

    await asyncio.gather(*(doors.retry(world.person.pk, failed.pk) for _ in range(5)))
    turn = await world.settled(failed)

    assert (turn.state, turn.answer, turn.run) == ("done", "This time.", 2)
    assert len(world.simulator.requests(codex.key.secret)) == 2


async def test_an_answer_that_others_were_built_on_is_not_replaced(world):
    codex = await look(world.account, "codex")
    codex.key.replies("One.")
    codex.key.replies("Two.")
    chat = await look(world.chat, "codex")
    first = await world.say(chat, "1")
    await world.say(chat, "2")

    with pytest.raises(NotNow, match="Edit and resend"):
        await doors.retry(world.person.pk, first.pk)


async def test_the_chats_own_cap_holds_the_turn_and_raising_it_sends_it(world):
    """R18."""
    key = await look(world.account, "openai")
    key.key.replies("Affordable now.")
    chat = await look(world.chat, "openai", spend_cap_nano=1_000)

    held = await world.say(chat)
    assert held.state == "capped"
    assert world.simulator.requests(key.key.secret) == []

    await doors.raise_cap(world.person.pk, chat.pk, Decimal(2))
    turn = await world.settled(held)

    assert (turn.state, turn.answer) == ("done", "Affordable now.")


async def test_nothing_of_somebody_else_can_be_touched(world):
    _, _, chat, turn = await carried_on(world)
    mallory = await look(make_person, "mallory")

    for action in (doors.stop, doors.retry, doors.cancel, doors.send_now):
        with pytest.raises(NotHere):
            await action(mallory.pk, turn.pk)
    for action in (doors.switch_back, doors.carry_on):
        with pytest.raises(NotHere):
            await action(mallory.pk, chat.pk)
    with pytest.raises(NotHere):
        await doors.send(mallory.pk, chat.pk, "hi")


async def test_the_same_message_twice_is_one_turn_and_one_request(world):
    """STR-05: the same key again gets the first's turn; with another text it is refused."""
    codex = await look(world.account, "codex")
    codex.key.replies("Once.", times=2)
    chat = await look(world.chat, "codex")

    turns = await asyncio.gather(
        *(doors.send(world.person.pk, chat.pk, "hi", key="uuid-1", clock=world.time.clock) for _ in range(2))
    )
    await world.settled(turns[0])

    assert len({turn.pk for turn in turns}) == 1
    assert len(world.simulator.requests(codex.key.secret)) == 1
    with pytest.raises(NotNow):
        await doors.send(world.person.pk, chat.pk, "ho", key="uuid-1")
