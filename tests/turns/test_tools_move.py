"""A limit between two tool calls: who goes on gets what tools gave in plain words; no call runs twice (R17, R31)."""

import pytest

from conch.db import look
from conch.engines import local_chosen, local_models
from conch.models import Attempt, Entry
from conch.turns import doors
from conch.turns.watch import watch
from routing import known
from tests.turns.tools import Ledger, call

pytestmark = pytest.mark.django_db(transaction=True)

# What one provider's wire says of a call, and another's must never see.
FOREIGN = (
    "call_theirs",
    "function_call",
    "tool_use",
    "toolu_",
    "tool_calls",
    "tool_call_id",
    "secret thought",
    "signature",
)


@pytest.fixture
async def ledger(world, tmp_path):
    made = await look(Ledger, world.person, tmp_path)
    await look(made.permits, "always")
    return made


def sent(world, account):
    return [request.body.decode() for request in world.simulator.requests(account.key.secret)]


async def attempts(turn):
    rows = Attempt.objects.filter(turn=turn).order_by("pk").values_list("account", "state", "partial", "refusal_kind")
    return await look(lambda: list(rows))


async def able(world, engine, slug=None, *, tools=True, **fields):
    """An account whose model can, or can't, run tools."""
    model = {"anthropic": "claude-sonnet-4-5"}.get(engine, "gpt-5.5")
    listed = [{"id": model, "label": "Its model", "tools": tools}]
    return await look(world.account, engine, slug, model=model, known_models=listed, **fields)


@pytest.mark.parametrize("engine", ["anthropic", "openai", "codex"])
async def test_a_plan_at_its_limit_between_two_tool_calls_is_carried_on_elsewhere_and_each_tool_has_run_once(
    world, ledger, engine
):
    """FBK-08: the second asks for the same call, and gets the first's outcome; what had streamed is not the answer."""
    plan = await look(world.account, "codex")
    plan.key.replies("Let me look. ", calls=[call("look_up", "tides", id="call_theirs")], thinking="secret thought")
    plan.key.refuses("usage_limit")
    other = await able(world, engine, f"{engine}-2", secret="sk-other")
    other.key.replies("", calls=[call("look_up", "tides"), call("write_down", "the moon")]).replies("It is the moon.")
    await world.prefers(limit_fallback=f"{engine}-2")
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.account, turn.answer) == ("done", f"{engine}-2", "It is the moon.")
    assert ledger.ran == ["look_up tides", "write_down the moon"]
    assert await attempts(turn) == [
        ("codex", "refused", "Let me look. ", "limit"),
        (f"{engine}-2", "done", "", ""),
    ]
    first, second = sent(world, other)
    assert not [word for word in FOREIGN if word in first]
    assert "All that is known of tides." in first
    assert "Let me look." not in first + second
    assert [kind for kind, _ in await world.lines(chat)] == ["limit.routed"]
    assert "discard" in [event.kind async for event in watch(turn.pk) if event is not None]


async def test_after_a_wait_for_the_limit_the_same_account_goes_on_with_what_tools_gave(world, ledger):
    """R17: also after a wait; the model that asks again gets the outcome that it had."""
    plan = await look(world.account, "codex")
    plan.key.replies("Let me look. ", calls=[call("write_down", "it")]).refuses("usage_limit", resets_in=3600)
    plan.key.replies("", calls=[call("write_down", "it")]).replies("It is kept.")
    chat = await look(world.chat, "codex", tools=["ledger"])
    turn = await world.say(chat)
    assert (turn.state, turn.waits_for) == ("waiting", "codex")

    plan.key.resets_early()
    world.time.moves(hours=1, minutes=1)
    await world.worker_looks()

    turn = await world.settled(turn)
    assert (turn.state, turn.answer, ledger.ran) == ("done", "It is kept.", ["write_down it"])


async def test_who_cannot_run_tools_is_passed_over_and_the_wait_says_so(world, ledger):
    """R9, R10: it has room, but can't run the tools this chat uses; nothing is sent to it."""
    plan = await look(world.account, "codex")
    plan.key.refuses("usage_limit", resets_in=3600)
    other = await able(world, "codex", "codex-2", tools=False)
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat)

    assert turn.state == "waiting"
    assert sent(world, other) == []
    ((kind, data),) = await world.lines(chat)
    assert (kind, data["why"], data["could"]["slug"]) == ("limit.waiting", "tools", "codex-2")
    last = [event async for event in watch(turn.pk) if event is not None][-1]
    assert "has room, but can’t run the tools this chat uses. This chat waits until" in last.data["text"]


async def test_the_first_in_order_that_can_run_tools_carries_on(world, ledger):
    """R9, R12: an order is gone through as ever; without tools the first would have answered."""
    plan = await look(world.account, "codex")
    plan.key.refuses("usage_limit")
    unable = await able(world, "codex", "codex-2", tools=False)
    able_one = await able(world, "codex", "codex-3")
    able_one.key.replies("I can.", times=2)
    unable.key.replies("Without tools I can.")
    with_tools = await look(world.chat, "codex", tools=["ledger"])
    without = await look(world.chat, "codex")

    assert (await world.say(with_tools)).account == "codex-3"
    assert (await world.say(without)).account == "codex-2"


async def test_the_chats_own_account_that_cannot_run_tools_says_so_before_anything_is_sent(world, ledger):
    """R11: nothing is switched; who could is offered."""
    own = await able(world, "codex", tools=False)
    await able(world, "codex", "codex-2")
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code, sent(world, own)) == ("failed", "cannot_carry_tools", [])
    assert [offer["slug"] for offer in turn.failure["offers"]] == ["codex-2"]
    last = [event async for event in watch(turn.pk) if event is not None][-1]
    assert last.data["text"].endswith(" can’t run the tools this chat uses. Nothing was sent.")


async def test_tools_turned_off_let_a_waiting_message_go_out(world, ledger):
    """R16: another look at the route at once, once the chat needs less."""
    plan = await look(world.account, "codex")
    plan.key.refuses("usage_limit", resets_in=3600)
    other = await able(world, "codex", "codex-2", tools=False)
    other.key.replies("Without tools.")
    chat = await look(world.chat, "codex", tools=["ledger"])
    turn = await world.say(chat)
    assert turn.state == "waiting"

    await look(type(chat).objects.filter(pk=chat.pk).update, tools=[])
    await doors.asked_again(world.person.pk, world.time.clock)
    await world.worker_looks()

    turn = await world.settled(turn)
    assert (turn.state, turn.account, turn.answer) == ("done", "codex-2", "Without tools.")


async def test_a_move_to_a_key_holds_and_books_each_of_its_rounds(world, ledger):
    """R26, R27: two rounds of the key are two entries of one attempt, each by the yes that brought it there."""
    plan = await look(world.account, "codex")
    plan.key.refuses("usage_limit")
    key = await able(world, "openai")
    key.key.replies("", calls=[call("look_up", "tides")], output_tokens=100).replies("The moon.", output_tokens=200)
    await world.prefers(limit_fallback="openai")
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat)

    entries = await look(
        lambda: list(Entry.objects.order_by("pk").values("state", "consent", "output_tokens", "cost_nano"))
    )
    assert [(each["state"], each["consent"], each["output_tokens"]) for each in entries] == [
        ("settled", "named", 100),
        ("settled", "named", 200),
    ]
    assert turn.cost_nano == sum(each["cost_nano"] for each in entries)
    assert turn.output_tokens == 300
    attempt = await look(lambda: Attempt.objects.order_by("-pk")[0])
    assert (attempt.cost_nano, attempt.output_tokens) == (turn.cost_nano, 300)
    await look(chat.refresh_from_db)
    assert (chat.spent_nano, chat.held_nano) == (turn.cost_nano, 0)


@pytest.fixture
def server_here(monkeypatch, simulator):
    """A server of the person's own on this computer, which the simulator speaks for."""
    monkeypatch.setenv("CONCH_LOCAL_URL", simulator.base_urls["openai"])
    monkeypatch.setenv("CONCH_LOCAL_KEY", "sk-here")
    monkeypatch.setenv("CONCH_LOCAL_MODEL", "gpt-5.5")
    known.forget_local()
    yield simulator.key("sk-here")
    known.forget_local()


async def test_a_local_server_runs_tools_as_the_others_do(world, ledger, server_here):
    server_here.replies("Let me look. ", calls=[call("look_up", "tides")]).replies("The moon.")
    chat = await look(world.chat, "local", tools=["ledger"])

    turn = await world.say(chat)

    assert (turn.state, turn.account, turn.answer) == ("done", "local", "Let me look. \n\nThe moon.")
    assert ledger.ran == ["look_up tides"]


async def test_the_model_on_this_computer_goes_on_after_a_limit_between_two_calls(world, ledger, server_here):
    """R15: it is last, and can run the tools this chat uses."""
    plan = await look(world.account, "codex")
    plan.key.replies("Look. ", calls=[call("look_up", "tides")]).refuses("usage_limit")
    server_here.replies("", calls=[call("look_up", "tides")]).replies("The moon, from here.")
    chat = await look(world.chat, "codex", tools=["ledger"])

    turn = await world.say(chat)

    assert (turn.state, turn.account, turn.answer) == ("done", "local", "The moon, from here.")
    assert ledger.ran == ["look_up tides"]


async def test_the_model_on_this_computer_that_cannot_run_tools_is_not_asked(
    world, ledger, simulator, monkeypatch, tmp_path
):
    """R15: only if it can carry the chat; its server said that it can't when it was chosen."""
    here = tmp_path / "data"
    here.mkdir(mode=0o700)
    monkeypatch.setattr(local_models.configuration, "data_folder", lambda: here)
    local_chosen.choose(here, local_chosen.Chosen(simulator.base_urls["openai"], "gpt-5.5", tools=False))
    known.forget_local()
    plan = await look(world.account, "codex")
    plan.key.refuses("usage_limit", resets_in=3600)
    simulator.key("none").replies("Here, without tools.")
    await world.prefers(offline_fallback=True)

    with_tools = await world.say(await look(world.chat, "codex", tools=["ledger"]))
    without = await world.say(await look(world.chat, "codex"))
    known.forget_local()

    assert (with_tools.state, without.account) == ("waiting", "local")
