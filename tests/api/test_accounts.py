"""GET /api/accounts, PATCH and check of one, and the plan at a limit."""

from datetime import timedelta

import pytest
from django.utils import timezone

from conch.accounts import seal
from conch.models import Account, Refusal, Window
from tests.conftest import NOW, make_account

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-or-made-up-0123456789abcdef"
FIELDS = {
    "slug",
    "engine",
    "label",
    "identity",
    "kind",
    "model",
    "state",
    "carries_on",
    "own_limit",
    "room",
    "windows",
    "blocked_until",
    "refused_until",
    "shares_account",
}


def test_accounts_come_in_the_order_they_were_connected_with_local_last_and_no_secret(call, ada):
    make_account(ada, "openai", connected_at=NOW + timedelta(days=1), sealed_key=seal.seal(KEY), key_hint="cdef")
    make_account(ada, "codex", whose="ada@work.example", identity="acc+user")
    make_account(ada, "anthropic", removed_at=NOW)

    answered = call.get("/api/accounts")

    accounts = answered.json()
    assert [account["slug"] for account in accounts] == ["codex", "openai", "local"]
    assert all(account.keys() == FIELDS for account in accounts)
    assert [account["kind"] for account in accounts] == ["plan", "key", "local"]
    assert accounts[0]["identity"] == "ada@work.example"
    assert accounts[0]["shares_account"] == "openai-codex"
    assert "seal" not in answered.text
    assert KEY not in answered.text


def test_windows_and_refusals_are_told(call, ada):
    account = make_account(ada, "codex")
    now = timezone.now()
    reset = now.replace(microsecond=0) + timedelta(hours=2)
    Window.objects.create(account=account, name="5-hour", used_percent=100, resets_at=reset, read_at=now)
    Refusal.objects.create(account=account, kind="blocked", at=now, until=reset, retry_at=reset)

    shown = call.get("/api/accounts").json()[0]

    assert shown["windows"][0]["name"] == "5-hour"
    assert shown["windows"][0]["used_percent"] == 100
    assert shown["windows"][0]["resets_at"] == f"{reset:%Y-%m-%dT%H:%M:%S}Z"
    assert shown["blocked_until"] == f"{reset:%Y-%m-%dT%H:%M:%S}Z"
    assert shown["refused_until"] is None
    assert shown["room"]["state"] == "none"
    assert shown["room"]["percent_left"] == 0


def test_an_account_is_changed_field_by_field(call, ada):
    make_account(ada, "openai", known_models=[{"id": "gpt-5.5"}, {"id": "gpt-5-mini"}])

    said = {"label": "Work key", "model": "gpt-5-mini", "carries_on": False, "own_limit": "7.50"}
    changed = call.patch("/api/accounts/openai", json=said)

    assert changed.status_code == 200
    assert {name: changed.json()[name] for name in said} == said | {"own_limit": "7.5"}
    assert call.patch("/api/accounts/openai", json={"own_limit": None}).json()["own_limit"] is None


@pytest.mark.parametrize(
    "said",
    [
        {"label": ""},
        {"label": None},
        {"model": "gpt-nothing"},
        {"carries_on": "no"},
        {"own_limit": "-1"},
        {"slug": "x"},
    ],
)
def test_a_change_that_makes_no_sense_is_refused(call, ada, said):
    make_account(ada, "openai", known_models=[{"id": "gpt-5.5"}])

    assert call.patch("/api/accounts/openai", json=said).status_code == 422


def test_a_model_that_is_not_listed_any_more_stays_but_is_not_chosen_anew(call, ada):
    make_account(ada, "openai", model="gpt-old", known_models=[{"id": "gpt-5.5"}])

    assert call.patch("/api/accounts/openai", json={"label": "Mine", "model": "gpt-old"}).json()["model"] == "gpt-old"
    assert call.patch("/api/accounts/openai", json={"model": "gpt-older"}).status_code == 422


def test_the_model_on_this_computer_is_not_changed_here(call, ada):
    assert call.patch("/api/accounts/local", json={"label": "Mine"}).status_code == 409
    assert call.post("/api/accounts/local/check").json()["slug"] == "local"


def test_check_reads_the_room_now_and_allows_one_attempt(call, ada, simulator):
    """R29."""
    simulator.key(KEY).capped(limit=10, spent=9)
    ada.is_owner = True
    ada.save()
    make_account(ada, "openrouter", sealed_key=seal.seal(KEY), base_url=simulator.base_urls["openrouter"])

    checked = call.post("/api/accounts/openrouter/check")

    assert checked.status_code == 200
    kept = Account.objects.get()
    assert kept.key_left_nano == 10**9
    assert kept.attempt_allowed_at is not None
    assert simulator.requests() == []


def test_a_check_that_fails_keeps_the_figures_and_says_what_is_wrong_with_the_sign_in(call, ada, simulator):
    """R29: a reading that fails changes nothing."""
    ada.is_owner = True
    ada.save()
    make_account(
        ada,
        "openrouter",
        sealed_key=seal.seal("sk-or-nobody-knows-this-one"),
        base_url=simulator.base_urls["openrouter"],
        key_left_nano=5,
    )

    assert call.post("/api/accounts/openrouter/check").json()["state"] == "wrong_key"
    assert Account.objects.get().key_left_nano == 5


def test_the_plan_at_a_limit_is_for_the_account_named_else_the_chats_else_the_default(call, ada):
    make_account(ada, "codex", whose="ada@work.example", identity="a+u")
    make_account(ada, "openai")

    assert call.get("/api/fallback").json()["engine"] == "codex"
    assert call.get("/api/fallback?engine=openai").json()["engine"] == "openai"
    chat = call.post("/api/conversations", json={"account": "openai"}).json()["id"]
    assert call.get(f"/api/fallback?conversation={chat}").json()["engine"] == "openai"
    plan = call.get(f"/api/fallback?engine=codex&conversation={chat}").json()
    assert plan["engine"] == "codex"
    assert [choice["id"] for choice in plan["choices"]] == ["openai"]
    assert plan["choices"][0]["skip"]["code"] == "paid_off"
    assert call.get("/api/fallback?engine=nobody").status_code == 404
