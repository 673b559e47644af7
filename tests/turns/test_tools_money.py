"""What tools cost: every round of a key has its own hold, and one that doesn't fit is not sent (R17, R18, R26, R27)."""

from decimal import Decimal

import pytest

from conch.db import look
from conch.models import Attempt, Entry, MonthTotal
from conch.money import to_nano
from conch.turns import doors
from tests.turns.tools import Ledger, call

pytestmark = pytest.mark.django_db(transaction=True)

DEAR = 200_000  # tokens: more than any budget of these tests


@pytest.fixture
async def ledger(world, tmp_path):
    made = await look(Ledger, world.person, tmp_path)
    await look(made.permits, "always")
    return made


def sent(world, account):
    return [request.body.decode() for request in world.simulator.requests(account.key.secret)]


async def attempts(turn):
    rows = Attempt.objects.filter(turn=turn).order_by("pk").values_list("account", "state", "refusal_kind")
    return await look(lambda: list(rows))


async def nothing_is_held(world):
    held = await look(lambda: list(MonthTotal.objects.values_list("held_nano", flat=True)))
    entries = await look(lambda: set(Entry.objects.values_list("state", flat=True)))
    return set(held) <= {0} and entries <= {"settled"}


async def test_a_round_that_does_not_fit_the_budget_is_a_limit_reached_in_the_turn(world, ledger):
    """R17, R26: the next one goes on with what the tool gave, and it has run once."""
    await world.prefers(month_budget_nano=to_nano(Decimal(1)))
    key, plan = await look(world.account, "openai"), await look(world.account, "codex")
    key.key.replies("Let me look. ", calls=[call("look_up", "tides")], output_tokens=DEAR).replies("Never asked.")
    plan.key.replies("The moon, by the plan.")
    chat = await look(world.chat, "openai", tools=["ledger"])

    turn = await world.say(chat)

    assert (turn.state, turn.account, turn.answer) == ("done", "codex", "The moon, by the plan.")
    assert await attempts(turn) == [("openai", "refused", "money"), ("codex", "done", "")]
    assert (len(sent(world, key)), ledger.ran) == (1, ["look_up tides"])
    assert "All that is known of tides." in sent(world, plan)[0]
    assert await nothing_is_held(world)
    ((_, data),) = [line for line in await world.lines(chat) if line[0] == "limit.routed"]
    assert data["reason"] == "budget"


async def test_with_nobody_else_it_goes_on_with_a_larger_budget(world, ledger):
    """It waits for the month's end, or has failed where that is further off than a turn waits (R16)."""
    await world.prefers(month_budget_nano=to_nano(Decimal(1)))
    key = await look(world.account, "openai")
    key.key.replies("Let me look. ", calls=[call("write_down", "it")], output_tokens=DEAR).replies("It is kept.")
    chat = await look(world.chat, "openai", tools=["ledger"])
    turn = await world.say(chat)
    assert turn.state in {"waiting", "failed"}
    assert (turn.answer, len(sent(world, key))) == ("", 1)

    await world.prefers(month_budget_nano=to_nano(Decimal(100)))
    if turn.state == "waiting":
        await doors.asked_again(world.person.pk, world.time.clock)
        await world.worker_looks()
    else:
        await doors.answer_with(world.person.pk, turn.pk, "openai", clock=world.time.clock)
    turn = await world.settled(turn)

    assert (turn.state, turn.answer, ledger.ran) == ("done", "It is kept.", ["write_down it"])
    assert "It is kept." in sent(world, key)[1]


async def test_a_round_that_does_not_fit_the_chats_own_cap_holds_the_turn_which_goes_on_from_there(world, ledger):
    """R18, R26."""
    key = await look(world.account, "openai")
    key.key.replies("Let me write. ", calls=[call("write_down", "it")], output_tokens=DEAR).replies("Written.")
    chat = await look(world.chat, "openai", tools=["ledger"], spend_cap_nano=to_nano(Decimal(1)))

    turn = await world.say(chat)

    assert (turn.state, turn.answer, ledger.ran) == ("capped", "Let me write. ", ["write_down it"])
    assert await attempts(turn) == [("openai", "rested", "")]
    assert [kind for kind, _ in await world.lines(chat)] == ["limit.capped"]
    assert await nothing_is_held(world)

    await doors.raise_cap(world.person.pk, chat.pk, Decimal(100), clock=world.time.clock)
    turn = await world.settled(turn)

    assert (turn.state, turn.answer, ledger.ran) == ("done", "Written.", ["write_down it"])
    assert len(sent(world, key)) == 2


async def test_a_yes_that_is_taken_back_between_two_rounds_sends_nothing_more_to_the_key(world, ledger):
    """R27: no key is ever asked without consent."""
    plan, key = await look(world.account, "codex"), await look(world.account, "openai")
    plan.key.refuses("usage_limit", resets_in=3600)
    key.key.replies("Let me wait. ", calls=[call("wait", "one")]).replies("Paid for all the same.")
    await world.prefers(limit_paid=True)
    chat = await look(world.chat, "codex", tools=["ledger"])
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    await ledger.has_run()

    await world.prefers(limit_paid=False)
    await look(ledger.opens)
    turn = await world.settled(turn)

    assert (turn.state, len(sent(world, key))) == ("waiting", 1)
    assert await attempts(turn) == [("codex", "refused", "limit"), ("openai", "refused", "money")]
    assert await nothing_is_held(world)


async def test_a_round_that_surely_cost_nothing_leaves_no_entry_and_the_one_before_stays(world, ledger):
    """R26: the second round is refused for a limit; the first was paid for."""
    key = await look(world.account, "openai")
    key.key.replies("Look. ", calls=[call("look_up", "a")], output_tokens=50).refuses("insufficient_quota")
    chat = await look(world.chat, "openai", tools=["ledger"])

    turn = await world.say(chat)

    entries = await look(lambda: list(Entry.objects.values_list("state", "output_tokens")))
    assert entries == [("settled", 50)]
    attempt = await look(Attempt.objects.get, turn=turn)
    assert (attempt.state, attempt.cost_nano) == ("refused", await look(lambda: Entry.objects.get().cost_nano))
    assert await nothing_is_held(world)


async def test_a_stop_while_a_tool_runs_settles_what_was_used_and_holds_nothing(world, ledger):
    key = await look(world.account, "openai")
    key.key.replies("Wait. ", calls=[call("wait", "one")], output_tokens=50)
    chat = await look(world.chat, "openai", tools=["ledger"])
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    await ledger.has_run()

    await doors.stop(world.person.pk, turn.pk, clock=world.time.clock)
    turn = await world.settled(turn)

    assert turn.state == "stopped"
    assert await look(lambda: list(Entry.objects.values_list("state", "output_tokens", "estimated"))) == [
        ("settled", 50, False)
    ]
    assert turn.cost_nano == await look(lambda: Entry.objects.get().cost_nano)
    assert await nothing_is_held(world)
