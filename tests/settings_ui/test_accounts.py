"""The page of one account and each thing that can be done with it; connecting over real HTTP at loopback."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from conch.accounts.connect import Wish
from conch.models import Account, Conversation, Preferences, Turn
from conch.money import to_nano
from tests.conftest import make_account
from tests.settings_ui.conftest import three_accounts, window
from tests.simulator.fixtures import simulator  # noqa: F401  a fixture is found by its name

KEY = "sk-made-up-000000004f2a"
MODELS = [{"id": "gpt-5.5", "label": "GPT-5.5"}, {"id": "gpt-5-mini", "label": "GPT-5 mini"}]


def text_of(response):
    bare = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"[ \n\u00a0]+", " ", bare.replace("&#x27;", "'"))


@pytest.fixture
def tables(transactional_db):
    """What these presses write, the writer thread must see."""


@pytest.fixture
def codex(signed_in):
    return make_account(signed_in.person, label="Codex", whose="ada@work.example", known_models=MODELS)


@pytest.mark.parametrize(
    ("action", "posted", "column", "value"),
    [
        ("rename", {"label": " Work "}, "label", "Work"),
        ("model", {"model": "gpt-5-mini"}, "model", "gpt-5-mini"),
        ("limit", {"own_limit": "5"}, "own_limit_nano", to_nano(Decimal(5))),
        ("limit", {"own_limit": ""}, "own_limit_nano", None),
        ("carries-on", {}, "carries_on", False),
        ("carries-on", {"carries_on": "on"}, "carries_on", True),
    ],
)
def test_a_change_is_kept(signed_in, codex, action, posted, column, value):
    response = signed_in.post(f"/settings/providers/codex/{action}", posted)

    assert response.status_code == 302
    codex.refresh_from_db()
    assert getattr(codex, column) == value


@pytest.mark.parametrize(
    ("action", "posted", "says"),
    [
        ("rename", {"label": "  "}, "Give it a name."),
        ("rename", {"label": "x" * 101}, "at most 100"),
        ("model", {"model": "gpt-none"}, "isn’t in this account’s list"),
        ("limit", {"own_limit": "much"}, "Write an amount in dollars"),
        ("limit", {"own_limit": "-3"}, "At least $0.01"),
    ],
)
def test_what_cannot_be_is_said_beside_the_field_and_stays_as_typed(signed_in, codex, action, posted, says):
    response = signed_in.post(f"/settings/providers/codex/{action}", posted)

    assert response.status_code == 422
    if action != "limit":
        assert says in text_of(response)
        assert 'aria-invalid="true"' in response.content.decode()


def test_a_keys_own_limit_stays_as_typed_when_it_is_none(signed_in):
    make_account(signed_in.person, "openrouter", label="OpenRouter")

    response = signed_in.post("/settings/providers/openrouter/limit", {"own_limit": "much"})

    assert "Write an amount in dollars" in text_of(response)
    assert 'value="much"' in response.content.decode()


def test_disconnecting_says_before_what_it_means_and_keeps_the_ledger(signed_in, codex):
    now = timezone.now()
    chat = Conversation.objects.create(person=signed_in.person, account="codex", created_at=now, updated_at=now)
    Turn.objects.create(conversation=chat, state="waiting", text="hi", created_at=now, waits_for="codex", until=now)
    Preferences.objects.filter(person=signed_in.person).update(limit_fallback="codex", default_account="codex")

    said = text_of(signed_in.get("/settings/providers/codex/disconnect"))

    for sentence in ("1 chat answers with Codex.", "1 message waits for an answer.", "It is your pick at a limit"):
        assert sentence in said
    assert "New chats start with it" in said
    assert Account.objects.get(slug="codex").removed_at is None
    signed_in.post("/settings/providers/codex/disconnect")
    assert Account.objects.get(slug="codex").removed_at is not None
    assert signed_in.post("/settings/providers/codex/disconnect").status_code == 404, "a second press finds it gone"


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("signed_out", "Sign in again to use it."),
        ("wrong_key", "doesn’t accept this key."),
        ("no_credit", "there is no credit on it"),
        ("unreachable", "couldn’t be reached"),
    ],
)
def test_what_is_wrong_is_told_apart(signed_in, state, says):
    make_account(signed_in.person, "openrouter", label="OpenRouter", state=state)

    assert says in text_of(signed_in.get("/settings/providers/openrouter"))


def test_a_reset_that_has_passed_shows_no_percentage(signed_in, codex):
    """R6: resets now, without a percentage, until read again."""
    window(codex, 100, timezone.now() - timedelta(hours=4))

    said = text_of(signed_in.get("/settings/providers/codex"))

    assert "Resets now" in said
    assert "0% left" not in said


def connected(signed_in, simulator, key=KEY, **more):  # noqa: F811
    base_url = simulator.base_urls["openrouter"]
    posted = {"key": key, "base_url": base_url, "inside": "on"} | more
    return signed_in.post("/settings/connect/openrouter", posted, follow=True)


def test_a_key_is_connected_and_never_shown_again(signed_in, simulator):  # noqa: F811
    simulator.key(KEY)

    response = connected(signed_in, simulator, label="My router")

    account = Account.objects.get()
    assert (account.slug, account.label, account.key_hint) == ("openrouter", "My router", "4f2a")
    assert "My router is connected." in text_of(response)
    for page in ("/settings/providers", "/settings/providers/openrouter", "/settings/providers/openrouter/reconnect"):
        assert KEY not in signed_in.get(page).content.decode()
    assert KEY not in account.sealed_key


def test_a_wrong_key_is_said_beside_it_and_not_put_back(signed_in, simulator):  # noqa: F811
    response = connected(signed_in, simulator, key="sk-unknown-0000000001", label="Kept as typed")

    page = response.content.decode()
    assert response.status_code == 422
    assert "doesn’t accept this key" in text_of(response)
    assert 'value="Kept as typed"' in page
    assert "sk-unknown" not in page
    assert not Account.objects.exists()


def test_one_that_cannot_be_reached_is_told_from_a_wrong_key(signed_in):
    posted = {"key": KEY, "base_url": "http://127.0.0.1:9/api/v1", "inside": "on"}

    response = signed_in.post("/settings/connect/openrouter", posted)

    assert response.status_code == 422
    assert "OpenRouter can’t be reached. Nothing was connected" in text_of(response)


def test_an_address_inside_is_asked_for_once_more(signed_in, simulator):  # noqa: F811
    """doors.md: a base URL at a loopback or private address: the browser asks the owner once more."""
    simulator.key(KEY)

    response = connected(signed_in, simulator, inside="")

    assert response.status_code == 422
    assert "Tick this, and paste the key again." in text_of(response)
    assert not simulator.requests(KEY), "nothing was sent there before the yes"


def test_an_address_inside_is_refused_to_anyone_but_the_owner(visitor, simulator):  # noqa: F811
    """SEC-04."""
    simulator.key(KEY)

    response = connected(visitor, simulator)

    assert response.status_code == 422
    assert "Only the owner may use others." in text_of(response)
    assert not simulator.requests(KEY)


@pytest.mark.parametrize("base_url", ["file:///etc/passwd", "ftp://api.example", "nonsense", "http://u:p@api.example"])
def test_an_address_that_is_none_is_said_beside_the_field(signed_in, base_url):
    response = signed_in.post("/settings/connect/openai", {"key": KEY, "base_url": base_url})

    assert response.status_code == 422
    assert f'value="{base_url}"' in response.content.decode()
    assert 'id="id_base_url_error"' in response.content.decode()


def test_a_double_press_connects_once(signed_in, simulator):  # noqa: F811
    simulator.key(KEY)
    made = timezone.now().isoformat()

    first = connected(signed_in, simulator, made=made)
    second = connected(signed_in, simulator, made=made)

    assert [response.redirect_chain[-1][0] for response in (first, second)] == ["/settings/providers/openrouter"] * 2
    assert Account.objects.count() == 1


def test_the_same_key_again_is_refused_naming_the_one_that_has_it(signed_in, simulator):  # noqa: F811
    """R1: a key is one account."""
    simulator.key(KEY)
    connected(signed_in, simulator)

    response = connected(signed_in, simulator, made=timezone.now().isoformat())

    assert response.status_code == 422
    assert "This key is connected already, as openrouter (OpenRouter)." in text_of(response)


def test_the_same_key_connects_again_and_another_one_does_not(signed_in, simulator):  # noqa: F811
    simulator.key(KEY)
    connected(signed_in, simulator)
    Account.objects.update(state="wrong_key")

    other = signed_in.post("/settings/providers/openrouter/reconnect", {"key": "sk-another-0000000002"})
    assert "That is another key." in text_of(other)
    signed_in.post("/settings/providers/openrouter/reconnect", {"key": KEY})

    assert Account.objects.get().state == "ok"


def test_check_now_reads_and_allows_one_attempt(signed_in, simulator):  # noqa: F811
    """R29."""
    simulator.key(KEY)
    connected(signed_in, simulator)

    response = signed_in.post("/settings/providers/openrouter/check", follow=True)

    assert "OpenRouter is checked." in text_of(response)
    assert Account.objects.get().attempt_allowed_at is not None


def test_a_check_that_finds_the_key_refused_says_so(signed_in, simulator):  # noqa: F811
    simulator.key(KEY)
    connected(signed_in, simulator)
    simulator.forget(KEY)

    response = signed_in.post("/settings/providers/openrouter/check", follow=True)

    assert "OpenRouter: wrong key." in text_of(response)


def test_a_sign_in_of_this_machine_is_its_owners(visitor):
    assert visitor.get("/settings/connect/codex").status_code == 404
    assert visitor.post("/settings/connect/codex").status_code == 404
    assert "only the owner of this computer can connect it" in text_of(visitor.get("/settings/connect"))


@pytest.mark.parametrize("engine", ["nothing", "local", "../codex"])
def test_an_engine_that_is_none_is_404(signed_in, engine):
    assert signed_in.get(f"/settings/connect/{engine}").status_code == 404


def test_the_form_takes_no_more_than_a_wish_has():
    assert {"engine", "key", "label", "identity", "base_url", "model", "home"} <= set(Wish.__dataclass_fields__)


def test_a_plan_and_two_keys_are_listed_with_what_they_have(signed_in):
    three_accounts(signed_in.person)

    said = text_of(signed_in.get("/settings/providers"))

    assert "key ending 4f2a" in said
    assert "ada@work.example" in said


def test_what_connecting_can_do_without_is_folded_until_something_is_said_of_it(signed_in):
    """A key is enough; the rest is there for who needs it, and open beside what was refused."""
    page = signed_in.get("/settings/connect/openai").content.decode()
    assert page.index('name="key"') < page.index('<details class="optional"><summary>Optional: Name, Base URL, Model')
    assert page.index("<details") < page.index('name="base_url"') < page.index("</details>")

    refused = signed_in.post(
        "/settings/connect/openai", {"key": KEY, "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    )
    assert '<details class="optional" open>' in refused.content.decode()
    assert refused.content.decode().index('name="inside"') < refused.content.decode().index("<details")
