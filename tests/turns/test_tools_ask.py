"""A tool that asks: the turn waits for the person's word, in any process, as long as it takes."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, transaction

from conch.db import look, step
from conch.models import Account, Attempt, ToolCall, ToolPermission, Turn
from conch.turns import calls, doors
from conch.turns.accept import accept
from conch.turns.errors import NotHere
from conch.turns.watch import watch
from tests.conftest import make_person
from tests.turns import another_process
from tests.turns.tools import Ledger, asking, call, calls_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ledger(world, tmp_path):
    return Ledger(world.person, tmp_path)


async def told(turn):
    return [event async for event in watch(turn.pk) if event is not None]


async def says(world, turn, word, call_id=None):
    """The person's word on the turn's first call that asks, or on that one; the turn once nothing runs."""
    call_id = call_id or (await asking(turn))[0]
    await doors.allow(world.person.pk, turn.pk, call_id, word, clock=world.time.clock)
    return await world.settled(turn)


async def asks(world, *calls, text="Let me look. "):
    """A turn whose model asked for these calls, and waits."""
    account = await look(world.account, "codex")
    account.key.replies(text, calls=calls)
    chat = await look(world.chat, "codex", tools=["ledger"])
    return account, await world.say(chat, "What moves the tides?")


async def test_nothing_runs_until_the_person_has_answered_and_no_time_ends_the_wait(world, ledger):
    """`waiting` for `tool`, `until` null: no worker, no other look at the route, and no eight days change it."""
    account, turn = await asks(world, call("look_up", "tides"))

    assert (turn.state, turn.waits_for, turn.until, turn.wake_at) == ("waiting", "tool", None, None)
    assert (turn.answer, ledger.ran) == ("Let me look. ", [])
    kinds = [(event.kind, event.data.get("state")) for event in await told(turn) if event.kind != "delta"]
    assert kinds == [("queued", None), ("attempt", None), ("tool", "asked"), ("waiting", None)]
    said = {"for": "tool", "until": None, "text": "Codex wants to run look up in Ledger."}
    assert (await told(turn))[-1].data == said

    world.time.moves(days=9)
    await world.worker_looks()
    await doors.asked_again(world.person.pk, world.time.clock)
    await doors.retry(world.person.pk, turn.pk, clock=world.time.clock)
    await world.worker_looks()

    assert (await world.settled(turn)).state == "waiting"
    assert len(world.simulator.requests(account.key.secret)) == 1


async def test_allowed_once_it_runs_and_asks_the_next_time(world, ledger):
    account, turn = await asks(world, call("look_up", "tides"))
    account.key.replies("The moon.").replies("", calls=[call("look_up", "winds")])

    turn = await says(world, turn, "once")

    assert (turn.state, turn.answer, turn.run) == ("done", "The moon.", 2)
    assert ledger.ran == ["look_up tides"]
    kinds = [(event.kind, event.data.get("state")) for event in await told(turn) if event.kind != "delta"]
    assert kinds == [("queued", None), ("tool", "running"), ("tool", "done"), ("attempt", None), ("done", None)]
    states = await look(lambda: list(Attempt.objects.order_by("pk").values_list("state", "partial")))
    assert states == [("rested", "Let me look. "), ("done", "")]
    again = await world.say(await look(lambda: turn.conversation), "And the winds?")
    assert (again.state, again.waits_for) == ("waiting", "tool")


async def test_always_is_kept_and_holds_for_every_call_of_that_tool_in_the_turn(world, ledger):
    account, turn = await asks(world, call("look_up", "tides"), call("look_up", "winds"), call("write_down", "it"))
    account.key.replies("Both.").replies("", calls=[call("look_up", "clouds")]).replies("And clouds.")

    waiting = await says(world, turn, "always")
    assert (waiting.state, ledger.ran, await look(ledger.permission, "look_up")) == ("waiting", [], "always")
    turn = await says(world, turn, "no")

    assert (turn.state, turn.answer, sorted(ledger.ran)) == ("done", "Both.", ["look_up tides", "look_up winds"])
    assert await look(ledger.permission, "write_down") == "ask"
    again = await world.say(await look(lambda: turn.conversation), "And clouds?")
    assert (again.state, again.answer, ledger.ran[-1]) == ("done", "And clouds.", "look_up clouds")


async def test_no_is_told_to_the_model_and_nothing_runs(world, ledger):
    """Asked for again within the turn, the answer is still no (R17)."""
    account, turn = await asks(world, call("write_down", "it"))
    account.key.replies("", calls=[call("write_down", "it")]).replies("Then not.")

    turn = await says(world, turn, "no")

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Then not.", [])
    assert await calls_of(turn) == [("write_down", "declined", "The person said no to this call.")]
    second, third = [request.body.decode() for request in world.simulator.requests(account.key.secret)][1:]
    assert "[The person said no to this call: ledger__write_down" in second
    assert "The person said no to this call." in third


async def test_what_is_allowed_always_runs_while_another_call_of_the_round_asks(world, ledger):
    await look(ledger.permits, "always", "look_up")
    account, turn = await asks(world, call("write_down", "it"), call("look_up", "tides"))
    account.key.replies("Looked, and kept.")

    assert (turn.state, ledger.ran) == ("waiting", ["look_up tides"])
    turn = await says(world, turn, "once")

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Looked, and kept.", ["look_up tides", "write_down it"])
    body = world.simulator.requests(account.key.secret)[-1].body.decode()
    assert "All that is known of tides." in body
    assert "It is kept." in body


async def test_a_task_whose_tool_asks_marks_its_chat_as_having_something_new(world, ledger):
    """Nobody is looking (R25): the question has to be found."""
    account = await look(world.account, "codex")
    account.key.replies("", calls=[call("look_up", "tides")])
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat, "Look", unattended=True)

    await look(chat.refresh_from_db)
    assert (turn.state, turn.waits_for, chat.unread) == ("waiting", "tool", True)


async def test_an_answer_that_comes_while_another_call_still_runs_is_acted_on_once_that_has_ended(world, ledger):
    """The person may be quicker than the rest of the round: nobody waits for the worker then."""
    await look(ledger.permits, "always", "wait")
    account = await look(world.account, "codex")
    account.key.replies("", calls=[call("wait", "one"), call("write_down", "it")]).replies("Both.")
    chat = await look(world.chat, "codex", tools=["ledger"])
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    await ledger.has_run()
    async for event in watch(turn.pk):
        if event is not None and event.data.get("state") == "asked":
            break

    await doors.allow(world.person.pk, turn.pk, event.data["id"], "once", clock=world.time.clock)
    await look(ledger.opens)
    turn = await world.settled(turn)

    assert (turn.state, turn.answer, turn.run, ledger.ran) == ("done", "Both.", 2, ["wait one", "write_down it"])


async def test_an_outcome_that_orders_approval_approves_nothing(world, ledger):
    """A tool's outcome is data."""
    await look(ledger.permits, "always", "shout")
    account = await look(world.account, "codex")
    account.key.replies("", calls=[call("shout", "now")]).replies("", calls=[call("write_down", "it")])
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat)

    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "tool", ["shout now"])
    assert await look(lambda: list(ToolPermission.objects.values_list("tool", "permission"))) == [("shout", "always")]


async def test_pressed_twice_and_in_two_tabs_the_first_word_stands_and_it_runs_once(world, ledger):
    account, turn = await asks(world, call("write_down", "it"))
    account.key.replies("Kept.", times=3)
    (call_id,) = await asking(turn)

    words = ("once", "once", "no", "always")
    presses = (doors.allow(world.person.pk, turn.pk, call_id, word, clock=world.time.clock) for word in words)
    await asyncio.gather(*presses)
    turn = await world.settled(turn)
    turn = await says(world, turn, "no", call_id)

    assert (turn.state, turn.answer, turn.run, ledger.ran) == ("done", "Kept.", 2, ["write_down it"])
    assert await look(ledger.permission, "write_down") == "ask"
    assert len(world.simulator.requests(account.key.secret)) == 2


def test_words_on_two_calls_from_two_processes_at_once_let_the_turn_go_on(world, ledger):
    """Each would see the other's call still ask, were they not one after the other."""
    now = world.time.now()
    facts = {"run": 1, "account": "codex", "server": "ledger", "tool": "look_up", "state": "asked", "asked_at": now}
    for _ in range(5):
        turn = Turn.objects.create(
            conversation=world.chat("codex"), text="hi", state="waiting", waits_for="tool", created_at=now
        )
        rows = [ToolCall.objects.create(turn=turn, name=str(number), digest="x", **facts) for number in range(2)]
        both = Barrier(2)

        def says(row, turn=turn, both=both):
            both.wait()
            with transaction.atomic():
                goes_on = calls.answer(world.person.pk, turn.pk, row.pk, "no", now)
            connection.close()
            return goes_on

        with ThreadPoolExecutor(2) as pool:
            went_on = list(pool.map(says, rows))

        turn.refresh_from_db()
        assert (sorted(went_on), turn.wake_at) == ([False, True], now)


async def test_another_persons_call_is_not_there(world, ledger):
    _, turn = await asks(world, call("write_down", "it"))
    mallory = await look(make_person, "mallory")
    (call_id,) = await asking(turn)

    with pytest.raises(NotHere):
        await doors.allow(mallory.pk, turn.pk, call_id, "always")
    with pytest.raises(NotHere):
        await doors.allow(world.person.pk, turn.pk, call_id + 1, "always")
    assert (await world.settled(turn)).state == "waiting"


async def test_a_turn_that_was_asked_in_a_process_that_is_gone_goes_on_in_another(world, ledger):
    """The ask is kept with the turn: answered after a restart it runs, once."""
    account = await look(world.account, "codex")
    account.key.replies("Let me look. ", calls=[call("look_up", "tides")]).replies("The moon.")
    chat = await look(world.chat, "codex", tools=["ledger"])
    accepted = await step(accept, world.person.pk, chat.pk, "What moves the tides?", world.time.now())
    process = await look(another_process.begun, accepted.turn_id)
    assert await asyncio.to_thread(process.wait, 60) == 0
    turn = await look(Turn.objects.get, pk=accepted.turn_id)
    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "tool", [])

    turn = await says(world, turn, "once")

    assert (turn.state, turn.answer, ledger.ran) == ("done", "The moon.", ["look_up tides"])


async def test_a_word_whose_process_ended_at_once_is_acted_on_by_the_worker(world, ledger):
    """The word is written down before anything is done about it."""
    account, turn = await asks(world, call("look_up", "tides"))
    account.key.replies("The moon.")
    (call_id,) = await asking(turn)
    assert await step(calls.answer, world.person.pk, turn.pk, call_id, "once", world.time.now())
    assert ledger.ran == []

    await world.worker_looks()

    turn = await world.settled(turn)
    assert (turn.state, turn.answer, ledger.ran) == ("done", "The moon.", ["look_up tides"])


async def test_a_call_of_a_process_that_was_killed_is_not_run_again(world, ledger):
    """kill -9 between a call and its outcome: it isn't known what came of it; only Try again runs it anew (R17)."""
    await look(ledger.permits, "always")
    account = await look(world.account, "codex")
    account.key.replies("Wait. ", calls=[call("wait", "one")]).replies("", calls=[call("wait", "one")]).replies(
        "Who knows."
    )
    chat = await look(world.chat, "codex", tools=["ledger"])
    accepted = await step(accept, world.person.pk, chat.pk, "Wait for it", world.time.now())
    process = await look(another_process.begun, accepted.turn_id)
    await ledger.has_run()
    process.kill()
    await asyncio.to_thread(process.wait, 60)

    await world.worker_looks()
    turn = await look(Turn.objects.get, pk=accepted.turn_id)
    assert turn.state == "interrupted"
    ((_, state, outcome),) = await calls_of(turn)
    assert (state, outcome[:35]) == ("failed", "It isn't known whether this call fi")
    await look(ledger.opens)
    await doors.answer_with(world.person.pk, turn.pk, "codex", clock=world.time.clock)
    turn = await world.settled(turn)

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Who knows.", ["wait one"])
    last = world.simulator.requests(account.key.secret)[-1].body.decode()
    assert last.count("It isn't known whether this call finished.") == 2


async def test_stopped_while_it_asks_nothing_runs_and_the_word_comes_too_late(world, ledger):
    _, turn = await asks(world, call("write_down", "it"))
    (call_id,) = await asking(turn)

    turn = await doors.stop(world.person.pk, turn.pk, clock=world.time.clock)

    assert turn.state == "stopped"
    with pytest.raises(NotHere):
        await doors.allow(world.person.pk, turn.pk, call_id, "once")
    assert ledger.ran == []


async def test_another_account_picked_while_it_asks_answers_once_the_person_has_answered(world, ledger):
    _, turn = await asks(world, call("look_up", "tides"))
    other = await look(world.account, "openai")
    other.key.replies("The moon, says another.")
    chat = await look(lambda: turn.conversation)

    await doors.choose(world.person.pk, chat.pk, "openai", "gpt-5.5", clock=world.time.clock)
    assert (await world.settled(turn)).state == "waiting"
    turn = await says(world, turn, "once")

    assert (turn.state, turn.account, turn.answer) == ("done", "openai", "The moon, says another.")
    assert ledger.ran == ["look_up tides"]
    assert "Let me look." not in world.simulator.requests(other.key.secret)[0].body.decode()


async def test_allowed_while_nobody_has_room_it_waits_for_that_and_runs_when_it_goes_on(world, ledger):
    """The yes is kept while the turn waits for a limit."""
    account, turn = await asks(world, call("look_up", "tides"))
    account.key.refuses("usage_limit", resets_in=3600).replies("The moon.")
    await world.say(await look(world.chat, "codex"), "another chat finds the limit")

    turn = await says(world, turn, "once")
    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "codex", [])
    account.key.resets_early()
    await look(Account.objects.filter(slug="codex").update, attempt_allowed_at=None)
    world.time.moves(hours=1, minutes=1)
    await world.worker_looks()
    await world.worker_looks()

    turn = await world.settled(turn)
    assert (turn.state, turn.answer, ledger.ran) == ("done", "The moon.", ["look_up tides"])
