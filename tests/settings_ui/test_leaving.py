"""Everything of mine along, and everything of mine gone."""

import json

import pytest
from django.utils import timezone

from conch.models import Account, Conversation, Entry, Person, Turn
from tests.conftest import make_account, make_attachment, make_person


@pytest.fixture
def tables(transactional_db):
    """Deleting stops turns, which the writer thread does."""


def a_chat(person, state="done"):
    now = timezone.now()
    chat = Conversation.objects.create(person=person, account="codex", title="Hello", created_at=now, updated_at=now)
    turn = Turn.objects.create(conversation=chat, text="Hi “you”", answer="Hello.", state=state, created_at=now)
    make_attachment(person, turn, b"\x89PNG", name="a.png")
    Entry.objects.create(
        person=person, account="codex", engine="codex", model="m", month="2026-10", state="settled", at=now
    )
    return chat


def test_everything_of_mine_is_in_the_file_and_no_secret(visitor):
    person = visitor.person
    make_account(person, sealed_key="gAAAA-sealed", key_fingerprint="f1f1")
    a_chat(person)
    a_chat(make_person("carl"))

    response = visitor.get("/settings/you/export")

    text = b"".join(response.streaming_content).decode()
    mine = json.loads(text)
    assert [chat["title"] for chat in mine["conversations"]] == ["Hello"]
    turn = mine["conversations"][0]["turns"][0]
    assert (turn["text"], turn["attachments"][0]["data"]) == ("Hi “you”", "iVBORw==")
    assert len(mine["ledger"]) == len(mine["accounts"]) == 1
    assert "gAAAA-sealed" not in text
    assert "f1f1" not in text


def test_deleting_takes_the_name_and_then_takes_everything(visitor):
    person = visitor.person
    make_account(person)
    a_chat(person, state="waiting")
    a_chat(make_person("carl"))

    wrong = visitor.post("/settings/you/delete", {"name": "carl"})
    assert wrong.status_code == 422
    assert "Nothing was deleted." in wrong.content.decode()
    visitor.post("/settings/you/delete", {"name": "bob"})

    assert not Person.objects.filter(username="bob").exists()
    assert (Conversation.objects.count(), Entry.objects.count(), Account.objects.count()) == (1, 1, 0)
    assert visitor.get("/settings/you").status_code == 302


def test_the_owner_stays(signed_in):
    response = signed_in.post("/settings/you/delete", {"name": "ada"})

    assert response.status_code == 422
    assert "You are the owner of this Conch." in response.content.decode()
    assert Person.objects.filter(username="ada").exists()
