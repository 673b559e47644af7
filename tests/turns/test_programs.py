"""The main job by the real programs: from a plan at its limit to another's, to another kind's, to a wait, and back."""

import asyncio
from types import SimpleNamespace

import pytest

from conch.db import look
from conch.engines.registry import engines_in_use
from conch.models import Account
from conch.turns.clock import SYSTEM

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
    from conch.turns import doors

    ada = await look(world.account, "codex-cli", "ada")
    ada.key.replies("one two three", pieces=3, hold_after=1)
    chat = await look(world.chat, "ada")
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    await asyncio.to_thread(world.simulator.wait_for, 1, ada.key.secret)
    await asyncio.sleep(0.5)

    await doors.stop(world.person.pk, turn.pk)

    turn = await world.settled(turn)
    assert turn.state == "stopped"
    assert turn.answer.strip() == "one"
