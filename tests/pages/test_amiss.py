"""What a person reads where there is no page to show: whose fault it is, and what is safe."""

import pytest
from django.test import Client

from tests.pages.conftest import a_chat, a_turn

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_address_that_leads_nowhere_is_said_to_and_leads_back(as_ada):
    shown = as_ada.get("/nothing")
    assert shown.status_code == 404
    assert "There’s nothing here" in shown.text
    assert 'href="/"' in shown.text


def test_another_persons_chat_reads_like_one_that_never_was(as_ada, bob):
    theirs = a_chat(bob, title="Mine alone")
    for chat in (theirs.pk, theirs.pk + 1000):
        shown = as_ada.get(f"/c/{chat}")
        assert shown.status_code == 404
        assert "There’s nothing here" in shown.text
        assert "Mine alone" not in shown.text


@pytest.mark.parametrize("address", ["/settings/budget", "/begin"])
def test_the_address_of_a_form_opened_as_a_page_says_that_it_is_none(as_ada, address):
    shown = as_ada.get(address)
    assert shown.status_code == 405
    assert shown["Allow"] == "POST"
    assert "That isn’t a page" in shown.text


def test_a_name_that_conch_isnt_called_by_is_refused_in_words():
    shown = Client().get("/", headers={"Host": "elsewhere.example"})
    assert shown.status_code == 400
    assert "That couldn’t be read" in shown.text


def test_a_fault_of_conchs_own_says_that_what_was_typed_is_still_there(as_ada, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("the disk has gone")

    as_ada.raise_request_exception = False
    monkeypatch.setattr("conch.chat.pages.new_chat", broken)
    shown = as_ada.get("/")
    assert shown.status_code == 500
    assert "what you typed is still there" in shown.text
    assert "disk" not in shown.text


@pytest.mark.parametrize("number", [2**63, 10**30, "9" * 400])
@pytest.mark.parametrize(
    "address", ["/c/{}", "/c/{}/continue", "/turns/{}/resend", "/turns/{}/stop", "/attachments/{}"]
)
def test_a_number_that_no_row_can_have_leads_nowhere(as_ada, address, number):
    """The database's numbers end before it: that is an address without a page, no fault."""
    get, post = as_ada.get(address.format(number)), as_ada.post(address.format(number), {"text": "hi"})

    assert (get.status_code, post.status_code) == (404, 404)


def test_a_button_that_names_no_run_that_there_was_presses_nothing(as_ada, ada):
    turn = a_turn(a_chat(ada, account="local"), state="failed", answer="")

    assert as_ada.post(f"/turns/{turn.pk}/retry", {"run": "9" * 5000}).status_code == 302
    turn.refresh_from_db()
    assert (turn.state, turn.run) == ("failed", 1)
