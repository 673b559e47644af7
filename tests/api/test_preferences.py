"""GET and PATCH /api/preferences: the names and values of the product."""

import pytest

from conch.models import Preferences
from tests.conftest import NOW, make_account

pytestmark = pytest.mark.django_db(transaction=True)


def change(call, **said):
    return call.patch("/api/preferences", json=said)


def test_what_was_never_set_is_shown_as_what_holds(call, ada):
    assert call.get("/api/preferences").json() == {
        "default_account": "local",
        "default_model": "",
        "limit_fallback": "auto",
        "limit_order": [],
        "limit_return": True,
        "limit_paid": False,
        "offline_fallback": False,
        "month_budget": None,
        "time_zone": "UTC",
        "hour_cycle": None,
    }


def test_the_default_is_the_first_plan_that_is_signed_in_then_a_key_then_local(call, ada):
    """Preferences: the first connected plan that is signed in; else the first connected key; else local."""
    make_account(ada, "openai")
    assert call.get("/api/preferences").json()["default_account"] == "openai"

    plan = make_account(ada, "codex")
    assert call.get("/api/preferences").json()["default_account"] == "codex"

    plan.state = "signed_out"
    plan.save()
    assert call.get("/api/preferences").json()["default_account"] == "openai"


def test_a_default_that_is_gone_is_replaced_for_new_chats_by_a_plan_and_never_by_a_key(call, ada):
    """Preferences: replaced by the next plan, else by local, never by a key."""
    gone = make_account(ada, "codex")
    make_account(ada, "openai")
    assert change(call, default_account="codex").status_code == 200
    gone.removed_at = NOW
    gone.save()

    assert call.post("/api/conversations", json={}).json()["account"] == "local"

    make_account(ada, "codex", "codex-2")
    assert call.post("/api/conversations", json={}).json()["account"] == "codex-2"


def test_every_preference_can_be_changed_and_the_whole_comes_back(call, ada):
    make_account(ada, "codex")
    make_account(ada, "openai")

    changed = change(
        call,
        default_account="openai",
        default_model="gpt-5.5",
        limit_fallback="openai",
        limit_order=["openai", "codex"],
        limit_return=False,
        limit_paid=True,
        offline_fallback=True,
        month_budget="10.50",
        time_zone="Europe/Berlin",
        hour_cycle="h23",
    )

    assert changed.status_code == 200
    assert changed.json() == call.get("/api/preferences").json()
    assert changed.json()["month_budget"] == "10.5"
    assert changed.json()["limit_order"] == ["openai", "codex"]
    assert Preferences.objects.get().month_budget_nano == 10_500_000_000


def test_pay_per_use_keys_are_let_in_as_said_without_a_budget(call):
    """R13: the question for a month's budget is the page's; the API takes `limit_paid` as given."""
    changed = change(call, limit_paid=True).json()

    assert (changed["limit_paid"], changed["month_budget"]) == (True, None)


def test_null_unsets_what_can_be_unset(call, ada):
    change(call, month_budget="5", hour_cycle="h12", default_account="local", time_zone="Asia/Tokyo")

    unset = change(call, month_budget=None, hour_cycle=None, default_account=None, time_zone=None).json()

    assert (unset["month_budget"], unset["hour_cycle"], unset["time_zone"]) == (None, None, "UTC")


@pytest.mark.parametrize(
    "said",
    [
        {"limit_fallback": "nobody"},
        {"limit_fallback": "local"},
        {"limit_fallback": None},
        {"limit_order": ["nobody"]},
        {"limit_order": ["codex", "codex"]},
        {"limit_order": "codex"},
        {"limit_paid": "yes"},
        {"limit_paid": 1},
        {"limit_return": None},
        {"month_budget": "-1"},
        {"month_budget": "NaN"},
        {"month_budget": "Infinity"},
        {"month_budget": True},
        {"month_budget": "ten"},
        {"month_budget": "1e30"},
        {"month_budget": "0.00000000001"},
        {"time_zone": "Mars/Olympus"},
        {"time_zone": "../etc/passwd"},
        {"hour_cycle": "h24"},
        {"default_account": "nobody"},
        {"auto": True},
    ],
)
def test_a_value_that_makes_no_sense_is_refused_and_nothing_is_changed(call, ada, said):
    make_account(ada, "codex")
    before = Preferences.objects.values().get()

    assert change(call, **({"limit_order": ["codex"]} | said)).status_code == 422
    assert Preferences.objects.values().get() == before


def test_the_default_model_is_one_that_the_default_account_has(call, ada):
    listed = [{"id": "gpt-5.5", "label": "GPT-5.5"}, {"id": "gpt-5.5-mini", "label": "GPT-5.5 mini"}]
    make_account(ada, "codex", known_models=listed)
    make_account(ada, "openai", known_models=[{"id": "gpt-other"}])

    refused = change(call, default_model="no-such-model")

    assert refused.status_code == 422
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "no model" in refused.json()["detail"]
    assert change(call, default_account="openai", default_model="gpt-5.5").status_code == 422
    assert Preferences.objects.get().default_model == ""
    assert change(call, default_model="gpt-5.5-mini").json()["default_model"] == "gpt-5.5-mini"
    assert call.post("/api/conversations", json={}).json()["model"] == "gpt-5.5-mini"


def test_the_model_of_the_default_before_doesnt_stay_with_another_account(call, ada):
    make_account(ada, "codex", known_models=[{"id": "gpt-5.5"}])
    make_account(ada, "openai", known_models=[{"id": "gpt-other"}], model="gpt-other")
    change(call, default_account="codex", default_model="gpt-5.5")

    changed = change(call, default_account="openai").json()

    assert changed["default_model"] == ""
    assert call.post("/api/conversations", json={}).json()["model"] == "gpt-other"


def test_a_slug_that_is_gone_may_stay_in_the_order(call, ada):
    """Preferences: slugs that are gone stay, and count again when that same account is back."""
    make_account(ada, "codex", removed_at=NOW)

    assert change(call, limit_order=["codex"]).json()["limit_order"] == ["codex"]
    assert change(call, limit_fallback="codex").status_code == 422


def test_a_budget_of_zero_is_a_budget(call, ada):
    assert change(call, month_budget="0").json()["month_budget"] == "0"
