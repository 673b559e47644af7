"""Another account of a plan is signed in to by its real program, in a home that Conch made, and connected by itself."""

import os
import time

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from conch.accounts import sign_ins
from conch.engines.registry import engine
from conch.models import Account
from tests.programs import told_by
from tests.settings_ui.sign_in_server import CODE, SignInServer
from tests.simulator.homes import write_claude_home, write_codex_home

HTMX = {"HX-Request": "true"}
PATIENCE = 30.0  # seconds; the program is there in one, on a busy machine later


@pytest.fixture
def tables(transactional_db):
    """Connecting writes in a transaction of its own."""


@pytest.fixture
def data(settings, tmp_path):
    """CONCH_DATA of its own."""
    settings.CONCH_DATA = tmp_path / "data"
    return settings.CONCH_DATA


@pytest.fixture
def sign_in_server(monkeypatch):
    """Where the Codex program signs in: on loopback, by its own (hidden) switch."""
    server = SignInServer()
    monkeypatch.setattr(sign_ins, "MORE_WORDS", ("--experimental_issuer", server.url))
    yield server
    server.close()


@pytest.fixture
def owner(signed_in, data, real_programs, simulator, monkeypatch):
    """Pages of the owner; the official addresses lead to the simulated providers; nothing runs on afterwards."""
    for engine_id, address in simulator.base_urls.items():
        monkeypatch.setattr(type(engine(engine_id)), "official_base_url", address)
    yield signed_in
    for one in list(sign_ins._under_way.values()):
        sign_ins.cancel(one)
    for engine_id in simulator.base_urls:
        async_to_sync(engine(engine_id).close)()


def words(response):
    return " ".join(response.content.decode().split())


def begun(client, engine_id, way="code"):
    response = client.post(f"/settings/connect/{engine_id}/sign-in", {"way": way})
    assert response.status_code == 302
    return response["Location"]


def until(happens):
    """What it gives, once that is something."""
    deadline = time.monotonic() + PATIENCE
    while not (found := happens()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def page_with(client, address, text):
    return until(lambda: text in (said := words(client.get(address))) and said)


def only_one():
    (one,) = sign_ins._under_way.values()
    return one


def has_ended(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_codex_signs_in_by_a_code_and_is_connected_by_itself(owner, sign_in_server, simulator, tmp_path):
    """The whole of it, by the real program: its address and code shown, the code entered, the account connected."""
    key = simulator.codex("bob@home.example", tmp_path / "elsewhere")
    assert "Sign in with a code" in words(owner.get("/settings/connect/codex"))
    address = begun(owner, "codex")
    home = only_one().home
    assert (home.parent, home.stat().st_mode & 0o777) == (sign_ins.homes(), 0o700)

    said = page_with(owner, address, CODE)
    assert f'href="{sign_in_server.url}/codex/device"' in said
    assert 'data-copy="sign-in-code"' in said
    assert 'hx-trigger="every 3s"' in said
    assert owner.post(f"{address}/check", headers=HTMX).status_code == 200
    assert not Account.objects.exists()

    sign_in_server.enter(CODE, key)
    connected = until(lambda: (r := owner.post(f"{address}/check", headers=HTMX)).headers.get("HX-Redirect") and r)
    account = Account.objects.get()
    assert connected["HX-Redirect"] == f"/settings/providers/{account.slug}"
    assert (account.engine, account.whose, account.home) == ("codex", "bob@home.example", str(home))
    assert "signed in as bob@home.example" in words(owner.get(connected["HX-Redirect"]))
    assert sign_ins._under_way == {}
    assert (home / "auth.json").stat().st_mode & 0o077 == 0
    assert simulator.requests() == []


def test_two_sign_ins_side_by_side_have_a_home_each(owner, sign_in_server, simulator, tmp_path):
    """R1: told apart by whose they are; the second's code connects the second."""
    keys = [simulator.codex(f"{name}@home.example", tmp_path / name) for name in ("ada", "bob")]
    pages = []
    for _ in keys:
        pages.append(begun(owner, "codex"))
        page_with(owner, pages[-1], 'data-copy="sign-in-code"')
    codes = [one.said().code for one in sign_ins._under_way.values()]
    assert len(set(codes)) == len({one.home for one in sign_ins._under_way.values()}) == 2
    for code, key in reversed(list(zip(codes, keys, strict=True))):
        sign_in_server.enter(code, key)
    for page in reversed(pages):
        until(lambda page=page: "HX-Redirect" in owner.post(f"{page}/check", headers=HTMX).headers)
    whose = Account.objects.order_by("pk").values_list("slug", "whose")
    assert list(whose) == [("codex", "bob@home.example"), ("codex-2", "ada@home.example")]


def test_without_script_a_press_connects_what_is_there(owner, sign_in_server, simulator, data):
    """A home that gets a sign-in is connected by *Check now* and leads to the account."""
    address = begun(owner, "codex-cli")
    page_with(owner, address, CODE)  # at its start the program takes away what was there
    write_codex_home(only_one().home, simulator.codex("bob@home.example", data / "elsewhere"))
    response = owner.post(f"{address}/check")
    assert response["Location"] == "/settings/providers/codex-cli"
    assert Account.objects.get().whose == "bob@home.example"


def test_cancelling_ends_the_program_and_leaves_nothing(owner, sign_in_server):
    address = begun(owner, "codex")
    one = only_one()
    page_with(owner, address, CODE)
    assert owner.post(f"{address}/cancel")["Location"] == "/settings/connect/codex"
    until(lambda: has_ended(one.program.popen.pid))
    until(lambda: not one.program.folder.path.exists())
    assert not one.home.exists()
    assert "under way any more" in words(owner.get(address, follow=True))
    assert owner.post(f"{address}/check", headers=HTMX)["HX-Redirect"] == "/settings/connect/codex"


def test_after_ten_minutes_the_program_ends_by_itself(owner, sign_in_server, monkeypatch):
    monkeypatch.setattr(sign_ins, "WITHIN", 0.5)
    address = begun(owner, "codex")
    one = only_one()
    until(lambda: has_ended(one.program.popen.pid))
    said = words(owner.get(address))
    assert "Ten minutes have passed" in said
    assert "hx-trigger" not in said


def test_a_program_that_gives_up_says_its_own_words(owner, sign_in_server):
    sign_in_server.refuses = True
    address = begun(owner, "codex")
    said = page_with(owner, address, "ended without a sign-in")
    assert "Error logging in" in said
    assert "hx-trigger" not in said


def test_a_sign_in_that_the_provider_refuses_is_said_so(owner, sign_in_server, simulator, tmp_path):
    """R36: the program signed in, and its sign-in isn't taken; that is not waited for."""
    key = simulator.codex("bob@home.example", tmp_path / "elsewhere")
    address = begun(owner, "codex")
    page_with(owner, address, CODE)
    one = only_one()
    sign_in_server.enter(CODE, key)
    until(lambda: one.done)
    simulator.forget(key.secret)
    said = words(owner.post(f"{address}/check"))
    assert "Codex is signed out" in said
    assert "ended without a sign-in" not in said
    assert not Account.objects.exists()


def test_the_other_way_shows_the_page_that_leads_back_to_this_computer(owner):
    """Codex's own page, never asked here: the program only listens for the browser to come back."""
    address = begun(owner, "codex", "browser")
    said = page_with(owner, address, "the sign-in page")
    assert 'href="https://auth.openai.com/oauth/authorize?' in said
    assert "redirect_uri=http%3A%2F%2F" in said
    assert "sign-in-code" not in said


def test_codex_signs_in_by_its_own_page_in_the_browser_and_is_connected_by_itself(tmp_path):
    """To its end: its page opened, back to the program that listens on this computer, the account connected."""
    said = told_by("tests.settings_ui.browser_trial", tmp_path)
    assert said["shown"]
    assert said["page"] == "https://auth.openai.com/oauth/authorize"
    assert said["landed"] == [200, "http://127.0.0.1:1455/success"]
    assert said["asked"][:2] == ["/oauth/authorize", "/oauth/token"]
    assert (said["whose"], said["in its own home"]) == ("bob@home.example", True)
    assert said["replies"] == 0


def test_claude_code_is_signed_in_to_by_a_command_and_noticed(owner, simulator, data):
    """The command has the home that Conch made; `claude auth status` there says when it is signed in."""
    address = begun(owner, "claude-code", "")
    home = only_one().home
    said = words(owner.get(address))
    assert f"CLAUDE_CONFIG_DIR={home} " in said
    assert "claude auth login" in said
    assert 'data-copy="sign-in-command"' in said
    assert owner.post(f"{address}/check", headers=HTMX).status_code == 200
    write_claude_home(home, simulator.claude("bob@home.example", data / "elsewhere"))
    assert "HX-Redirect" in owner.post(f"{address}/check", headers=HTMX).headers
    account = Account.objects.get()
    assert (account.engine, account.whose, account.home) == ("claude-code", "bob@home.example", str(home))
    assert simulator.requests() == []


def test_a_look_that_finds_nothing_new_leaves_the_page_alone(owner):
    address = begun(owner, "claude-code", "")
    said = owner.get(address).content.decode()
    stamp = said.split("/check?v=")[1].split('"')[0]
    assert owner.post(f"{address}/check?v={stamp}", headers=HTMX).status_code == 204


def test_a_key_in_that_home_is_no_plan_and_said_so(owner, sign_in_server):
    """R34."""
    address = begun(owner, "codex-cli")
    page_with(owner, address, CODE)
    (only_one().home / "auth.json").write_text('{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-x", "tokens": null}')
    assert "not by a ChatGPT plan" in words(owner.post(f"{address}/check"))
    assert not Account.objects.exists()


@pytest.mark.parametrize(("engine_id", "variable"), [("codex", "CONCH_CODEX"), ("claude-code", "CONCH_CLAUDE")])
def test_a_missing_program_is_said_with_what_to_do(owner, data, monkeypatch, engine_id, variable):
    monkeypatch.setenv(variable, str(data / "nowhere"))
    assert f"{variable} names" in words(owner.get(f"/settings/connect/{engine_id}"))
    response = owner.post(f"/settings/connect/{engine_id}/sign-in", follow=True)
    assert f"{variable} names" in words(response)
    assert sign_ins._under_way == {}


def test_a_program_that_is_too_old_is_said_with_how_to_renew_it(owner, data, monkeypatch):
    data.mkdir()
    old = data / "codex"
    old.write_text("#!/bin/sh\necho 'codex-cli 0.99.0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("CONCH_CODEX", str(old))
    said = words(owner.get("/settings/connect/codex"))
    assert "is 0.99.0; 0.163.0 or newer is needed. Renew it: codex update" in said


def test_only_so_many_are_under_way_at_once(owner, monkeypatch):
    monkeypatch.setattr(sign_ins, "MOST", 1)
    begun(owner, "claude-code", "")
    response = owner.post("/settings/connect/claude-code/sign-in", follow=True)
    assert "under way already" in words(response)


def test_another_person_finds_none_of_it(owner, visitor):
    address = begun(owner, "claude-code", "")
    assert visitor.get(address).status_code == 404
    for path in ("/settings/connect/claude-code/sign-in", f"{address}/check", f"{address}/cancel"):
        assert visitor.post(path).status_code == 404
    assert only_one().home.exists()
    assert owner.post("/settings/connect/openai/sign-in").status_code == 404


def test_the_demonstration_signs_in_to_nothing_real(owner, settings):
    settings.CONCH_SIMULATED = True
    assert "Another account" not in words(owner.get("/settings/connect/codex"))
    assert owner.post("/settings/connect/codex/sign-in").status_code == 404


def test_homes_that_came_to_nothing_are_taken_away_and_connected_ones_stay(owner):
    """A removed account may come back to its home."""
    names = ("codex-old", "codex-used", "codex-new")
    homes = {name: sign_ins.homes() / name for name in names}
    for name, home in homes.items():
        home.mkdir()
        if name != "codex-new":
            os.utime(home, (time.time() - 2 * 86400,) * 2)
    Account.objects.create(
        person=owner.person, slug="codex", engine="codex", home=str(homes["codex-used"]), connected_at=timezone.now()
    )
    begun(owner, "claude-code", "")
    assert [home.exists() for home in homes.values()] == [False, True, True]


@pytest.mark.parametrize(
    ("words_said", "url", "code"),
    [
        (b"Open this link\n   \x1b[94mhttps://auth.openai.com/codex/device\x1b[0m\n", "/codex/device", ""),
        (b"(expires in 15 minutes)\n   \x1b[94mAB12-CD34E\x1b[0m\n", "", "AB12-CD34E"),
        (b"Starting local login server on http://localhost:1455.\n", "", ""),
        (b"\xff\xfe", "", ""),
    ],
)
def test_the_address_and_the_code_are_read_off_a_programs_words(words_said, url, code):
    said = sign_ins.read(words_said)
    assert said.url.endswith(url)
    assert bool(said.url) is bool(url)
    assert said.code == code
