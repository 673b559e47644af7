"""Edit and resend on the pages: the form, what leaves the page, the versions that were folded."""

import json

import pytest

from conch.models import Turn
from tests.conftest import make_account
from tests.pages.conftest import a_chat, a_line, a_turn
from tests.pages.test_lines import routed

pytestmark = pytest.mark.django_db(transaction=True)
PARTS = {"HX-Request": "true"}


def text(response):
    return response.content.decode()


@pytest.fixture
def chat(ada):
    make_account(ada, state="signed_out")
    chat = a_chat(ada)
    for number in range(3):
        a_turn(chat, f"message {number}", f"answer {number}")
    return chat


def test_a_message_is_edited_in_its_place_and_without_script_on_a_page(as_ada, chat):
    turn = chat.turns.first()

    form, page = text(as_ada.get(f"/turns/{turn.pk}/edit", headers=PARTS)), text(as_ada.get(f"/turns/{turn.pk}/edit"))

    assert "message 0</textarea>" in form
    assert "<html" not in form
    assert "<html" in page
    assert f'href="/turns/{turn.pk}/edit"' in text(as_ada.get(f"/c/{chat.pk}"))


def test_the_edited_message_takes_the_place_of_what_it_folds(as_ada, chat):
    first, second, third = chat.turns.order_by("pk")

    parts = text(as_ada.post(f"/turns/{second.pk}/resend", {"text": "better\r\nnow"}, headers=PARTS))
    new = Turn.objects.latest("pk")

    assert new.text == "better\nnow"
    assert [f'<div id="turn-{turn.pk}" hx-swap-oob="delete">' in parts for turn in (first, second, third)] == [
        False,
        True,
        True,
    ]
    page = text(as_ada.get(f"/c/{chat.pk}"))
    assert "message 1" not in page
    assert "Earlier version" in page
    folded = text(as_ada.get(f"/turns/{new.pk}/earlier", headers=PARTS))
    assert "message 1" in folded
    assert "answer 2" in folded
    assert "message 0" not in folded
    assert "<form" not in folded


def test_a_version_of_a_version_is_folded_within_it(as_ada, ada, chat):
    first = chat.turns.first()
    for words in ("second version", "third version"):
        latest = Turn.objects.filter(replaced_by=None).latest("pk") if words != "second version" else first
        as_ada.post(f"/turns/{latest.pk}/resend", {"text": words})
    new = Turn.objects.latest("pk")

    folded = text(as_ada.get(f"/turns/{new.pk}/earlier"))

    assert "second version" in folded
    assert "message 0" not in folded
    assert "Earlier version</summary>" in folded


def test_a_page_that_looks_again_drops_what_another_tab_has_edited(as_ada, chat):
    page = text(as_ada.get(f"/c/{chat.pk}"))
    look = page.split('hx-get="')[-1].split('"')[0].replace("&amp;", "&")
    last = chat.turns.latest("pk")
    as_ada.post(f"/turns/{last.pk}/resend", {"text": "from another tab"})

    parts = text(as_ada.get(look.split("?")[0] + "?" + look.split("?")[1], headers=PARTS))

    assert f'<div id="turn-{last.pk}" hx-swap-oob="delete">' in parts
    assert "from another tab" in parts


def test_switch_back_stands_on_the_latest_line_that_can_be_read(as_ada, ada):
    """R23: a line that was folded with its turn has no button anywhere."""
    chat = a_chat(ada, account="claude-code")
    old, new = a_turn(chat, "old"), a_turn(chat, "new")
    a_line(old, "limit.routed", routed(until=None))
    Turn.objects.filter(pk=old.pk).update(replaced_by=new)

    assert as_ada.post(f"/c/{chat.pk}/switch-back").status_code == 409


def test_the_folded_are_in_the_json_and_not_in_the_markdown(as_ada, chat):
    second = chat.turns.order_by("pk")[1]
    as_ada.post(f"/turns/{second.pk}/resend", {"text": "better"})
    new = Turn.objects.latest("pk")

    markdown = text(as_ada.get(f"/c/{chat.pk}/export.md"))
    data = json.loads(text(as_ada.get(f"/c/{chat.pk}/export.json")))

    assert [words in markdown for words in ("message 0", "message 1", "message 2", "better")] == [
        True,
        False,
        False,
        True,
    ]
    assert [turn["replaced_by"] for turn in data["turns"]] == [None, new.pk, new.pk, None]


@pytest.mark.parametrize("path", ["edit", "earlier"])
def test_another_persons_message_is_not_there_to_edit(as_ada, bob, path):
    turn = a_turn(a_chat(bob), "private")

    assert as_ada.get(f"/turns/{turn.pk}/{path}").status_code == 404
    assert as_ada.post(f"/turns/{turn.pk}/resend", {"text": "mine"}).status_code == 404
    assert Turn.objects.count() == 1


def test_too_much_is_said_and_an_edited_message_is_not_edited_again(as_ada, chat):
    turn = chat.turns.latest("pk")

    long = as_ada.post(f"/turns/{turn.pk}/resend", {"text": "x" * 200_001}, headers=PARTS)
    as_ada.post(f"/turns/{turn.pk}/resend", {"text": "once"})
    again = as_ada.post(f"/turns/{turn.pk}/resend", {"text": "twice"}, headers=PARTS)

    assert (long.status_code, again.status_code) == (413, 409)
    assert "200,000 are allowed" in text(long)
    assert "edited already" in text(again)
