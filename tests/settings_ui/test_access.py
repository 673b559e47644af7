"""What isn't mine is not there, and looking changes nothing (each address of the settings pages)."""

import pytest
from django.utils import timezone

from conch.models import Account, Preferences
from tests.conftest import make_account, make_person
from tests.settings_ui.conftest import three_accounts

ACTIONS = ["rename", "model", "limit", "carries-on", "check", "disconnect", "reconnect"]


@pytest.mark.parametrize("action", ["", *(f"/{action}" for action in ACTIONS)])
@pytest.mark.parametrize("slug", ["bobs", "gone", "local", "nothing"])
def test_what_is_not_mine_or_not_there_is_404(signed_in, action, slug):
    make_account(make_person("carl"), slug="bobs")
    make_account(signed_in.person, slug="gone", removed_at=timezone.now())
    address = f"/settings/providers/{slug}{action}"

    posted = signed_in.post(address, {"label": "Mine now"}).status_code
    looked = signed_in.get(address).status_code

    assert posted in {404, 405} if not action else posted == 404
    assert looked in {404, 405}
    assert Account.objects.get(slug="bobs").label == "Codex"


@pytest.mark.parametrize("action", ["rename", "model", "limit", "carries-on", "check"])
def test_looking_at_an_accounts_actions_changes_nothing(signed_in, action):
    make_account(signed_in.person)

    assert signed_in.get(f"/settings/providers/codex/{action}").status_code == 405


@pytest.mark.parametrize("action", ["choose", "move", "switch/paid", "paid", "let", "save"])
def test_looking_at_the_pickers_actions_changes_nothing(signed_in, action):
    assert signed_in.get(f"/settings/limits/{action}").status_code == 405


@pytest.mark.parametrize("pick", ["", "gone", "bobs", "local"])
def test_what_is_not_mine_cannot_be_chosen(signed_in, pick):
    three_accounts(signed_in.person)
    make_account(make_person("carl"), slug="bobs")

    assert signed_in.post("/settings/limits/choose", {"engine": "codex", "pick": pick}).status_code == 404
    assert Preferences.objects.get(person=signed_in.person).limit_fallback == "auto"


@pytest.mark.parametrize(
    "page", ["providers", "connect", "usage", "usage.csv", "you", "computer", "tools", "tools/notes", "providers/codex"]
)
def test_nobody_is_let_in_unsigned(client, db, page):
    response = client.get(f"/settings/{page}")

    assert response.status_code == 302
    assert response["Location"].startswith("/signin")


@pytest.mark.parametrize("page", ["providers", "connect", "usage", "you", "computer", "tools"])
def test_pages_take_no_post(signed_in, page):
    assert signed_in.post(f"/settings/{page}").status_code == 405


def test_settings_leads_to_the_providers(signed_in):
    assert signed_in.get("/settings/")["Location"] == "/settings/providers"
