"""Connecting accounts: verified without a reply, one account a key, slugs that are never given again (R1, R12)."""

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest

from conch.accounts import lists, seal
from conch.accounts.connect import CantConnect, Wish, change_address, connect, disconnect, preferred
from conch.engines.registry import engines_in_use
from conch.models import Account
from tests.conftest import NOW, make_account, make_person

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-made-up-0123456789abcdef4f2a"


@pytest.fixture
def owner(db):
    return make_person("owner", is_owner=True)


def run(coroutine):
    async def closing():
        try:
            return await coroutine
        finally:
            for engine in engines_in_use():
                await engine.close()

    return asyncio.run(closing())


def connected(person, simulator, engine="openai", key=KEY, **said):
    wish = Wish(engine, key=key, base_url=simulator.base_urls[engine], **said)
    return run(connect(person, wish, NOW))


def test_a_key_is_verified_by_its_models_and_never_by_a_reply(owner, simulator):
    """doors.md: verifying asks for models or the key's facts, never for a reply."""
    simulator.key(KEY)

    account = connected(owner, simulator, identity="ada@work.example")

    assert (account.slug, account.label, account.state, account.whose) == ("openai", "OpenAI", "ok", "ada@work.example")
    assert account.model in [model["id"] for model in account.known_models]
    assert simulator.requests() == []
    assert all(seen.method == "GET" for seen in simulator.all_requests())


def test_a_key_is_kept_sealed_and_found_nowhere_in_the_row(owner, simulator):
    simulator.key(KEY)

    account = connected(owner, simulator)

    assert KEY not in str(Account.objects.values().get())
    assert seal.unseal(account.sealed_key) == KEY
    assert account.key_hint == "4f2a"


def test_the_same_key_again_is_refused_naming_the_one_that_has_it(owner, simulator):
    """R1."""
    simulator.key(KEY)
    connected(owner, simulator, slug="work", label="Work")

    with pytest.raises(CantConnect, match=r"connected already, as work \(Work\)"):
        connected(owner, simulator)


def test_a_removed_key_connected_again_gets_its_slug_back_and_nobody_else_ever_does(owner, simulator):
    """Words: a slug is never given again to another sign-in or key of that person."""
    simulator.key(KEY)
    simulator.key("sk-another-0123456789abcdef")
    first = connected(owner, simulator)
    run(disconnect(owner.pk, "openai", NOW))
    assert Account.objects.get(pk=first.pk).sealed_key == ""

    other = connected(owner, simulator, key="sk-another-0123456789abcdef")
    again = connected(owner, simulator)

    assert other.slug == "openai-2"
    assert (again.pk, again.slug, again.removed_at) == (first.pk, "openai", None)


def test_a_slug_that_another_account_had_is_refused(owner, simulator):
    simulator.key(KEY)
    make_account(owner, "openai", slug="old", removed_at=NOW)

    with pytest.raises(CantConnect, match="belongs to another account"):
        connected(owner, simulator, slug="old")


@pytest.mark.parametrize("slug", ["auto", "wait", "local", "Upper", "a b", "-a", "a/b", "x" * 65])
def test_a_slug_that_cannot_be_one_is_refused(owner, simulator, slug):
    with pytest.raises(CantConnect, match="can’t be a slug"):
        connected(owner, simulator, slug=slug)


def test_a_wrong_key_is_told_in_plain_words_and_nothing_is_kept(owner, simulator):
    with pytest.raises(CantConnect, match="OpenAI doesn’t accept this key"):
        connected(owner, simulator, key="sk-nobody-knows-this-key")
    assert not Account.objects.exists()


def test_an_unknown_model_is_refused_with_some_that_there_are(owner, simulator):
    simulator.key(KEY)

    with pytest.raises(CantConnect, match="has no model 'gpt-nothing'; it has "):
        connected(owner, simulator, model="gpt-nothing")


def test_a_server_that_is_not_there_is_told(owner):
    with pytest.raises(CantConnect, match="can’t be reached"):
        run(connect(owner, Wish("openai", key=KEY, base_url="http://127.0.0.1:9/v1"), NOW))


def test_two_people_may_connect_the_same_key_each_for_themselves(owner, simulator):
    simulator.key(KEY)
    connected(owner, simulator)
    other = make_person("grace")
    Account.objects.update(person=other)

    assert connected(owner, simulator).slug == "openai"


def test_only_the_owner_may_connect_a_sign_in_of_this_machine(ada):
    with pytest.raises(CantConnect, match="Only the owner"):
        run(connect(ada, Wish("codex"), NOW))


def test_the_model_on_this_computer_needs_no_connecting(owner):
    with pytest.raises(CantConnect, match="always there"):
        run(connect(owner, Wish("local"), NOW))


def test_changing_the_base_url_asks_for_the_key_again(owner, simulator):
    """SEC-04: a key is never sent to a host other than the one it was given for."""
    simulator.key(KEY)
    account = connected(owner, simulator)
    account.person = owner

    with pytest.raises(CantConnect, match="asks for the key again"):
        run(change_address(account, simulator.base_urls["openai"], "", NOW))


def test_the_room_that_a_provider_tells_is_kept_at_once(owner, simulator):
    simulator.key("sk-or-made-up-0123456789").capped(limit=20, spent=12.5)

    account = connected(owner, simulator, "openrouter", key="sk-or-made-up-0123456789")

    assert account.key_left_nano == int(Decimal("7.5") * 10**9)


def test_the_default_model_is_the_best_preferred_one_that_is_listed():
    """R12: from the engine's own list of preferred models, else the first listed."""
    assert preferred(("gpt-9", "gpt-5"), ["o3", "gpt-5-mini", "gpt-5"]) == "gpt-5"
    assert preferred(("gpt-9", "gpt-5"), ["o3", "gpt-5-mini"]) == "gpt-5-mini"
    assert preferred(("gpt-9",), ["o3", "gpt-5-mini"]) == "o3"
    assert preferred(("gpt-9",), []) == ""


def test_two_sign_ins_of_two_people_are_two_accounts_and_the_same_one_again_is_the_same(owner, simulator, tmp_path):
    """R1: the identity is the engine's own; a sign-in connected again is that account."""
    homes = {
        who: simulator.codex(f"{who}@work.example", tmp_path / who).window(minutes=300, used=28, resets_in=600).home
        for who in ("ada", "grace")
    }

    ada, grace = (connected(owner, simulator, "codex", key="", home=homes[who]) for who in ("ada", "grace"))
    again = connected(owner, simulator, "codex", key="", home=homes["ada"])

    assert [(account.slug, account.whose) for account in (ada, grace)] == [
        ("codex", "ada@work.example"),
        ("codex-2", "grace@work.example"),
    ]
    assert ada.identity != grace.identity
    assert again.pk == ada.pk
    assert ada.windows.get().used_percent == 28
    assert simulator.requests() == []


def test_a_sign_in_connected_again_keeps_the_model_that_was_picked(owner, simulator, tmp_path):
    """R12: the engine's preferred one is for an account that has none yet."""
    home = simulator.codex("ada@work.example", tmp_path / "ada").home
    first = connected(owner, simulator, "codex", key="", home=home)
    Account.objects.filter(pk=first.pk).update(model="gpt-5.5-mini")

    assert connected(owner, simulator, "codex", key="", home=home).model == "gpt-5.5-mini"


def test_a_key_pasted_again_keeps_a_model_that_is_not_listed_any_more(owner, simulator):
    key = simulator.key(KEY)
    account = connected(owner, simulator, model="gpt-5.5")
    account.person = owner
    key.lacks = frozenset({"gpt-5.5"})

    run(change_address(account, account.base_url, KEY, NOW))

    account.refresh_from_db()
    assert account.model == "gpt-5.5"
    assert "gpt-5.5" not in [model["id"] for model in account.known_models]


def test_another_address_must_have_the_model(owner, simulator):
    account = connected_at_home(owner, simulator)

    with pytest.raises(CantConnect, match="has no model 'gpt-home'"):
        run(change_address(account, simulator.base_urls["openai"], KEY, NOW))


def connected_at_home(owner, simulator):
    """An account at another address, with a model that only that one has."""
    simulator.key(KEY)
    account = make_account(owner, "openai", base_url="http://127.0.0.1:9/v1", model="gpt-home")
    account.person = owner
    return account


def test_a_model_list_is_due_again_a_day_after_connecting(owner, simulator):
    simulator.key(KEY)
    connected(owner, simulator)

    assert lists.due(NOW + timedelta(hours=23)) == []
    assert len(lists.due(NOW + timedelta(days=1))) == 1


def test_a_plan_that_gave_no_list_at_connecting_is_asked_for_it_again(owner, simulator, tmp_path):
    home = simulator.codex("ada@work.example", tmp_path / "ada").home
    account = connected(owner, simulator, "codex", key="", home=home)

    assert account.known_models
    assert lists.due(NOW) == [account.pk]


def test_a_sign_in_that_was_removed_comes_back_as_itself(owner, simulator, tmp_path):
    """Words: the slug of a removed account counts again when that same one is back."""
    home = simulator.codex("ada@work.example", tmp_path / "ada").home
    first = connected(owner, simulator, "codex", key="", home=home)
    run(disconnect(owner.pk, "codex", NOW))

    assert connected(owner, simulator, "codex", key="", home=home).pk == first.pk
    assert Account.objects.get().removed_at is None
