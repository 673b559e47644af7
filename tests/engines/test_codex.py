"""Codex by a ChatGPT sign-in: windows, identity and renewal, beside the contract."""

import asyncio
import json
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conch.engines import codex_renewal
from conch.engines.base import (
    Access,
    Done,
    EngineFault,
    LimitReached,
    Message,
    Rejected,
    Request,
    Room,
    SignedOut,
    Throttled,
    Usage,
)
from conch.engines.codex import Codex
from conch.engines.codex_home import identity_of, read_tokens
from tests.engines.conftest import NOW
from tests.engines.provider import heard, heard_until_refused, payload, text_of
from tests.simulator.homes import codex_claims, jwt, write_codex_home
from tests.simulator.keys import Key

ASK = Request("gpt-5.5", (Message("user", "Hi"),), conversation="chat-1", max_output_tokens=8192)
SIX = datetime(2026, 10, 9, 18, tzinfo=UTC)

# A program as far as a renewal sees it: it answers two questions and changes auth.json as told.
PROGRAM = """#!{python}
import json, os, pathlib, sys
home = pathlib.Path(os.environ["CODEX_HOME"])
pathlib.Path({log!r}).open("a").write(json.dumps(dict(os.environ) | {{"argv": sys.argv[1:]}}) + "\\n")
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "account/read":
        assert message["params"]["refreshToken"] is True
        kept = json.loads((home / "auth.json").read_text())
        kept["tokens"]["access_token"] = {token!r}
        (home / "auth.json").write_text(json.dumps(kept))
    if "id" in message:
        print(json.dumps({{"id": message["id"], "result": {{}}}}), flush=True)
"""


def person(token="tok-ada", **facts):
    given = {"email": "ada@work.example", "account_id": "acct-1", "user_id": "user-A", "plan": "plus"} | facts
    return Key(token, None, **given)


@pytest.fixture
def home(tmp_path) -> Path:
    return write_codex_home(tmp_path / "codex", person())


@pytest.fixture
async def codex(monkeypatch, tmp_path):
    monkeypatch.setattr("conch.engines.codex_renewal.data_folder", lambda: tmp_path)
    engine = Codex()
    engine.clients.now = lambda: NOW
    yield engine
    await engine.close()


@pytest.fixture
def access(provider, home):
    return Access("codex", provider.url + "/backend-api", home=str(home))


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes the Codex program a script that renews to that token; what it was started with is in its log."""
    log = tmp_path / "program.log"

    def make(token="tok-new"):
        path = tmp_path / "codex-program"
        path.write_text(PROGRAM.format(python=sys.executable, log=str(log), token=token))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(codex_renewal, "find_program", lambda: str(path))
        return log

    return make


@pytest.fixture
def no_program(monkeypatch):
    monkeypatch.setattr(codex_renewal, "find_program", lambda: None)


async def test_an_answer_and_its_windows_arrive_together(provider, codex, access):
    """providers.md 4: windows in headers and as an event; the text from the deltas, the output being empty."""
    headers = payload("codex_direct/stream_ok_headers.json")
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"), headers=headers)
    events = await heard(codex.reply(access, ASK))
    assert text_of(events) == "The tide turns at six."
    rooms = [event for event in events if isinstance(event, Room)]
    assert len(rooms) == 2
    for room in rooms:
        assert [(each.name, each.used_percent) for each in room.windows] == [("5-hour", 34), ("weekly", 58)]
        assert room.windows[0].resets_at == SIX
    assert events[-1] == Done("", "gpt-5.5")
    assert not [event for event in events if isinstance(event, Usage)][-1].extra
    asked = provider.asked[0]
    assert asked.path == "/backend-api/codex/responses"
    assert asked.headers["authorization"] == "Bearer tok-ada"
    assert asked.headers["chatgpt-account-id"] == "acct-1"
    assert asked.headers["originator"] == "codex_cli_rs"
    body = asked.body
    assert body["store"] is False
    assert body["instructions"] == ""
    assert "max_output_tokens" not in body


@pytest.mark.parametrize("name", ["limit_in_200_error_event", "limit_in_200_response_failed"])
async def test_a_limit_under_200_has_its_reset(provider, codex, access, name):
    """R30: in both places."""
    provider.says(payload(f"codex_direct/{name}.sse"))
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, LimitReached)
    assert error.until == SIX
    assert not error.accepted


async def test_lim_01_a_full_plan_is_asked_once_and_its_meters_are_read(provider, codex, access):
    """LIM-01."""
    provider.says_payload("codex_direct/error_429_usage_limit.json")
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, LimitReached)
    assert error.until == SIX
    assert error.model == ""
    assert [(each.name, each.used_percent) for each in error.room.windows] == [("5-hour", 100), ("weekly", 58)]
    assert len(provider.asked) == 1


async def test_an_answer_from_credits_is_said_to_be_paid(provider, codex, access):
    """R32: the window was full when the answer came, and credits were there."""
    full = payload("codex_direct/stream_ok_headers.json") | {
        "x-codex-primary-used-percent": "100",
        "x-codex-credits-has-credits": "true",
    }
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"), headers=full)
    events = await heard(codex.reply(access, ASK))
    assert [event for event in events if isinstance(event, Usage)][-1].extra


async def test_windows_are_read_ahead_of_a_turn(provider, codex, access):
    provider.says(payload("codex_direct/wham_usage_full.json"))
    room = await codex.read_room(access)
    assert room.allowed is False
    assert [each.used_percent for each in room.windows] == [100, 81]
    assert provider.asked[0].path == "/backend-api/wham/usage"


async def test_a_base_of_its_own_has_its_readings_elsewhere(provider, codex, home):
    provider.says(payload("codex_direct/wham_usage.json"))
    await codex.read_room(Access("codex", provider.url, home=str(home)))
    assert provider.asked[0].path == "/api/codex/usage"


async def test_an_identity_is_the_account_and_the_user(provider, codex, access):
    """R1."""
    provider.says(payload("codex_direct/wham_usage.json"))
    found = await codex.identify(access)
    assert (found.identity, found.whose, found.plan) == ("acct-1:user-A", "ada@work.example", "plus")


def test_acc_01_two_members_of_a_team_are_two():
    """ACC-01: one account id, two users."""
    ada, bob = (codex_claims(person(user_id=user)) for user in ("user-A", "user-B"))
    assert identity_of(ada, "acct-1").identity != identity_of(bob, "acct-1").identity


def test_an_identity_that_is_half_known_is_none():
    """R1: never the e-mail alone."""
    for claims in ({}, {"email": "ada@work.example"}, {"https://api.openai.com/auth": {"chatgpt_account_id": "a"}}, []):
        assert identity_of(claims if isinstance(claims, dict) else {}, "").identity == ""
    profile = {"https://api.openai.com/profile": {"email": "ada@work.example"}}
    assert identity_of(profile, "").whose == "ada@work.example"


async def test_con_02_the_key_beside_a_sign_in_is_never_used(provider, codex, access, home, no_program):
    """CON-02: a plan's account pays by the plan."""
    kept = json.loads((home / "auth.json").read_text())
    (home / "auth.json").write_text(json.dumps(kept | {"OPENAI_API_KEY": "sk-dormant"}))
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"))
    await heard(codex.reply(access, ASK))
    assert "sk-dormant" not in str([(asked.headers, asked.raw) for asked in provider.asked])
    (home / "auth.json").write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-dormant", "tokens": None}))
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, SignedOut)
    assert len(provider.asked) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"tokens": {"access_token": 3}}', "[" * 100_000])
def test_a_home_without_a_readable_sign_in_is_signed_out(tmp_path, content):
    (tmp_path / "auth.json").write_text(content)
    with pytest.raises(SignedOut):
        read_tokens(tmp_path)
    with pytest.raises(SignedOut):
        read_tokens(tmp_path / "nowhere")


async def test_a_home_that_changed_hands_is_signed_out(provider, codex, home):
    """R36: an account is one sign-in's; another person's is never used for it."""
    access = Access("codex", provider.url + "/backend-api", home=str(home), identity="acct-9:user-Z")
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, SignedOut)
    assert provider.asked == []


async def test_lim_20_a_token_that_ran_out_is_renewed_once_by_the_program(provider, codex, access, home, program):
    """LIM-20: 401, one renewal, one replay; the person notices nothing."""
    log = program("tok-new")
    provider.says({"detail": "Unauthorized"}, status=401)
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"))
    assert text_of(await heard(codex.reply(access, ASK))) == "The tide turns at six."
    assert [asked.headers["authorization"] for asked in provider.asked] == ["Bearer tok-ada", "Bearer tok-new"]
    started = json.loads(log.read_text())
    assert started["CODEX_HOME"] == str(home)
    assert started["argv"][-1] == "app-server"


async def test_a_renewal_is_started_without_the_machines_keys(provider, codex, access, program, monkeypatch):
    """R34: nothing of the environment pays."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    monkeypatch.setenv("CODEX_API_KEY", "sk-env")
    log = program()
    provider.says({"detail": "Unauthorized"}, status=401)
    provider.says(payload("codex_direct/wham_usage.json"))
    await codex.read_room(access)
    assert "sk-env" not in log.read_text()


async def test_a_renewed_token_that_is_refused_too_is_signed_out(provider, codex, access, program):
    program()
    provider.always("/backend-api", {"detail": "Unauthorized"}, status=401)
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, SignedOut)
    assert len(provider.asked) == 2


async def test_a_program_that_renews_nothing_means_signed_out(provider, codex, access, program):
    program("tok-ada")
    provider.says({"detail": "Unauthorized"}, status=401)
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, SignedOut)
    assert not error.missing_program
    assert len(provider.asked) == 1


async def test_without_the_program_a_token_that_ran_out_says_what_is_missing(provider, codex, access, no_program):
    """R36."""
    provider.says({"detail": "Unauthorized"}, status=401)
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, SignedOut)
    assert error.missing_program


async def test_a_token_that_another_process_renewed_is_just_read(provider, codex, access, home, no_program):
    provider.says({"detail": "Unauthorized"}, status=401)
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"))
    reply = codex.reply(access, ASK)
    first = asyncio.ensure_future(heard(reply))
    while not provider.asked:  # noqa: ASYNC110 - until the request is there
        await asyncio.sleep(0)
    write_codex_home(home, person("tok-newer"))
    assert text_of(await first) == "The tide turns at six."
    assert provider.asked[1].headers["authorization"] == "Bearer tok-newer"


async def test_turns_that_find_a_token_run_out_renew_it_once(provider, codex, access, program):
    """Two renewals of one sign-in would end it."""
    log = program()
    for _ in range(4):
        provider.says({"detail": "Unauthorized"}, status=401)
    provider.always("/backend-api", payload("codex_direct/stream_ok_empty_output.sse"))
    answers = await asyncio.gather(*(heard(codex.reply(access, ASK)) for _ in range(4)))
    assert {text_of(events) for events in answers} == {"The tide turns at six."}
    assert len(log.read_text().splitlines()) == 1


async def test_a_token_known_to_have_run_out_is_renewed_before_it_is_used(provider, codex, access, home, program):
    kept = json.loads((home / "auth.json").read_text())
    kept["tokens"]["access_token"] = jwt({"exp": int(NOW.timestamp()) - 5})
    (home / "auth.json").write_text(json.dumps(kept))
    program("tok-new")
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"))
    await heard(codex.reply(access, ASK))
    assert [asked.headers["authorization"] for asked in provider.asked] == ["Bearer tok-new"]


async def test_lim_20_a_throttled_meter_neither_signs_out_nor_marks(provider, codex, access):
    """LIM-20."""
    provider.says({"error": {"type": "rate_limit_error"}}, status=429, headers={"retry-after": "0"})
    with pytest.raises(Throttled):
        await codex.read_room(access)


async def test_fbk_05_a_model_that_the_plan_has_not_is_gone(provider, codex, access):
    """FBK-05."""
    said = "The 'gpt-5.5-mini' model is not supported when using Codex with a ChatGPT account."
    provider.says({"detail": said}, status=400)
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, Rejected)
    assert error.reason == "model_gone"


async def test_a_wall_before_the_provider_is_no_limit(provider, codex, access):
    """providers.md 4: 403 with a page."""
    provider.says("<html>Just a moment…</html>", status=403, headers={"content-type": "text/html"})
    _, error = await heard_until_refused(codex.reply(access, ASK))
    assert isinstance(error, EngineFault)
    assert not error.accepted


async def test_models_are_the_plans_own_or_the_known_one(provider, codex, access):
    listed = [
        {"slug": "gpt-5.5", "display_name": "GPT-5.5", "visibility": "list", "priority": 1, "context_window": 272000,
         "input_modalities": ["text", "image"]},
        {"slug": "gpt-hidden", "visibility": "hide", "priority": 0},
        {"slug": "gpt-5.5-mini", "visibility": "list", "priority": 0, "input_modalities": ["text"]},
    ]  # fmt: skip
    provider.says({"models": listed})
    found = await codex.models(access)
    assert [(model.id, model.label, model.images) for model in found] == [
        ("gpt-5.5-mini", "GPT-5.5 Mini", False),
        ("gpt-5.5", "GPT-5.5", True),
    ]
    provider.says({"detail": "Not Found"}, status=404)
    assert [(model.id, model.label) for model in await codex.models(access)] == [("gpt-5.5", "GPT-5.5")]


async def test_nothing_is_ever_written_into_a_home(provider, codex, access, home):
    """design.md: a person's own home is used as it is."""
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.iterdir()}
    provider.says(payload("codex_direct/stream_ok_empty_output.sse"))
    await heard(codex.reply(access, ASK))
    provider.always("/backend-api", payload("codex_direct/wham_usage.json"))
    await codex.identify(access)
    await codex.models(access)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.iterdir()} == before


async def test_a_sign_in_is_read_again_as_soon_as_its_file_has_changed(tmp_path):
    """It is kept in memory between turns, never longer than the file stays as it is."""
    from conch.engines.base import SignedOut
    from conch.engines.codex_home import known_tokens, read_tokens

    file = tmp_path / "auth.json"
    file.write_text('{"tokens": {"access_token": "first", "account_id": "a"}}')
    read_tokens(tmp_path)
    assert known_tokens(tmp_path).access_token == "first"

    file.write_text('{"tokens": {"access_token": "other", "account_id": "a"}}')
    assert known_tokens(tmp_path) is None
    assert read_tokens(tmp_path).access_token == "other"
    assert known_tokens(tmp_path).access_token == "other"

    file.unlink()
    assert known_tokens(tmp_path) is None
    with pytest.raises(SignedOut):
        read_tokens(tmp_path)
