"""The main job by the real programs: from a plan at its limit to another's, to another kind's, to a wait, and back."""

import asyncio
from types import SimpleNamespace

import pytest

from conch.db import look
from conch.engines.registry import engines_in_use
from conch.models import Account
from conch.turns import doors
from conch.turns.clock import SYSTEM
from conch.turns.watch import watch
from conch.turns.worker import read_meters
from tests.simulator.scripts import Call
from tests.turns.tools import Ledger, asking, calls_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_programs")]


def claude(world, slug="claude-code"):
    """Claude Code, signed in at the simulator."""
    key = world.simulator.claude(f"{slug}@home.example", world.folder / slug)
    row = Account.objects.create(
        person=world.person,
        engine="claude-code",
        slug=slug,
        label="Claude Code",
        base_url=world.simulator.base_urls["claude-code"],
        home=key.home,
        identity=f"{key.organization}:{key.email}",
        whose=key.email,
        model="sonnet",
        connected_at=SYSTEM.now(),
        known_models=[{"id": "sonnet", "label": "Sonnet 5.5"}],
    )
    return SimpleNamespace(row=row, key=key)


@pytest.fixture(autouse=True)
async def programs_end():
    yield
    await asyncio.gather(*(engine.close() for engine in engines_in_use()))


async def minutes_later(world):
    """Six minutes on, the worker reads meters and looks round."""
    world.time.moves(minutes=6)
    await read_meters(world.time.clock)
    await world.worker_looks()


def handed(seen):
    """The chat as it was handed over, without what a program says itself."""
    plain = [(role, text.rpartition("</system-reminder>")[2].strip()) for role, text in seen.messages]
    return [(role, text) for role, text in plain if role in {"user", "assistant"}]


async def test_a_chat_carries_on_with_the_next_person_then_another_kind_then_waits_and_comes_back(world):
    """R3, R12, R16, R17, R20, R31 (clis.md): each is asked once at its limit, and handed what it missed."""
    ada, bob = await look(world.account, "codex-cli", "ada"), await look(world.account, "codex-cli", "bob")
    eve = await look(claude, world)
    ada.key.replies("Ada's first.").refuses("usage_limit", resets_in=3600).replies("Ada is back.")
    bob.key.replies("Bob carries on.").refuses("usage_limit", resets_in=7200)
    eve.key.replies("Claude carries on.").refuses("session", resets_in=10800)
    chat = await look(world.chat, "ada")

    turns = [await world.say(chat, text) for text in ("One", "Two", "Three", "Four")]

    told = [(turn.state, turn.account, turn.answer) for turn in turns]
    assert told[:3] == [
        ("done", "ada", "Ada's first."),
        ("done", "bob", "Bob carries on."),
        ("done", "claude-code", "Claude carries on."),
    ]
    assert turns[3].state == "waiting"
    asked = {name: world.simulator.requests(account.key.secret) for name, account in [("ada", ada), ("bob", bob)]}
    assert (len(asked["ada"]), len(asked["bob"])) == (2, 2)
    assert [text for _, text in handed(asked["bob"][0])][-1] == "Two"
    assert [role for role, _ in handed(asked["bob"][0])] == ["user", "assistant", "user"]
    assert handed(asked["bob"][0])[1][1].endswith("Ada's first.")
    by_claude = world.simulator.requests(eve.key.secret)
    assert len(by_claude) == 2
    assert [role for role, _ in handed(by_claude[0])] == ["user", "assistant", "user", "assistant", "user"]
    assert "Bob carries on." in str(handed(by_claude[0]))

    ada.key.resets_early()
    world.time.moves(hours=1, minutes=1)
    await world.worker_looks()

    turn = await world.settled(turns[3])
    assert (turn.state, turn.account, turn.answer) == ("done", "ada", "Ada is back.")
    back = handed(world.simulator.requests(ada.key.secret)[-1])
    assert back[-1] == ("user", "Four")
    assert "Claude carries on." in str(back)
    kinds = [kind for kind, _ in await world.lines(chat)]
    assert kinds == ["limit.routed", "limit.routed", "limit.sent", "limit.returned"]


async def test_an_early_reset_is_read_by_the_program_and_the_message_that_waits_goes_out(world):
    """R16, R29: the spent account is asked nothing meanwhile, its meter every few minutes."""
    ada = await look(world.account, "codex-cli", "ada")
    ada.key.window(300, used=40, resets_in=7200).replies("Before.").refuses("usage_limit", resets_in=7200)
    ada.key.replies("After.")
    chat = await look(world.chat, "ada")
    await world.say(chat, "One")
    turn = await world.say(chat, "Two")
    assert turn.state == "waiting"
    read = len(world.simulator.all_requests(ada.key.secret, "/wham/usage"))

    await minutes_later(world)
    assert (await world.settled(turn)).state == "waiting"
    assert len(world.simulator.requests(ada.key.secret)) == 2
    assert len(world.simulator.all_requests(ada.key.secret, "/wham/usage")) == read + 1

    ada.key.resets_early()
    await minutes_later(world)
    turn = await world.settled(turn)
    assert (turn.state, turn.answer) == ("done", "After.")


async def test_a_reading_that_fails_leaves_the_figures_and_waits_longer_each_time(world):
    """R29, by the real program: a 429 of the meter is no limit, and it is left alone for a while."""
    ada = await look(world.account, "codex-cli", "ada")
    ada.key.window(300, used=40, resets_in=7200).replies("Fine.", times=9)
    await world.say(await look(world.chat, "ada"), "One")
    ada.key.usage_status = 429
    asked = []
    for _ in range(8):
        await minutes_later(world)
        asked.append(len(world.simulator.all_requests(ada.key.secret, "/wham/usage")))
    assert asked[0] == 1
    assert asked[-1] < 8  # not every time that it was due
    row = await look(Account.objects.get, slug="ada")
    assert row.read_backoff_until is not None
    assert await look(lambda: [window.used_percent for window in row.windows.all()]) == [40]
    assert (await world.say(await look(world.chat, "ada"), "Two")).state == "done"


@pytest.fixture
def ledger(world, tmp_path):
    return Ledger(world.person, tmp_path)


async def by_program(world, engine):
    """A plan by that program, and what its model calls a tool of the ledger's."""
    if engine == "claude-code":
        return await look(claude, world), "mcp__conch__ledger__look_up"
    return await look(world.account, engine), "ledger__look_up"


async def with_the_ledger(world, engine):
    """A plan by that program whose model first asks for a tool of the ledger's, and a chat that offers it."""
    account, name = await by_program(world, engine)
    account.key.replies("Let me look.", calls=[Call(name, {"what": "tides"})]).replies("The moon moves them.")
    return account, await look(world.chat, account.row.slug, model=account.row.model, tools=["ledger"])


@pytest.mark.parametrize("engine", ["claude-code", "codex-cli"])
async def test_a_program_calls_a_tool_of_the_chats_and_goes_on_with_what_it_gave(world, ledger, engine):
    """The turn's own loop, its permissions and its record, also where the program calls."""
    await look(ledger.permits, "always")
    account, chat = await with_the_ledger(world, engine)

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.answer) == ("done", "Let me look.\n\nThe moon moves them.")
    assert ledger.ran == ["look_up tides"]
    assert await calls_of(turn) == [("look_up", "done", "All that is known of tides.")]
    assert "All that is known of tides." in str(world.simulator.requests(account.key.secret)[-1].json)


@pytest.mark.parametrize("engine", ["claude-code", "codex-cli"])
async def test_a_program_whose_tool_asks_rests_until_the_person_has_answered_and_it_runs_once(world, ledger, engine):
    """R17: what had run is handed over to the process that goes on; nothing runs before the word."""
    account, chat = await with_the_ledger(world, engine)

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.waits_for, ledger.ran) == ("waiting", "tool", [])
    (call_id, *_) = await asking(turn)
    await doors.allow(world.person.pk, turn.pk, call_id, "once", clock=world.time.clock)
    turn = await world.settled(turn)
    assert turn.state == "done"
    assert turn.answer.endswith("The moon moves them.")
    assert ledger.ran == ["look_up tides"]
    asked = world.simulator.requests(account.key.secret)
    assert len(asked) == 2
    assert "All that is known of tides." in str(asked[1].json)


@pytest.mark.parametrize(("engine", "other"), [("claude-code", "codex-cli"), ("codex-cli", "claude-code")])
async def test_a_limit_after_a_programs_tool_ran_is_carried_on_by_another_program_and_the_tool_has_run_once(
    world, ledger, engine, other
):
    """R17, R31: what the tool gave is handed over in plain words; asked for again, it gives what it gave."""
    await look(ledger.permits, "always")
    first, name = await by_program(world, engine)
    second, same = await by_program(world, other)
    first.key.replies("Let me look.", calls=[Call(name, {"what": "tides"})]).refuses("usage_limit", times=9)
    second.key.replies("", calls=[Call(same, {"what": "tides"})]).replies("The moon moves them.")
    chat = await look(world.chat, first.row.slug, model=first.row.model, tools=["ledger"])

    turn = await world.say(chat, "What moves the tides?")

    assert (turn.state, turn.account, turn.answer) == ("done", second.row.slug, "The moon moves them.")
    assert ledger.ran == ["look_up tides"]
    handed_over = str(world.simulator.requests(second.key.secret)[0].json)
    assert "All that is known of tides." in handed_over
    assert "Let me look." not in handed_over
    assert [kind for kind, _ in await world.lines(chat)] == ["limit.routed"]


async def test_a_program_that_is_signed_out_is_not_at_its_limit(world, monkeypatch):
    """R36: nothing is routed past it, and the program can't renew the sign-in either."""
    monkeypatch.setenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE", f"{world.simulator.url}/oauth/token")
    ada, bob = await look(world.account, "codex-cli", "ada"), await look(world.account, "codex-cli", "bob")
    ada.key.signed_out = True
    chat = await look(world.chat, "ada")

    turn = await world.say(chat)

    assert (turn.state, turn.failure_code) == ("failed", "signed_out")
    assert world.simulator.requests(bob.key.secret) == []


async def test_a_stop_ends_the_program(world):
    """R35: what had arrived is kept."""
    ada = await look(world.account, "codex-cli", "ada")
    ada.key.replies("one two three", pieces=3, hold_after=1)
    chat = await look(world.chat, "ada")
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    async for event in watch(turn.pk):
        if event is not None and event.kind == "delta":
            break

    await doors.stop(world.person.pk, turn.pk)

    turn = await world.settled(turn)
    assert turn.state == "stopped"
    assert turn.answer.strip() == "one"
