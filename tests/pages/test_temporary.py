"""Temporary chats: not listed, searched or exported; gone 24 hours after their last turn ended; their ledger stays."""

import json
from datetime import timedelta

import pytest

from conch.models import Attachment, Conversation, Entry, Line, Picture, Turn
from conch.turns.temporary import expired, forget
from tests.conftest import NOW, make_account, make_attachment
from tests.pages.conftest import a_chat, a_line, a_turn

pytestmark = pytest.mark.django_db
DAY = timedelta(hours=24)
SECOND = timedelta(seconds=1)


def text(response):
    return response.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("given", "temporary"), [({"temporary": "on"}, True), ({}, False)])
def test_a_switch_makes_a_new_chat_temporary(as_ada, ada, given, temporary):
    make_account(ada, state="signed_out")
    assert 'role="switch" id="temporary" name="temporary" form="composer"' in text(as_ada.get("/?new"))

    page = text(as_ada.post("/begin", {"text": "between us", "account": "codex", **given}, follow=True))

    assert Conversation.objects.get().temporary is temporary
    assert ("This chat is temporary" in page) is temporary


def test_it_is_in_no_list_and_no_export(as_ada, ada):
    chat = a_chat(ada, title="Between us", temporary=True)
    a_turn(chat, "a secret")

    assert "Between us" not in text(as_ada.get("/"))
    assert "Between us" not in text(as_ada.get("/chats?q=secret"))
    assert as_ada.get("/api/conversations").json()["items"] == []
    assert as_ada.get(f"/c/{chat.pk}/export.md").status_code == 404
    assert as_ada.get(f"/c/{chat.pk}/export.json").status_code == 404
    everything = b"".join(as_ada.get("/settings/you/export").streaming_content)
    assert json.loads(everything)["conversations"] == []
    assert "Export as" not in text(as_ada.get(f"/c/{chat.pk}"))


@pytest.mark.parametrize("state", ["done", "failed", "stopped", "interrupted"])
def test_it_is_gone_a_day_after_its_last_turn_ended(ada, state):
    chat = a_chat(ada, temporary=True)
    a_turn(chat, ended_at=NOW - DAY)
    a_turn(chat, state=state)
    kept = a_chat(ada)
    a_turn(kept)

    assert expired(NOW + DAY) == []
    assert expired(NOW + DAY + SECOND) == [chat.pk]


def test_one_that_waits_or_was_never_written_in_has_its_time(ada):
    chat = a_chat(ada, temporary=True)
    a_turn(chat)
    a_turn(chat, state="waiting", ended_at=None)
    empty = a_chat(ada, temporary=True, title="")

    assert expired(NOW + 3 * DAY) == [empty.pk]


def test_nothing_of_it_is_left_but_its_ledger(ada):
    chat = a_chat(ada, temporary=True)
    turn = a_turn(chat)
    a_line(turn, "limit.sent", {"at": "2026-10-09T12:00:00Z", "late": False})
    make_attachment(ada, turn)
    make_attachment(ada, turn, b"also elsewhere")
    make_attachment(ada, a_turn(a_chat(ada)), b"also elsewhere")
    Entry.objects.create(
        person=ada, account="openai", engine="openai", model="gpt-5.5", conversation=chat.pk, turn=turn.pk,
        month="2026-10", state="settled", cost_nano=5, at=NOW,
    )  # fmt: skip

    forget(chat.pk, NOW)
    assert Turn.objects.count() == 2
    forget(chat.pk, NOW + 2 * DAY)

    assert not Line.objects.exists()
    assert [model.objects.count() for model in (Conversation, Turn, Attachment, Picture)] == [1, 1, 1, 1]
    assert bytes(Picture.objects.get().data) == b"also elsewhere"
    assert Entry.objects.get().cost_nano == 5


@pytest.mark.django_db(transaction=True)
def test_the_workers_sweep_does_it(ada):
    from asgiref.sync import async_to_sync

    from conch.turns.clock import Clock
    from conch.turns.worker import sweep

    async def never(_seconds):
        raise AssertionError

    a_turn(a_chat(ada, temporary=True))

    async_to_sync(sweep)(Clock(lambda: NOW + 2 * DAY, never))

    assert not Conversation.objects.exists()
