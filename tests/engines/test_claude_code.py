"""Claude Code by the real program, unmodified (requirements/clis.txt), against the simulated Anthropic on loopback."""

import asyncio
import json
import os
import signal
import time
from base64 import b64decode
from dataclasses import replace

import pytest

from conch.engines import cli_process_ready
from conch.engines.base import (
    Access,
    Done,
    EngineFault,
    Image,
    LimitReached,
    Message,
    Rejected,
    Request,
    Room,
    SignedOut,
    Text,
    Throttled,
    Unreachable,
    Usage,
)
from conch.engines.claude_code import ClaudeCode
from tests.engines.hostile import EVIL, spoil_claude
from tests.engines.provider import heard, heard_until_refused, text_of
from tests.engines.test_programs_process import gone

pytestmark = pytest.mark.usefixtures("real_programs", "no_spares")
PNG = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@pytest.fixture
def bob(simulator, tmp_path):
    return simulator.claude("bob@home.example", tmp_path / "bob")


@pytest.fixture
async def claude():
    engine = ClaudeCode()
    yield engine
    await engine.close()


@pytest.fixture
def access(simulator, bob):
    return Access("claude-code", simulator.url, home=bob.home)


def ask(*texts, model="sonnet", **more):
    texts = texts or ("Hello",)
    said = tuple(Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts))
    return Request(model, said, **more)


def chat_of(seen):
    """What arrived of the chat: without what the program says itself."""
    return [
        (role, text.rpartition("</system-reminder>")[2].strip()) for role, text in seen.messages if role != "system"
    ]


async def test_an_answer_streams_with_the_chat_before_it(claude, access, simulator, bob):
    """R31: as plain history, in its order; the plan's windows and the tokens come with it."""
    bob.window(300, used=42, resets_in=3600).window(10080, used=10, resets_in=90000)
    bob.replies("Good morning, Bob.", pieces=4)
    request = ask("First?", "Yes.", "Second?", "No.", "Third?", instructions="Be brief.")
    events = await heard(claude.reply(access, request))
    assert text_of(events) == "Good morning, Bob."
    assert len([event for event in events if isinstance(event, Text)]) == 4
    windows = [event for event in events if isinstance(event, Room)][-1].windows
    assert [(each.name, each.used_percent) for each in windows] == [("5-hour", 42), ("weekly", 10)]
    usage = [event for event in events if isinstance(event, Usage)][-1]
    assert (usage.cost, usage.extra, usage.input_tokens > 0) == (None, False, True)
    assert isinstance(events[-1], Done)
    asked = simulator.requests(bob.secret)
    assert len(asked) == 1
    assert chat_of(asked[0]) == [
        ("user", "First?"),
        ("assistant", "Yes."),
        ("user", "Second?"),
        ("assistant", "No."),
        ("user", "Third?"),
    ]
    assert asked[0].asked.tools == ()
    assert "Be brief." in asked[0].asked.instructions


@pytest.mark.parametrize(("scenario", "hours", "window"), [("session", 4, "5-hour"), ("weekly", 72, "weekly")])
async def test_a_full_window_is_a_limit_until_its_reset_and_asked_once(
    claude, access, simulator, bob, scenario, hours, window
):
    """R17, R30."""
    bob.refuses(scenario, resets_in=hours * 3600)
    said, error = await heard_until_refused(claude.reply(access, ask()))
    assert said == []
    assert isinstance(error, LimitReached)
    assert (error.scope, error.model, error.accepted) == ("limit", "", False)
    assert abs(error.until.timestamp() - simulator.clock.now() - hours * 3600) < 60
    assert [(each.name, each.used_percent) for each in error.room.windows] == [(window, 100)]
    assert len(simulator.requests(bob.secret)) == 1


async def test_a_throttle_is_a_pause(claude, access, simulator, bob):
    """R8."""
    bob.refuses("throttle")
    _, error = await heard_until_refused(claude.reply(access, ask()))
    assert isinstance(error, Throttled)
    assert not error.accepted
    assert len(simulator.requests(bob.secret)) == 1


async def test_an_answer_that_breaks_off_is_cut_and_not_asked_for_again(claude, access, simulator, bob):
    """R30, R34: the program would ask once more by itself, unseen."""
    bob.stops_short("Half an answer", pieces=2)
    said, error = await heard_until_refused(claude.reply(access, ask()))
    assert text_of(said) == "Half an answer"
    assert isinstance(error, EngineFault)
    assert error.cut
    assert error.accepted
    assert len(simulator.requests(bob.secret)) == 1


async def test_a_sign_in_that_is_not_accepted_is_signed_out(claude, access, bob):
    """R36."""
    bob.signed_out = True
    _, error = await heard_until_refused(claude.reply(access, ask()))
    assert isinstance(error, SignedOut)


async def test_nobody_there_took_nothing(claude, access):
    """R19."""
    _, error = await heard_until_refused(claude.reply(replace(access, base_url="http://127.0.0.1:1"), ask()))
    assert isinstance(error, Unreachable)
    assert error.host == "127.0.0.1"


async def test_whose_it_is_and_what_it_can_answer_with(claude, access, simulator):
    """R1: the organisation and the e-mail; nothing is asked of a model."""
    found = await claude.identify(access)
    assert found.identity == "org-bob-at-home-example:bob@home.example"
    assert (found.whose, found.plan) == ("bob@home.example", "pro")
    models = await claude.models(access)
    assert models[0].id.startswith(claude.preferred_models[0])
    assert {"opus", "sonnet", "haiku"} <= {model.id for model in models}
    # Only a sign-in with the scope user:profile may read its windows ahead (clis.md 3.2).
    assert await claude.read_room(access) is None
    assert simulator.requests() == []


async def test_a_home_without_a_sign_in_is_signed_out(claude, access, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SignedOut) as raised:
        await claude.identify(replace(access, home=str(tmp_path / "empty")))
    assert "claude auth login" in raised.value.said


async def test_a_home_that_changed_hands_is_signed_out(claude, access, simulator, bob):
    """R36: an account is one sign-in's."""
    other = replace(access, identity="org-other:ada@work.example")
    _, error = await heard_until_refused(claude.reply(other, ask()))
    assert isinstance(error, SignedOut)
    assert simulator.requests(bob.secret) == []


async def test_keys_of_the_environment_pay_nothing(claude, access, simulator, bob, monkeypatch):
    """R34: in -p mode a key found there would win over the plan without asking."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-ant-api03-env")
    bob.replies("By the plan.")
    assert text_of(await heard(claude.reply(access, ask()))) == "By the plan."
    assert {seen.key for seen in simulator.all_requests()} == {bob.secret}


async def test_a_program_that_reports_a_key_is_not_asked(claude, access, simulator, bob, tmp_path):
    """R34: a key that its own sign-in page has put beside the plan's sign-in."""
    file = tmp_path / "bob" / ".claude.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"primaryApiKey": "sk-ant-api03-managed"}))
    _, error = await heard_until_refused(claude.reply(access, ask()))
    assert isinstance(error, Rejected)
    assert (error.reason, error.accepted) == ("paying", False)
    assert simulator.requests() == []


async def test_a_hostile_home_changes_nothing(claude, access, simulator, bob, tmp_path, monkeypatch):
    """design.md, Engines: no hooks, memory, MCP servers, project files or settings of the person's own."""
    above, ran = tmp_path / "above", tmp_path / "ran"
    above.mkdir()
    monkeypatch.setenv("TMPDIR", str(above))
    monkeypatch.setattr("tempfile.tempdir", None)
    home = tmp_path / "bob"
    spoil_claude(home, [above, tmp_path / "person"], ran)
    bob.replies("As ever.")
    assert text_of(await heard(claude.reply(access, ask("Hi", "Hello.", "And?")))) == "As ever."
    await claude.close()
    assert not ran.exists()
    asked = simulator.requests()
    assert [seen.key for seen in asked] == [bob.secret]
    assert EVIL not in json.dumps(asked[0].json)
    assert asked[0].asked.tools == ()
    assert "sonnet" in asked[0].model


async def test_a_secret_of_one_chat_is_in_no_request_of_another(claude, access, simulator, bob):
    """design.md, Engines."""
    bob.replies("Noted.", times=9)
    await heard(claude.reply(access, ask("The word is xyzzy.", conversation="1")))
    await asyncio.gather(
        heard(claude.reply(access, ask("The word is plugh.", conversation="1"))),
        heard(claude.reply(access, ask("Which word?", "None.", "Sure?", conversation="2"))),
    )
    others = [seen for seen in simulator.requests(bob.secret) if "Which word?" in str(seen.json)]
    assert len(others) == 1
    assert "xyzzy" not in str(others[0].json)
    assert "plugh" not in str(others[0].json)


async def test_another_chats_message_finds_a_program_ready_that_has_had_no_turn(
    claude, access, simulator, bob, monkeypatch
):
    """One only, ended with the engine."""
    monkeypatch.setattr(cli_process_ready, "SPARES", 1)
    bob.replies("Noted.", times=3)
    await heard(claude.reply(access, ask("The word is xyzzy.")))
    await asyncio.gather(*claude._ready._starting.values())
    (spare,) = claude._ready._idle
    assert spare.process.runs
    await heard(claude.reply(access, ask("Which word?")))
    assert not spare.process.runs
    assert "xyzzy" not in str(simulator.requests(bob.secret)[1].json)
    await claude.close()
    assert claude._ready._idle == []


async def test_leaving_ends_the_program_and_stops_the_provider(claude, access, simulator, bob):
    bob.replies("one two three", pieces=3, hold_after=1)
    reply = claude.reply(access, ask())
    while not isinstance(await anext(reply), Text):
        pass
    (process,) = claude._open
    pid = process.popen.pid
    await reply.aclose()
    assert await asyncio.to_thread(gone, pid)
    deadline = time.monotonic() + 60
    while simulator.requests(bob.secret)[-1].outcome != "left":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_program_that_is_killed_in_mid_answer_is_a_cut(claude, access, bob):
    """R30: what arrived is kept."""
    bob.replies("one two three", pieces=3, hold_after=1)
    reply = claude.reply(access, ask())
    while not isinstance(first := await anext(reply), Text):
        pass
    (process,) = claude._open
    os.killpg(process.popen.pid, signal.SIGKILL)
    said, error = await heard_until_refused(reply)
    assert text_of([first, *said]).strip() == "one"
    assert isinstance(error, EngineFault)
    assert error.cut


async def test_pictures_arrive(claude, access, simulator, bob):
    """R9."""
    picture = Image("image/png", PNG)
    await heard(claude.reply(access, Request("sonnet", (Message("user", "What is this?", images=(picture,)),))))
    assert simulator.requests(bob.secret)[0].asked.images == 1
