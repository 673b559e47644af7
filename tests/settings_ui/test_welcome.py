"""First steps: what was found on this computer is offered with one press each, and nothing is taken without it."""

from urllib.parse import urlsplit

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from conch.accounts import signin
from conch.engines import local
from conch.engines.registry import engine
from conch.models import Account, Person
from tests.bare_computer import bare, install  # noqa: F401  a fixture, found by name
from tests.conftest import make_account

pytestmark = pytest.mark.usefixtures("bare")

KEY = "sk-made-up-0123456789abcdef4f2a"
BROWSER = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def tables(transactional_db):
    """Connecting writes in a transaction of its own."""


@pytest.fixture
def providers(simulator, monkeypatch):
    """The official addresses lead to the simulated providers."""
    for engine_id, address in simulator.base_urls.items():
        monkeypatch.setattr(type(engine(engine_id)), "official_base_url", address)
    yield simulator
    for engine_id in simulator.base_urls:
        async_to_sync(engine(engine_id).close)()


def words(response):
    return " ".join(response.content.decode().split())


def opened_by_link(client, person):
    return client.get(f"/signin/{signin.make_link(person, timezone.now())}", headers=BROWSER)


def test_the_owners_first_sign_in_leads_there_and_later_ones_to_the_chat(client, signed_in):
    Person.objects.update(last_login=None)

    assert opened_by_link(client, signed_in.person)["Location"] == "/welcome?first"
    assert opened_by_link(client, signed_in.person)["Location"] == "/"


def test_a_guests_first_sign_in_leads_to_the_chat(client, visitor):
    Person.objects.update(last_login=None)

    assert opened_by_link(client, visitor.person)["Location"] == "/"


def test_where_nothing_was_found_the_first_sign_in_goes_on_to_the_chat(signed_in):
    assert signed_in.get("/welcome?first")["Location"] == "/"
    assert "Nothing to connect was found" in words(signed_in.get("/welcome"))


def test_the_demonstration_offers_nothing_real(signed_in, settings, monkeypatch):
    settings.CONCH_SIMULATED = True
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    assert signed_in.get("/welcome?first")["Location"] == "/"
    assert "OpenAI" not in words(signed_in.get("/welcome"))
    assert "isn’t there any more" in words(signed_in.post("/welcome/connect/openai", follow=True))


def test_what_was_found_is_shown_and_nothing_of_it_is_taken(signed_in, providers, bare, monkeypatch):  # noqa: F811
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    providers.codex("ada@work.example", bare / ".codex")
    install(bare, "claude", "2.1.332 (Claude Code)")

    page = signed_in.get("/welcome?first")
    said = words(page)

    assert page.status_code == 200
    assert "ada@work.example" in said
    assert "Plus plan" in said
    assert "Another way into the plan of Codex" in said
    assert "ending 4f2a" in said
    assert KEY not in said
    assert "sign in with <code>claude auth login</code>" in said
    assert Account.objects.count() == 0
    assert providers.all_requests() == []


def test_a_short_key_shows_nothing_of_itself(signed_in, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-9z8y7x")

    assert "7x" not in words(signed_in.get("/welcome"))


def test_a_key_is_taken_with_one_press_and_checked_without_a_reply(signed_in, providers, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    providers.key(KEY)

    answered = [signed_in.post("/welcome/connect/openai") for _ in range(2)]

    assert [one["Location"] for one in answered] == ["/welcome", "/welcome"]
    account = Account.objects.get()
    assert (account.slug, account.key_hint, account.state) == ("openai", "4f2a", "ok")
    assert providers.requests() == []
    said = words(signed_in.get("/welcome"))
    assert "OpenAI is connected." in said
    assert 'aria-label="Connect OpenAI"' not in said


def test_a_sign_in_is_taken_with_one_press(signed_in, providers, bare):  # noqa: F811
    providers.codex("ada@work.example", bare / ".codex")

    for _ in range(2):
        assert signed_in.post("/welcome/connect/codex")["Location"] == "/welcome"

    account = Account.objects.get()
    assert (account.whose, account.home) == ("ada@work.example", "")
    said = words(signed_in.get("/welcome"))
    assert 'aria-label="Open Codex"' in said
    assert 'aria-label="Connect Codex"' not in said


def test_a_sign_in_of_somebody_else_in_the_same_place_is_offered_anew(signed_in, providers, bare):  # noqa: F811
    """R1: another sign-in is another account."""
    make_account(signed_in.person, label="Codex", identity="acct-bob:user-bob")
    providers.codex("ada@work.example", bare / ".codex")

    assert 'aria-label="Connect Codex"' in words(signed_in.get("/welcome"))


def test_a_key_that_isnt_accepted_is_said_and_nothing_is_connected(signed_in, providers, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    answered = signed_in.post("/welcome/connect/openai")

    assert answered.status_code == 422
    assert "OpenAI doesn’t accept this key." in words(answered)
    assert KEY not in words(answered)
    assert Account.objects.count() == 0


def test_what_is_gone_since_the_page_was_shown_is_said(signed_in):
    answered = signed_in.post("/welcome/connect/openai", follow=True)

    assert "That isn’t there any more. Nothing was connected." in words(answered)
    assert signed_in.post("/welcome/connect/nobodys").status_code == 404


def test_a_key_for_an_address_inside_goes_there_by_its_own_form_only(signed_in, providers, monkeypatch):
    """doors.md: the browser asks the owner once more."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    said = words(signed_in.get("/welcome"))

    assert "For http://127.0.0.1:9/v1" in said
    assert "Connect with its address" in said
    assert signed_in.post("/welcome/connect/openai")["Location"] == "/welcome"
    assert Account.objects.count() == 0


def test_a_guest_sees_only_what_is_theirs_to_do(visitor, providers, bare, monkeypatch):  # noqa: F811
    """Sign-ins, keys and servers are the owner's of the machine."""
    visitor.person.set_unusable_password()
    visitor.person.save()
    visitor.force_login(visitor.person)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(local, "PORTS", (urlsplit(providers.url).port,))
    providers.key("none")
    providers.key(KEY)
    providers.codex("ada@work.example", bare / ".codex")

    said = words(visitor.get("/welcome"))

    for hidden in ("ada@work.example", "4f2a", "OPENAI_API_KEY", "127.0.0.1"):
        assert hidden not in said
    assert "Connect a key" in said
    assert "Set a password" in said
    for engine_id in ("openai", "codex"):
        assert visitor.post(f"/welcome/connect/{engine_id}").status_code == 404
    assert Account.objects.count() == 0
    assert providers.all_requests() == []
    assert "What was found" not in words(visitor.get("/settings/providers"))


@pytest.mark.parametrize("page", ["/settings/providers", "/"])
def test_providers_and_the_first_chat_lead_there_later(signed_in, page):
    assert 'href="/welcome"' in words(signed_in.get(page))


def test_the_first_chat_leads_no_guest_there(visitor):
    assert 'href="/welcome"' not in words(visitor.get("/"))


def test_it_takes_a_sign_in_and_a_press(client, signed_in):
    assert client.get("/welcome")["Location"].startswith("/signin")
    assert signed_in.post("/welcome").status_code == 405
    assert signed_in.get("/welcome/connect/openai").status_code == 405


def test_the_icon_is_found_by_the_name_that_browsers_ask_for(client):
    answered = client.get("/favicon.ico")

    assert answered.status_code == 302
    assert answered["Location"].endswith("conch/icon.svg")
