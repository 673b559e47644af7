"""A chat with tools, from a message to its answer: real engines over HTTP, a real tool server, a real database."""

import asyncio

import pytest

from conch.db import look
from conch.models import Attempt, ToolCall, ToolServer
from conch.turns import doors, toolbox
from conch.turns.clock import Clock
from conch.turns.watch import watch
from tests.simulator.scripts import Call
from tests.turns.tools import Ledger, call, calls_of

pytestmark = pytest.mark.django_db(transaction=True)

MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5.5", "openrouter": "openai/gpt-5.5", "codex": "gpt-5.5"}


@pytest.fixture
def ledger(world, tmp_path):
    return Ledger(world.person, tmp_path)


@pytest.fixture
async def allowed(ledger):
    """The same, every tool of it allowed always."""
    await look(ledger.permits, "always")
    return ledger


def sent(world, account):
    """The bodies of all requests with that account, as text."""
    return [request.body.decode() for request in world.simulator.requests(account.key.secret)]


async def told(turn):
    """The events of the turn's latest run, told again."""
    return [event async for event in watch(turn.pk) if event is not None]


async def with_tools(world, engine="codex"):
    """An account of that engine, and a chat of its own with the ledger's tools."""
    account = await look(world.account, engine, model=MODELS[engine])
    return account, await look(world.chat, engine, model=MODELS[engine], tools=["ledger"])


@pytest.mark.parametrize("engine", MODELS)
async def test_a_tool_that_is_asked_for_runs_and_the_answer_goes_on_with_what_it_gave(world, allowed, engine):
    """The loop is one for every engine with an API: text before a call stays, and each round stands apart."""
    account, chat = await with_tools(world, engine)
    account.key.replies("Let me look. ", calls=[call("look_up", "tides")]).replies("The moon moves them.")

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.answer) == ("done", "Let me look. \n\nThe moon moves them.")
    assert allowed.ran == ["look_up tides"]
    first, second = sent(world, account)
    assert "ledger__look_up" in first
    assert "All that is known of tides." in second
    assert await calls_of(turn) == [("look_up", "done", "All that is known of tides.")]
    tools = [event.data for event in await told(turn) if event.kind == "tool"]
    assert [each["state"] for each in tools] == ["running", "done"]
    assert tools[1] | {"seconds": 0} == {
        "id": tools[1]["id"],
        "name": "ledger__look_up",
        "title": "look up in Ledger",
        "account": engine,
        "forgotten": False,
        "state": "done",
        "arguments": {"what": "tides"},
        "outcome": "All that is known of tides.",
        "seconds": 0,
    }
    assert "".join(event.data["text"] for event in await told(turn) if event.kind == "delta") == turn.answer


async def test_calls_of_one_round_run_side_by_side(world, allowed):
    """Both wait for the same gate: had one come after the other, the second would never have begun."""
    account, chat = await with_tools(world)
    account.key.replies("", calls=[call("wait", "one"), call("wait", "two")]).replies("Both are there.")

    sending = asyncio.ensure_future(world.say(chat))
    await allowed.has_run(2)
    await look(allowed.opens)
    turn = await sending

    assert sorted(allowed.ran) == ["wait one", "wait two"]
    assert (turn.state, turn.answer) == ("done", "Both are there.")
    assert sorted(outcome for _, _, outcome in await calls_of(turn)) == ["one has passed.", "two has passed."]


async def test_the_same_call_again_gets_the_outcome_it_had_and_does_not_run_again(world, allowed):
    """R17: in the same round, in a later one, with its arguments in another order, or 1 where 1.0 was."""
    account, chat = await with_tools(world)
    account.key.replies("", calls=[call("write_down", "it"), call("write_down", "it")])
    account.key.replies("", calls=[call("write_down", "it")]).replies("Kept.")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "Kept.")
    assert allowed.ran == ["write_down it"]
    assert sent(world, account)[-1].count("It is kept.") == 3


async def test_only_the_persons_try_again_runs_a_call_again(world, allowed):
    """R17; the calls of before stay with the turn, marked."""
    account, chat = await with_tools(world)
    account.key.replies("", calls=[call("write_down", "it")]).replies("Kept.")
    account.key.replies("", calls=[call("write_down", "it")]).replies("Kept anew.")
    turn = await world.say(chat)

    await doors.retry(world.person.pk, turn.pk, clock=world.time.clock)
    turn = await world.settled(turn)

    assert turn.answer == "Kept anew."
    assert allowed.ran == ["write_down it"] * 2
    assert await look(lambda: list(ToolCall.objects.order_by("pk").values_list("forgotten", flat=True))) == [
        True,
        False,
    ]
    assert "It is kept." not in sent(world, account)[2]


async def test_a_tool_that_fails_is_an_outcome_and_the_answer_goes_on(world, allowed):
    account, chat = await with_tools(world, "anthropic")
    account.key.replies("", calls=[call("fail", "flying")]).replies("It could not be done.")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "It could not be done.")
    ((tool, state, outcome),) = await calls_of(turn)
    assert (tool, state) == ("fail", "failed")
    assert outcome == "Error executing tool fail"
    assert '"is_error":true' in sent(world, account)[-1].replace(" ", "")


@pytest.mark.parametrize("engine", ["openai", "openrouter", "anthropic"])
async def test_odd_arguments_are_kept_and_sent_on_as_json(world, allowed, engine):
    """INP-01 and more: lone surrogates, NUL and numbers that JSON hasn't spoil neither the chat nor the database."""
    account, chat = await with_tools(world, engine)
    odd = {"what": "a\0b \ud83d 👩‍👩‍👧", "size": float("nan"), "most": float("inf"), "deep": [{"x": [1.0]}]}
    account.key.replies("", calls=[Call("ledger__look_up", odd), Call("ledger__look_up", {})]).replies("Odd.")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "Odd.")
    kept = await look(lambda: list(ToolCall.objects.order_by("pk").values_list("arguments", "state")))
    what = "ab \ufffd 👩‍👩‍👧"
    assert [each[0] for each in kept] == [{"what": what, "size": None, "most": None, "deep": [{"x": [1.0]}]}, {}]
    assert kept[1][1] == "failed"
    last = await world.say(chat, "And now?")
    assert last.state != "failed"


async def test_a_tool_that_is_never_to_run_is_not_offered_and_does_not_run_when_it_is_asked_for(world, allowed):
    account, chat = await with_tools(world)
    await look(allowed.permits, "never", "write_down")
    account.key.replies("", calls=[call("write_down", "it"), call("nothing", "x")]).replies("I can't.")

    turn = await world.say(chat)

    first, second = sent(world, account)
    assert "ledger__write_down" not in first
    assert "ledger__look_up" in first
    assert second.count("There is no such tool in this chat.") == 2
    assert (turn.answer, allowed.ran, await calls_of(turn)) == ("I can't.", [], [])


async def test_a_chat_without_tools_offers_none_and_runs_none(world, allowed):
    """A model that asks for one all the same is told so."""
    account = await look(world.account, "codex")
    account.key.replies("", calls=[call("look_up", "tides")]).replies("Then without.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat)

    assert "ledger__" not in sent(world, account)[0]
    assert (turn.answer, allowed.ran) == ("Then without.", [])


async def test_a_server_that_is_gone_leaves_a_chat_without_its_tools(world, allowed):
    account, chat = await with_tools(world)
    account.key.replies("Without tools.")
    await look(lambda: ToolServer.objects.update(removed_at=world.time.now()))

    turn = await world.say(chat)

    assert turn.answer == "Without tools."
    assert "ledger__" not in sent(world, account)[0]


async def test_a_model_that_asks_for_tools_without_an_end_is_told_so_and_then_ended(world, allowed, monkeypatch):
    """Bounded rounds: those beyond run nothing, and the turn says why it ended, with what had arrived."""
    monkeypatch.setattr(toolbox, "MOST_ROUNDS", 3)
    account, chat = await with_tools(world)
    for number in range(9):
        account.key.replies(f"Round {number}.", calls=[call("look_up", str(number))])

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code) == ("failed", "too_many_calls")
    assert len(allowed.ran) == 3
    assert toolbox.NO_MORE in sent(world, account)[-1]
    assert turn.answer.startswith("Round 0.\n\nRound 1.")
    assert (await told(turn))[-1].data["text"].startswith("Codex asked for tools again and again")


async def test_a_model_that_heeds_being_told_answers(world, allowed, monkeypatch):
    monkeypatch.setattr(toolbox, "MOST_ROUNDS", 1)
    account, chat = await with_tools(world)
    account.key.replies("", calls=[call("look_up", "a")]).replies("", calls=[call("look_up", "b")]).replies("So be it.")

    turn = await world.say(chat)

    assert (turn.state, turn.answer, allowed.ran) == ("done", "So be it.", ["look_up a"])


async def test_tools_that_take_too_long_altogether_run_no_more(world, allowed):
    """Bounded time, by Conch's clock."""
    account, chat = await with_tools(world)
    account.key.replies("", calls=[call("look_up", "a")]).refuses("throttle", retry_after=30)
    account.key.replies("", calls=[call("look_up", "b")]).replies("Done with it.")

    async def long(_seconds):
        """The pause that the provider asks for takes as long as all tools together may."""
        world.time.moves(seconds=toolbox.MOST_TIME.total_seconds())

    world.time.clock = Clock(world.time.now, long)

    turn = await world.say(chat)

    assert (turn.state, turn.answer, allowed.ran) == ("done", "Done with it.", ["look_up a"])


async def test_a_stop_while_a_tool_runs_ends_the_turn_and_nobody_knows_what_came_of_the_call(world, allowed):
    account, chat = await with_tools(world)
    account.key.replies("Wait. ", calls=[call("wait", "one")])
    sending = asyncio.ensure_future(world.say(chat))
    await allowed.has_run()
    turn_id = await look(lambda: ToolCall.objects.values_list("turn", flat=True).get())

    await doors.stop(world.person.pk, turn_id, clock=world.time.clock)
    turn = await sending

    assert (turn.state, turn.answer) == ("stopped", "Wait. ")
    ((_, state, outcome),) = await calls_of(turn)
    assert (state, outcome[:16]) == ("failed", "It isn't known w")
    assert len(sent(world, account)) == 1


async def test_a_pause_between_two_rounds_is_waited_for_on_the_same_account(world, allowed):
    """R8 in the middle of a loop: what a tool gave is not lost, and the attempt is one."""
    account, chat = await with_tools(world)
    account.key.replies("Look. ", calls=[call("look_up", "a")]).refuses("throttle", retry_after=5).replies("There.")

    turn = await world.say(chat)

    assert (turn.state, turn.answer) == ("done", "Look. \n\nThere.")
    assert allowed.ran == ["look_up a"]
    assert await look(Attempt.objects.count) == 1


async def test_a_failure_between_two_rounds_ends_the_turn_and_says_that_tools_had_run(world, allowed):
    """Nothing is said to have not been sent that was."""
    account, chat = await with_tools(world)
    account.key.replies("Look. ", calls=[call("look_up", "a")]).refuses("overloaded", times=9)

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code, turn.answer) == ("failed", "overloaded", "Look. ")
    assert (await told(turn))[-1].data["text"].endswith("Tools had run for it already.")


async def test_a_later_message_is_asked_with_what_tools_gave_before_in_plain_words(world, allowed):
    """R31: the outcome of tools is part of the chat, without ids of the provider's."""
    account, chat = await with_tools(world)
    account.key.replies("", calls=[call("look_up", "tides", id="call_theirs")]).replies("The moon.").replies(
        "So it is."
    )
    await world.say(chat, "What moves the tides?")

    await world.say(chat, "Really?")

    last = sent(world, account)[-1]
    assert last.count("All that is known of tides.") == 1
    assert "call_theirs" not in last
    assert "function_call" not in last
