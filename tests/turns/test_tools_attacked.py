"""Models that mean no good, and what changes between two rounds of tools: nothing is run, sent or said in vain."""

import asyncio
from decimal import Decimal

import pytest

from conch.db import look, step
from conch.models import Account, Attempt, Conversation, Entry, MonthTotal, ToolCall, Turn
from conch.money import to_nano
from conch.turns import calls, doors, recovery, rounds
from conch.turns.errors import Stopped
from conch.turns.run import running
from tests.simulator.scripts import Call
from tests.turns.tools import Ledger, asking, call, calls_of

pytestmark = pytest.mark.django_db(transaction=True)

MODELS = {"codex": "gpt-5.5", "anthropic": "claude-sonnet-4-5", "openai": "gpt-5.5"}


@pytest.fixture
async def ledger(world, tmp_path):
    made = await look(Ledger, world.person, tmp_path)
    await look(made.permits, "always")
    return made


async def asked(world, engine, *scripted, **fields):
    """A chat with tools of its own account, which is asked for these calls and then says that it is well."""
    account = await look(world.account, engine, model=MODELS[engine])
    account.key.replies("", calls=list(scripted)).replies("Well.")
    return account, await look(world.chat, engine, model=MODELS[engine], tools=["ledger"], **fields)


def sent(world, account):
    return [request.body.decode() for request in world.simulator.requests(account.key.secret)]


def nested(depth):
    deep = "bottom"
    for _ in range(depth):
        deep = [deep]
    return deep


ODD = {
    "not a number": ({"what": "it", "n": float("nan")}, {"what": "it", "n": None}),
    "without end": ({"what": "it", "n": [1, float("inf")]}, {"what": "it", "n": [1, None]}),
    "half a character": ({"what": "it", "n\ud800": "\udfff"}, {"what": "it", "n\ufffd": "\ufffd"}),
    "NUL": ({"what": "it", "n\0": "a\0b"}, {"what": "it", "n": "ab"}),
    "a long number": ({"what": "it", "n": 10**4000}, {"what": "it", "n": 10**4000}),
}


@pytest.mark.parametrize("engine", MODELS)
@pytest.mark.parametrize("odd", ODD)
async def test_arguments_that_are_not_quite_json_are_made_so(world, ledger, odd, engine):
    """Models write NaN; a database takes none, nor does the next request."""
    given, kept = ODD[odd]
    _, chat = await asked(world, engine, Call("ledger__write_down", given))

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "Well.")
    assert await look(lambda: ToolCall.objects.get().arguments) == kept


@pytest.mark.parametrize("engine", MODELS)
async def test_a_call_whose_arguments_have_no_bottom_is_not_read_and_not_run(world, ledger, engine):
    account, chat = await asked(world, engine, Call("ledger__write_down", {"what": "it", "n": nested(900)}))

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code, ledger.ran) == ("failed", "provider_error", [])
    assert turn.failure["said"] == "the call of ledger__write_down can't be read"
    assert len(sent(world, account)) == 1


@pytest.mark.parametrize("name", ["no\0ne", "no\ud800ne", "x" * 100_000, "Ledger__write_down", "ledger__write_down\n"])
async def test_a_tool_that_was_not_offered_is_not_there_however_it_is_called(world, ledger, name):
    """Nor does an id that can't be sent again end the turn."""
    account, chat = await asked(world, "codex", Call(name, {"what": "it"}, id="i\ud800d" + "y" * 100_000))

    turn = await world.say(chat)

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Well.", [])
    assert "There is no such tool in this chat." in sent(world, account)[1]
    assert len(sent(world, account)[1]) < 20_000


@pytest.mark.parametrize("engine", ["openai", "codex"])
async def test_an_account_that_is_removed_while_a_tool_runs_is_sent_nothing_more(world, ledger, engine):
    """R36; and what had been sent, and run, isn't denied."""
    account, chat = await asked(world, engine, call("wait", "it"))
    sending = asyncio.ensure_future(world.say(chat))
    await ledger.has_run(1)

    await look(lambda: Account.objects.filter(pk=account.row.pk).update(removed_at=world.time.now()))
    await look(ledger.opens)
    turn = await sending

    assert (turn.state, turn.failure_code, turn.failure["after_tools"]) == ("failed", "no_account", True)
    assert len(sent(world, account)) == 1
    assert await look(lambda: set(MonthTotal.objects.values_list("held_nano", flat=True))) <= {0}


@pytest.mark.parametrize("engine", ["openai", "codex"])
async def test_a_run_that_another_process_took_for_dead_runs_and_sends_nothing_more(world, ledger, engine):
    """It stood still, and its turn was ended meanwhile: what its models ask for now, nobody waits for."""
    account, chat = await asked(world, engine, call("wait", "it"))
    sending = asyncio.ensure_future(world.say(chat))
    await ledger.has_run(1)

    await look(lambda: Turn.objects.update(state="interrupted", ended_at=world.time.now()))
    await look(ledger.opens)
    turn = await sending

    assert (turn.state, turn.answer, ledger.ran) == ("interrupted", "", ["wait it"])
    assert len(sent(world, account)) == 1
    with pytest.raises(Stopped):
        await step(calls.take, turn.pk, turn.run, engine, "ledger__write_down", {"what": "more"}, world.time.now())


async def test_a_stop_that_another_process_was_told_of_keeps_a_call_from_beginning(world, ledger):
    account, chat = await asked(world, "codex", call("write_down", "it"), call("wait", "it"))
    account.key.forgets().replies("", calls=[call("wait", "it")]).replies("", calls=[call("write_down", "it")])
    sending = asyncio.ensure_future(world.say(chat))
    await ledger.has_run(1)

    await look(lambda: Turn.objects.update(stop_asked=True))
    await look(ledger.opens)

    assert ((await sending).state, ledger.ran) == ("stopped", ["wait it"])


async def test_what_asked_when_its_process_ended_asks_nobody_any_more(world, ledger):
    """The turn is over, so a press would lead to nothing."""
    await look(ledger.permits, "ask")
    _, chat = await asked(world, "codex", call("write_down", "it"))
    turn = await world.say(chat)
    await look(lambda: Turn.objects.update(state="running", owner="gone", lease_until=None))

    await step(recovery.interrupt, turn.pk, world.time.now())

    assert (await world.settled(turn)).state == "interrupted"
    assert await calls_of(turn) == []


async def test_stop_takes_a_yes_back_that_nothing_came_of(world, ledger):
    """One of two calls was allowed, then Stop: another account that answers asks anew."""
    await look(ledger.permits, "ask")
    _, chat = await asked(world, "codex", call("write_down", "one"), call("write_down", "two"))
    turn = await world.say(chat)
    await doors.allow(world.person.pk, turn.pk, (await asking(turn))[0], "once", world.time.clock)
    await doors.stop(world.person.pk, turn.pk, world.time.clock)

    await doors.answer_with(world.person.pk, turn.pk, "codex", world.time.clock)
    turn = await world.settled(turn)

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Well.", [])


async def test_a_failure_after_the_person_allowed_a_call_does_not_say_that_nothing_was_done(world, ledger):
    """The call ran in this run before anybody was asked."""
    await look(ledger.permits, "ask")
    account, chat = await asked(world, "codex", call("write_down", "it"))
    turn = await world.say(chat)
    await look(lambda: Account.objects.filter(pk=account.row.pk).update(removed_at=world.time.now()))

    await doors.allow(world.person.pk, turn.pk, (await asking(turn))[0], "once", world.time.clock)
    turn = await world.settled(turn)

    assert (turn.state, turn.failure_code, ledger.ran) == ("failed", "no_account", ["write_down it"])
    assert turn.failure["after_tools"]


async def test_a_stop_before_the_next_round_was_sent_leaves_no_entry_for_it(world, ledger, monkeypatch):
    """R26: it was held, and nothing of it went out."""
    account, chat = await asked(world, "openai", call("look_up", "it"))
    really = rounds.hold_next

    def held(*given):
        found = really(*given)
        world.loop.call_soon_threadsafe(world.stops)
        return found

    world.loop = asyncio.get_running_loop()
    world.stops = lambda: [one.live.stop.set() for one in running()]
    monkeypatch.setattr(rounds, "hold_next", held)

    turn = await world.say(chat)

    assert (turn.state, len(sent(world, account))) == ("stopped", 1)
    assert await look(lambda: list(Entry.objects.values_list("state", "estimated"))) == [("settled", False)]
    assert await look(lambda: set(MonthTotal.objects.values_list("held_nano", flat=True))) == {0}


async def test_what_a_capped_key_had_written_is_no_part_of_a_plans_answer(world, ledger):
    """The chat's own plan has room again by the time that the key's next round doesn't fit the cap."""
    await world.prefers(limit_paid=True)
    plan = await look(world.account, "codex", state=Account.State.OK)
    plan.key.replies("By the plan.")
    key = await look(world.account, "openai")
    key.key.replies("Let me look. ", calls=[call("wait", "it")], output_tokens=200_000).replies("Never.")
    chat = await look(world.chat, "openai", tools=["ledger"], spend_cap_nano=to_nano(Decimal(1)))
    sending = asyncio.ensure_future(world.say(chat))
    await ledger.has_run(1)

    await look(lambda: Conversation.objects.filter(pk=chat.pk).update(account="codex", model="gpt-5.5"))
    await look(ledger.opens)
    turn = await sending

    assert (turn.state, turn.account, turn.answer) == ("done", "codex", "By the plan.")
    assert await look(lambda: list(Attempt.objects.order_by("pk").values_list("partial", flat=True))) == [
        "Let me look. ",
        "",
    ]


async def test_a_budget_that_is_taken_away_ends_the_use_of_a_key_for_which_nobody_looks(world, ledger):
    """R25, between two rounds: a background task uses a key by Automatic with a budget alone."""
    await world.prefers(limit_paid=True, month_budget_nano=to_nano(Decimal(100)))
    plan, key = await look(world.account, "codex"), await look(world.account, "openai")
    plan.key.refuses("usage_limit", resets_in=3600)
    key.key.replies("", calls=[call("wait", "it")]).replies("Never.")
    chat = await look(world.chat, "codex", tools=["ledger"])
    sending = asyncio.ensure_future(world.say(chat, unattended=True))
    await ledger.has_run(1)

    await world.prefers(month_budget_nano=None)
    await look(ledger.opens)
    turn = await sending

    assert turn.state == "waiting"
    assert len(sent(world, key)) == 1


async def test_a_yes_is_for_the_tool_that_asked_and_for_none_that_has_its_name_by_now(world, ledger):
    """Long and odd names are shortened for models: a server could have two of its tools take turns at one."""
    await look(ledger.permits, "ask")
    _, chat = await asked(world, "codex", call("write_down", "it"))
    turn = await world.say(chat)
    await look(lambda: ToolCall.objects.update(tool="write down, harmlessly"))

    await doors.allow(world.person.pk, turn.pk, (await asking(turn))[0], "once", world.time.clock)
    turn = await world.settled(turn)

    assert (turn.state, ledger.ran) == ("done", [])
    assert (await calls_of(turn))[0][1:] == ("failed", "There is no such tool in this chat.")
