"""What an account's model takes: said on its page, and by the person where it is known wrongly (R9)."""

import pytest

from conch.models import Ability
from tests.conftest import NOW, make_account
from tests.settings_ui.test_accounts import tables, text_of  # noqa: F401  a fixture is found by its name

LISTED = [{"id": "gpt-5.5", "label": "GPT-5.5", "images": True, "context": 400_000}]


@pytest.fixture
def codex(signed_in):
    return make_account(signed_in.person, label="Codex", known_models=LISTED)


def test_the_page_says_what_is_known_and_that_the_rest_is_taken_as_able(signed_in, codex):
    page = text_of(signed_in.get("/settings/providers/codex"))

    assert "GPT-5.5 sees images, reads 400,000 tokens. What isn’t known is taken as able" in page


def test_what_was_learned_is_said(signed_in, codex):
    Ability.objects.create(account=codex, model="gpt-5.5", images=False, tools=False, at=NOW)

    page = text_of(signed_in.get("/settings/providers/codex"))

    assert "GPT-5.5 can’t see images, can’t run tools, reads 400,000 tokens." in page


@pytest.mark.usefixtures("tables")
def test_the_persons_word_is_kept_and_taken_back(signed_in, codex):
    signed_in.post("/settings/providers/codex/takes", {"images": "no", "tools": "yes", "context": "64000"})

    said = "GPT-5.5 can’t see images, runs tools, reads 64,000 tokens."
    assert said in text_of(signed_in.get("/settings/providers/codex"))
    row = Ability.objects.get()
    assert (row.images_set, row.tools_set, row.context_set) == (False, True, 64_000)
    signed_in.post("/settings/providers/codex/takes", {"images": "", "tools": "", "context": ""})
    assert "GPT-5.5 sees images, reads 400,000 tokens." in text_of(signed_in.get("/settings/providers/codex"))


@pytest.mark.parametrize(
    ("posted", "says"),
    [
        ({"images": "perhaps"}, "Select a valid choice"),
        ({"context": "12"}, "At least 1,000 tokens"),
        ({"context": "a lot"}, "whole number"),
    ],
)
def test_what_cant_be_is_said_beside_the_field_and_nothing_is_kept(signed_in, codex, posted, says):
    response = signed_in.post("/settings/providers/codex/takes", posted)

    assert response.status_code == 422
    assert says in text_of(response)
    assert not Ability.objects.exists()


def test_another_persons_account_is_not_there(signed_in, bob):
    make_account(bob, slug="bobs")

    assert signed_in.post("/settings/providers/bobs/takes", {"images": "no"}).status_code == 404
