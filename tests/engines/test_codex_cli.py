"""Codex CLI by the real program, unmodified (requirements/clis.txt), against the simulated ChatGPT on loopback."""

import asyncio
import json
import os
import signal
import time
from dataclasses import replace

import pytest

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
from conch.engines.codex import Codex
from conch.engines.codex_cli import CodexCli
from conch.engines.codex_cli_server import Home
from tests.engines.hostile import EVIL, spoil_codex
from tests.engines.provider import heard, heard_until_refused, text_of
from tests.engines.test_claude_code import PNG
from tests.engines.test_programs_process import gone

pytestmark = pytest.mark.usefixtures("real_programs", "no_spares")


@pytest.fixture
def ada(simulator, tmp_path):
    return simulator.codex("ada@work.example", tmp_path / "ada")


@pytest.fixture
async def codex():
    engine = CodexCli()
    yield engine
    await engine.close()


@pytest.fixture
def access(simulator, ada, monkeypatch):
    monkeypatch.setenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE", f"{simulator.url}/oauth/token")
    return Access("codex-cli", f"{simulator.url}/backend-api", home=ada.home)


def ask(*texts, **more):
    texts = texts or ("Hello",)
    said = tuple(Message("assistant" if place % 2 else "user", text) for place, text in enumerate(texts))
    return Request("gpt-5.5", said, **more)


async def test_an_answer_streams_with_the_chat_before_it(codex, access, simulator, ada):
    """R31: natively, in its order; the plan's windows and the tokens come with it."""
    ada.window(300, used=42, resets_in=3600).window(10080, used=10, resets_in=90000)
    ada.replies("Good morning, Ada.", pieces=4, input_tokens=200, output_tokens=50)
    events = await heard(
        codex.reply(access, ask("First?", "Yes.", "Second?", "No.", "Third?", instructions="Be brief."))
    )
    assert text_of(events) == "Good morning, Ada."
    assert len([event for event in events if isinstance(event, Text)]) == 4
    windows = [event for event in events if isinstance(event, Room)][-1].windows
    assert [(each.name, each.used_percent) for each in windows] == [("5-hour", 42), ("weekly", 10)]
    assert [event for event in events if isinstance(event, Usage)][-1] == Usage(200, 0, 0, 50)
    assert events[-1] == Done("", "gpt-5.5")
    asked = simulator.requests(ada.secret)
    assert len(asked) == 1
    assert asked[0].messages == (
        ("developer", "Be brief."),
        ("user", "First?"),
        ("assistant", "Yes."),
        ("user", "Second?"),
        ("assistant", "No."),
        ("user", "Third?"),
    )
    # The one tool that nothing turns off asks the person; it is never answered.
    assert asked[0].asked.tools == ("request_user_input",)


async def test_it_speaks_https_to_whom_its_authority_vouches_for(codex, tls_simulator, tmp_path, monkeypatch):
    """As it does to ChatGPT itself: the whole way in, over TLS."""
    ada = tls_simulator.codex("ada@work.example", tmp_path / "ada")
    monkeypatch.setenv("CODEX_CA_CERTIFICATE", str(tls_simulator.ca_path))
    access = Access("codex-cli", f"{tls_simulator.tls_url}/backend-api", home=ada.home)
    ada.replies("Over TLS.")
    assert (await codex.identify(access)).whose == "ada@work.example"
    assert text_of(await heard(codex.reply(access, ask()))) == "Over TLS."


@pytest.mark.parametrize(("scenario", "hours", "window"), [("usage_limit", 4, "5-hour"), ("weekly", 72, "weekly")])
async def test_a_full_window_is_a_limit_until_its_reset_and_asked_once(
    codex, access, simulator, ada, scenario, hours, window
):
    """R17, R30."""
    ada.refuses(scenario, resets_in=hours * 3600)
    said, error = await heard_until_refused(codex.reply(access, ask()))
    assert text_of(said) == ""
    assert isinstance(error, LimitReached)
    assert (error.scope, error.accepted) == ("limit", False)
    assert abs(error.until.timestamp() - simulator.clock.now() - hours * 3600) < 60
    assert [(each.name, each.used_percent) for each in error.room.windows] == [(window, 100)]
    assert len(simulator.requests(ada.secret)) == 1


@pytest.mark.parametrize(
    ("scenario", "scope"),
    [("usage_not_included", "not_entitled"), ("insufficient_quota", "money"), ("workspace_limit", "money")],
)
async def test_what_waiting_does_not_help_has_no_reset(codex, access, ada, scenario, scope):
    """providers.md 3.3: three causes, one code."""
    ada.refuses(scenario)
    _, error = await heard_until_refused(codex.reply(access, ask()))
    assert isinstance(error, LimitReached)
    assert (error.scope, error.until) == (scope, None)


async def test_a_limit_inside_the_stream_is_found_in_the_windows(codex, access, simulator, ada):
    """clis.md 2.5: the program calls it "other"; what had streamed is the attempt's."""
    ada.breaks("Let me see. ", "usage_limit")
    said, error = await heard_until_refused(codex.reply(access, ask()))
    assert text_of(said).strip() == "Let me see."
    assert isinstance(error, LimitReached)
    assert error.until is not None
    assert error.accepted
    assert len(simulator.requests(ada.secret)) == 1


async def test_a_throttle_is_a_pause(codex, access, simulator, ada):
    """R8: the program would try for 102 seconds by itself (clis.md 2.5)."""
    ada.refuses("throttle")
    _, error = await heard_until_refused(codex.reply(access, ask()))
    assert isinstance(error, Throttled)
    assert not error.accepted
    assert len(simulator.requests(ada.secret)) == 1


async def test_an_answer_that_breaks_off_is_cut_and_not_asked_for_again(codex, access, simulator, ada):
    """R30, R34."""
    ada.stops_short("Half an answer", pieces=2)
    said, error = await heard_until_refused(codex.reply(access, ask()))
    assert text_of(said) == "Half an answer"
    assert isinstance(error, EngineFault)
    assert error.cut
    assert error.accepted
    assert len(simulator.requests(ada.secret)) == 1


async def test_a_sign_in_that_is_not_accepted_is_signed_out(codex, access, ada):
    """R36: and the program couldn't renew it either."""
    ada.signed_out = True
    _, error = await heard_until_refused(codex.reply(access, ask()))
    assert isinstance(error, SignedOut)
    for asking in (codex.identify, codex.read_room):
        with pytest.raises(SignedOut):
            await asking(access)


async def test_lim_20_a_token_that_ran_out_is_renewed_by_the_program_in_the_persons_own_file(
    codex, access, simulator, ada, tmp_path
):
    """LIM-20: through the link; nobody notices, and the person's own program is still signed in."""
    simulator.renews("rt-simulated", "tok-new")
    simulator.key("tok-new", email=ada.email, account_id=ada.account_id, user_id=ada.user_id).replies("Renewed.")
    ada.signed_out = True
    assert text_of(await heard(codex.reply(access, ask()))) == "Renewed."
    kept = json.loads((tmp_path / "ada/auth.json").read_text())
    assert kept["tokens"]["access_token"] == "tok-new"
    assert not (tmp_path / "ada/auth.json").is_symlink()


def test_a_sign_in_renewed_in_the_links_place_goes_where_it_belongs(tmp_path):
    """A refresh token works once: what another version of the program may write there is the only one left."""
    auth = tmp_path / "ada/auth.json"
    auth.parent.mkdir()
    auth.write_text("old")
    untouched = Home(auth)
    untouched.remove()
    assert auth.read_text() == "old"
    renewed = Home(auth)
    (renewed.home / "auth.json").unlink()
    (renewed.home / "auth.json").write_text("new")
    renewed.remove()
    assert auth.read_text() == "new"
    assert auth.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in auth.parent.iterdir()] == ["auth.json"]
    assert not renewed.path.exists()


async def test_nobody_there_took_nothing(codex, access):
    """R19."""
    _, error = await heard_until_refused(codex.reply(replace(access, base_url="http://127.0.0.1:1/backend-api"), ask()))
    assert isinstance(error, Unreachable)
    assert error.host == "127.0.0.1"


async def test_it_is_the_account_that_codex_is(codex, access, simulator, ada):
    """R1: one account by two ways, told by the same identity; nothing is asked of a model."""
    over_http = Codex()
    found = await codex.identify(access)
    assert found == await over_http.identify(access)
    assert found.identity == f"{ada.account_id}:{ada.user_id}"
    assert codex.shares_account == over_http.shares_account
    await over_http.close()
    assert await codex.models(access)
    assert simulator.requests() == []


async def test_windows_are_read_ahead_of_a_turn_and_a_failed_reading_is_no_limit(codex, access, ada):
    """R29, LIM-20."""
    ada.window(10080, used=47, resets_in=90000)
    room = await codex.read_room(access)
    assert [(each.name, each.used_percent) for each in room.windows] == [("weekly", 47)]
    assert (room.complete, room.allowed, room.plan) == (True, True, "plus")
    ada.usage_status = 429
    with pytest.raises(Throttled):
        await codex.read_room(access)


async def test_con_02_a_key_beside_the_sign_in_is_never_used(codex, access, simulator, ada, tmp_path, monkeypatch):
    """CON-02: the sign-in is forced, and a home that pays by its key is refused before anything is asked."""
    monkeypatch.setenv("CODEX_API_KEY", "sk-env")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    file = tmp_path / "ada/auth.json"
    kept = json.loads(file.read_text()) | {"OPENAI_API_KEY": "sk-dormant"}
    file.write_text(json.dumps(kept))
    await heard(codex.reply(access, ask()))
    assert {seen.key for seen in simulator.all_requests()} == {ada.secret}
    for paying in (kept | {"auth_mode": "apikey"}, {key: kept[key] for key in ("OPENAI_API_KEY", "tokens")}):
        file.write_text(json.dumps(paying))
        _, error = await heard_until_refused(codex.reply(access, ask()))
        assert isinstance(error, Rejected)
        assert error.reason == "paying"
        assert json.loads(file.read_text()) == paying
    assert len(simulator.requests()) == 1


async def test_a_home_that_changed_hands_is_signed_out(codex, access, simulator):
    """R36."""
    _, error = await heard_until_refused(codex.reply(replace(access, identity="acct-9:user-Z"), ask()))
    assert isinstance(error, SignedOut)
    assert simulator.requests() == []


async def test_a_hostile_home_changes_nothing_and_is_left_as_it_is(
    codex, access, simulator, ada, tmp_path, monkeypatch
):
    """design.md, Engines: no instructions, MCP servers, hooks, skills or memories of the person's own."""
    above, ran = tmp_path / "above", tmp_path / "ran"
    above.mkdir()
    monkeypatch.setenv("TMPDIR", str(above))
    monkeypatch.setattr("tempfile.tempdir", None)
    home = tmp_path / "ada"
    spoil_codex(home, [above], ran)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    ada.replies("As ever.")
    assert text_of(await heard(codex.reply(access, ask("Hi", "Hello.", "And?")))) == "As ever."
    await codex.close()
    assert not ran.exists()
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    asked = simulator.requests()
    assert len(asked) == 1
    assert EVIL not in json.dumps(asked[0].json)
    assert asked[0].model == "gpt-5.5"
    assert asked[0].json["reasoning"] == {"effort": "medium"}
    assert asked[0].asked.tools == ("request_user_input",)


async def test_a_secret_of_one_chat_is_in_no_request_of_another(codex, access, simulator, ada):
    """design.md, Engines."""
    ada.replies("Noted.", times=9)
    await heard(codex.reply(access, ask("The word is xyzzy.", conversation="1")))
    await asyncio.gather(
        heard(codex.reply(access, ask("The word is plugh.", conversation="1"))),
        heard(codex.reply(access, ask("Which word?", "None.", "Sure?", conversation="2"))),
    )
    others = [seen for seen in simulator.requests(ada.secret) if "Which word?" in str(seen.json)]
    assert len(others) == 1
    assert "xyzzy" not in str(others[0].json)
    assert "plugh" not in str(others[0].json)


async def test_leaving_ends_the_program_and_stops_the_provider(codex, access, simulator, ada):
    ada.replies("one two three", pieces=3, hold_after=1)
    reply = codex.reply(access, ask())
    while not isinstance(await anext(reply), Text):
        pass
    (process,) = codex._open
    pid = process.popen.pid
    await reply.aclose()
    assert await asyncio.to_thread(gone, pid)
    deadline = time.monotonic() + 60
    while simulator.requests(ada.secret)[-1].outcome != "left":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_program_that_is_killed_in_mid_answer_is_a_cut(codex, access, ada):
    """R30: what arrived is kept."""
    ada.replies("one two three", pieces=3, hold_after=1)
    reply = codex.reply(access, ask())
    while not isinstance(first := await anext(reply), Text):
        pass
    (process,) = codex._open
    os.killpg(process.popen.pid, signal.SIGKILL)
    said, error = await heard_until_refused(reply)
    assert text_of([first, *said]).strip() == "one"
    assert isinstance(error, EngineFault)
    assert error.cut


async def test_pictures_arrive(codex, access, simulator, ada):
    """R9."""
    picture = Image("image/png", PNG)
    before = Message("user", "And this?", images=(picture,))
    messages = (before, Message("assistant", "A dot."), Message("user", "What is this?", images=(picture,)))
    await heard(codex.reply(access, Request("gpt-5.5", messages)))
    assert simulator.requests(ada.secret)[0].asked.images == 2
