"""Edit and resend: a new turn in the place of an old one; nothing of what it folded is sent to anybody."""

import pytest

from conch.db import look
from conch.engines.base import Image
from conch.models import Attachment, Conversation, Turn
from conch.turns import doors
from conch.turns.errors import NotHere, NotNow, TooMuch
from conch.turns.watch import watch
from tests.conftest import make_person

pytestmark = pytest.mark.django_db(transaction=True)


def texts(request):
    """Every text that a request to Codex carried."""
    return [part["text"] for item in request.json["input"] for part in item["content"] if "text" in part]


async def standing(chat):
    rows = Turn.objects.filter(conversation=chat, replaced_by=None).order_by("pk")
    return await look(lambda: list(rows.values_list("text", flat=True)))


async def test_what_was_edited_and_all_that_came_after_it_is_kept_and_nothing_of_it_is_sent(world):
    """R31: of a version folded by Edit and resend nothing."""
    account = await look(world.account, "codex")
    account.key.replies("An answer.", times=9)
    chat = await look(world.chat, "codex")
    first = await world.say(chat, "the first")
    await world.say(chat, "the second")
    await world.say(chat, "the third")

    edited = await world.settled(await doors.resend(world.person.pk, first.pk + 1, "the second, better"))
    await world.say(chat, "and on")

    assert await standing(chat) == ["the first", "the second, better", "and on"]
    folded = await look(lambda: list(Turn.objects.filter(replaced_by=edited.pk).values_list("text", "answer")))
    assert folded == [("the second", "An answer."), ("the third", "An answer.")]
    last = texts(world.simulator.requests(account.key.secret)[-1])
    assert [text for text in last if text.startswith(("the", "and"))] == ["the first", "the second, better", "and on"]


async def test_an_edited_first_message_gives_the_chat_its_title_until_the_person_does(world):
    """R34."""
    (await look(world.account, "codex")).key.replies("Yes.", times=9)
    chat = await look(world.chat, "codex")
    turn = await world.say(chat, "Trip to Losoten")

    edited = await world.settled(await doors.resend(world.person.pk, turn.pk, "Trip to Lofoten"))
    assert (await look(Conversation.objects.get)).title == "Trip to Lofoten"

    await look(Conversation.objects.update, title="Holidays", titled=True)
    await world.settled(await doors.resend(world.person.pk, edited.pk, "Trip to Norway"))
    assert (await look(Conversation.objects.get)).title == "Holidays"


async def test_a_running_answer_is_stopped_and_what_waited_behind_it_never_goes_out(world):
    """R35: one at a time; the edited message goes once the old one has ended."""
    account = await look(world.account, "codex")
    account.key.falls_silent("Half an ans")
    account.key.replies("Anew.", times=3)
    chat = await look(world.chat, "codex")
    turn = await doors.send(world.person.pk, chat.pk, "long")
    async for event in watch(turn.pk):
        if event is not None and event.kind == "delta":
            break
    behind = await doors.send(world.person.pk, chat.pk, "behind")

    edited = await world.settled(await doors.resend(world.person.pk, turn.pk, "short"))

    assert (edited.state, edited.answer) == ("done", "Anew.")
    states = [(await look(Turn.objects.get, pk=pk)).state for pk in (turn.pk, behind.pk)]
    assert states == ["stopped", "stopped"]
    assert len(world.simulator.requests(account.key.secret)) == 2


async def test_sent_twice_with_one_key_it_is_one_turn_and_an_old_version_is_not_edited_again(world):
    """STR-05."""
    (await look(world.account, "codex")).key.replies("Yes.", times=9)
    chat = await look(world.chat, "codex")
    turn = await world.say(chat, "one")

    once, twice = [await doors.resend(world.person.pk, turn.pk, "two", key="k") for _ in range(2)]
    await world.settled(once)

    assert once.pk == twice.pk
    with pytest.raises(NotNow):
        await doors.resend(world.person.pk, turn.pk, "three", key="another")
    with pytest.raises(NotNow):
        await doors.retry(world.person.pk, turn.pk)
    assert await standing(chat) == ["two"]


async def test_the_images_of_a_message_go_along_and_nothing_is_not_a_message(world):
    (await look(world.account, "codex")).key.replies("Red.", times=9)
    chat = await look(world.chat, "codex")
    red = Image("image/png", b"\x89PNG")
    with_image = await world.say(chat, "which colour?", images=(red,))
    without = await world.say(chat, "and now?")

    with pytest.raises(TooMuch):
        await doors.resend(world.person.pk, without.pk, "  ")
    edited = await world.settled(await doors.resend(world.person.pk, with_image.pk, "what colour?"))

    assert (await look(Attachment.objects.filter(turn=edited).count)) == 1


async def test_what_is_somebody_elses_is_not_edited(world):
    (await look(world.account, "codex")).key.replies("Yes.", times=9)
    turn = await world.say(await look(world.chat, "codex"), "mine")
    bob = await look(make_person, "bob")

    with pytest.raises(NotHere):
        await doors.resend(bob.pk, turn.pk, "yours")


async def test_the_line_is_said_again_when_the_turn_that_had_it_was_folded(world):
    """R22: said once, where the person can read it."""
    first, second = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    first.key.refuses("usage_limit", times=9)
    second.key.replies("Carried on.", times=9)
    chat = await look(world.chat, "codex")
    turn = await world.say(chat, "one")

    edited = await world.settled(await doors.resend(world.person.pk, turn.pk, "two"))

    assert edited.account == "codex-2"
    assert await look(lambda: [line.kind for line in edited.lines.all()]) == ["limit.routed"]
