"""Prompts that run without a page: carried on by the same route, by a key only within a budget (R25, CON-06)."""

import pytest

from conch.chat.shown import names_of
from conch.copy.clock import Viewer
from conch.db import look
from conch.models import Account, Conversation, Task, Turn, TurnEvent
from conch.tasks import background
from conch.turns import doors

pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = 10 * 10**9


async def shown(world):
    """The list of tasks as its page shows it."""
    return await look(lambda: [one for _, one in background.listed(world.person.pk, Viewer(world.time.now()))])


async def test_a_task_runs_in_a_chat_of_its_own_and_its_result_is_unread_until_looked_at(world):
    codex = await look(world.account, "codex")
    codex.key.replies("Three things matter: one, two and three.")
    agent = await look(world.agent, account="codex")

    turn = await world.in_the_background(agent=agent)

    assert (turn.state, turn.unattended, turn.routine) == ("done", True, False)
    (one,) = await shown(world)
    assert (one.asked, one.tag, one.now) == ("Summarise it", "Done", "Three things matter: one, two and three.")
    assert (one.chat, one.unread, one.stops) == (turn.conversation_id, True, False)
    chat = await look(Conversation.objects.get, pk=turn.conversation_id)
    assert (chat.title, chat.instructions, chat.agent) == ("Summarise it", "Be brief.", agent.pk)

    await look(Conversation.objects.filter(pk=chat.pk).update, unread=False)
    assert (await shown(world))[0].unread is False


async def test_pressed_twice_it_is_one_task(world):
    codex = await look(world.account, "codex")
    codex.key.replies("Once.", times=3)

    first = await world.in_the_background(account="codex", key="same")
    second = await world.in_the_background(account="codex", key="same")

    assert first.pk == second.pk
    assert await look(Task.objects.count) == await look(Turn.objects.count) == 1
    assert len(world.simulator.requests(codex.key.secret)) == 1


async def test_at_a_limit_a_task_carries_on_with_the_next_plan(world):
    """R25: by the same route."""
    codex, other = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    codex.key.refuses("usage_limit", resets_in=3600)
    other.key.replies("From the other.")

    turn = await world.in_the_background(account="codex")

    assert (turn.state, turn.account, turn.answer) == ("done", "codex-2", "From the other.")
    assert [kind for kind, _ in await world.lines(turn.conversation_id)] == ["limit.routed"]


async def test_at_a_limit_a_task_uses_a_key_only_with_a_months_budget(world):
    """CON-06: a yes given while watching is no yes for the night. It waits and says so, and goes on with a budget."""
    await world.prefers(limit_paid=True)
    codex = await look(world.account, "codex")
    key = await look(world.account, "openai")
    codex.key.refuses("usage_limit", resets_in=3600)
    key.key.replies("Paid for.")

    turn = await world.in_the_background(account="codex")

    assert turn.state == "waiting"
    assert not world.simulator.requests(key.key.secret)
    (one,) = await shown(world)
    assert one.tag == "Waiting"
    assert "While you’re away, that needs a month’s budget." in one.said.text
    assert [press.label.partition(" for")[0] for press in one.presses] == ["Use it", "Set a budget"]

    await world.prefers(month_budget_nano=BUDGET)
    await doors.asked_again(world.person.pk, clock=world.time.clock)
    await world.worker_looks()

    turn = await world.settled(turn)
    assert (turn.state, turn.account) == ("done", "openai")


async def test_a_yes_for_this_message_stands_without_a_budget(world):
    """R25: said by somebody who looks."""
    codex = await look(world.account, "codex")
    key = await look(world.account, "openai")
    codex.key.refuses("usage_limit", resets_in=3600)
    key.key.replies("Paid for.")
    turn = await world.in_the_background(account="codex")

    await doors.answer_with(world.person.pk, turn.pk, "openai", clock=world.time.clock)

    turn = await world.settled(turn)
    assert (turn.state, turn.account) == ("done", "openai")


async def test_a_key_of_its_own_needs_no_budget(world):
    """R25, R27: it was chosen for this task."""
    key = await look(world.account, "openai")
    key.key.replies("By the key.")

    turn = await world.in_the_background(account="openai")

    assert (turn.state, turn.account) == ("done", "openai")


async def test_a_task_that_waits_goes_out_by_itself(world):
    """R16."""
    codex = await look(world.account, "codex")
    codex.key.refuses("usage_limit", resets_in=3600)
    turn = await world.in_the_background(account="codex")
    assert (await shown(world))[0].stops
    codex.key.replies("At last.")
    codex.key.resets_early()

    world.time.moves(hours=1, minutes=1)
    await world.worker_looks()

    turn = await world.settled(turn)
    assert (turn.state, turn.answer) == ("done", "At last.")


async def test_a_task_says_what_it_does_now(world):
    await look(world.account, "codex")
    chat = await look(world.chat, "codex", unread=True)
    now = world.time.now()
    turn = await look(
        lambda: Turn.objects.create(
            conversation=chat, text="Go", state="running", account="codex", model="gpt-5.5", created_at=now,
            started_at=now, unattended=True,
        )
    )  # fmt: skip
    told = {"turn": turn, "run": 1, "kind": "progress"}
    await look(lambda: TurnEvent.objects.create(position=2, data={"text": "Reading orders.sql."}, **told))
    viewer = Viewer(now)

    names = await look(names_of, world.person.pk)
    (one,) = await look(background.present, [turn], {chat.pk: True}, names, viewer)

    assert (one.tag, one.now) == ("Running", "Codex is answering. Reading orders.sql.")
    assert one.unread is False, "nothing has come of it yet"
    await doors.stop(world.person.pk, turn.pk)


async def test_a_failure_of_a_task_is_said_and_unread(world):
    """R36."""
    await look(world.account, "codex")
    await look(Account.objects.filter(slug="codex").update, state="signed_out")

    await world.in_the_background(account="codex")

    (one,) = await shown(world)
    assert (one.tag, one.tag_kind, one.unread) == ("Failed", "bad", True)
    assert one.said.text == "Codex is signed out. Nothing was sent."


async def test_queries_dont_grow_with_tasks(world, django_assert_max_num_queries):
    codex = await look(world.account, "codex")
    codex.key.replies("Done.", times=9)
    for number in range(6):
        await world.in_the_background(account="codex", key=f"k{number}")

    def few():
        with django_assert_max_num_queries(5):
            return background.listed(world.person.pk, Viewer(world.time.now()))

    assert len(await look(few)) == 6
