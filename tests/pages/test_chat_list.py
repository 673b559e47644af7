"""Finding, renaming, deleting and taking along chats; what a page costs to read."""

import json

import pytest

from conch.models import Conversation, Preferences, Turn
from tests.conftest import make_account, make_attachment
from tests.pages.conftest import a_chat, a_line, a_turn
from tests.pages.test_lines import routed

pytestmark = pytest.mark.django_db


def text(response):
    return response.content.decode()


def test_chats_are_found_by_title_and_by_what_was_said(as_ada, ada, bob):
    a_turn(a_chat(ada, title="Letter"), "to the landlord", "Dear Sir")
    a_turn(a_chat(ada, title="Trip"), "packing", "Take socks")
    a_chat(bob, title="Landlord of Bob")

    def found(q):
        page = text(as_ada.get("/chats", {"q": q}, headers={"HX-Request": "true"}))
        return [title for title in ("Letter", "Trip", "Landlord of Bob") if title in page]

    assert found("landlord") == ["Letter"]
    assert found("SOCKS take") == ["Trip"]
    assert found("nothing of it") == []
    assert found("") == ["Letter", "Trip"]


def test_a_temporary_chat_is_not_listed(as_ada, ada):
    a_chat(ada, title="Secret plan", temporary=True)

    assert "Secret plan" not in text(as_ada.get("/?new"))
    assert "Secret plan" not in text(as_ada.get("/chats?q=secret"))


def test_opening_a_chat_takes_its_unread_mark_away(as_ada, ada):
    chat = a_chat(ada, unread=True)

    assert 'data-unread="1"' in text(as_ada.get("/?new"))
    assert 'data-unread="0"' in text(as_ada.get(f"/c/{chat.pk}"))
    assert not Conversation.objects.get().unread


def test_an_open_page_finds_by_itself_what_was_answered_elsewhere(as_ada, ada):
    """A task, a routine, another device: what is new in other chats is marked and counted, unasked."""
    chat, other = a_chat(ada), a_chat(ada, title="Elsewhere")
    page = text(as_ada.get(f"/c/{chat.pk}"))
    look = page.split('id="watch" hidden hx-get="')[1].split('"')[0].replace("&amp;", "&")
    assert "every 30s" in page
    assert as_ada.get(look).status_code == 204

    Conversation.objects.filter(pk=other.pk).update(unread=True)

    assert 'data-unread="1"' in text(as_ada.get(look))


def test_a_chat_is_renamed_by_its_own_person(as_ada, ada):
    chat = a_chat(ada)

    as_ada.post(f"/c/{chat.pk}/title", {"title": "  Orders,\n slow  "})

    row = Conversation.objects.get()
    assert (row.title, row.titled) == ("Orders, slow", True)


@pytest.mark.django_db(transaction=True)
def test_a_deleted_chat_can_be_had_back(as_ada, ada):
    chat = a_chat(ada)

    page = text(as_ada.post(f"/c/{chat.pk}/delete", follow=True))
    assert "Deleted “Slow query”." in page
    assert as_ada.get(f"/c/{chat.pk}").status_code == 404

    as_ada.post(f"/c/{chat.pk}/restore")
    assert as_ada.get(f"/c/{chat.pk}").status_code == 200


def test_a_chat_is_taken_along_as_markdown_and_as_json(as_ada, ada):
    make_account(ada, label="Codex")
    chat = a_chat(ada)
    old = a_turn(chat, "before the edit", "old answer")
    new = a_turn(chat, "after the edit", "new answer")
    Turn.objects.filter(pk=old.pk).update(replaced_by=new)
    a_line(new, "limit.returned", {"account": "codex", "label": "Codex"})

    markdown = text(as_ada.get(f"/c/{chat.pk}/export.md"))
    data = json.loads(text(as_ada.get(f"/c/{chat.pk}/export.json")))

    assert "## Codex gpt-5.5\n\nnew answer" in markdown
    assert "*Codex is back, with what it missed.*" in markdown
    assert "before the edit" not in markdown
    assert [turn["text"] for turn in data["turns"]] == ["before the edit", "after the edit"]
    assert data["turns"][0]["replaced_by"] == new.pk


def test_a_picture_is_its_persons_and_nothing_that_runs(as_ada, ada, bob):
    mine, other = make_attachment(ada), make_attachment(bob)

    response = as_ada.get(f"/attachments/{mine.pk}")

    assert response["Content-Type"] == "image/png"
    assert "sandbox" in response["Content-Security-Policy"]
    assert as_ada.get(f"/attachments/{other.pk}").status_code == 404


def test_times_are_the_readers_own(as_ada, ada):
    Preferences.objects.filter(person=ada).update(time_zone="Asia/Kolkata", hour_cycle="h23")
    chat = a_chat(ada)
    a_line(a_turn(chat), "limit.sent", {"at": "2026-10-09T12:00:00Z", "late": False})

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "Your message went out" in page
    assert "PM" not in page


def test_a_page_of_turns_takes_as_many_queries_as_a_page_of_one(as_ada, ada, django_assert_max_num_queries):
    make_account(ada)
    chat = a_chat(ada)
    counted = []
    for turns in (1, 15):
        for number in range(turns):
            a_line(a_turn(chat, f"message {number}"), "limit.routed", routed())
        as_ada.get(f"/c/{chat.pk}")
        with django_assert_max_num_queries(40) as queries:
            as_ada.get(f"/c/{chat.pk}")
        counted.append(len(queries))

    assert counted[0] == counted[1]


def test_a_long_chat_comes_in_pages(as_ada, ada):
    chat = a_chat(ada)
    for number in range(60):
        a_turn(chat, f"message-{number:02}")

    page = text(as_ada.get(f"/c/{chat.pk}"))
    assert "message-59" in page
    assert "message-09" not in page

    before = page.split("?before=")[1].split('"')[0]
    earlier = text(as_ada.get(f"/c/{chat.pk}?before={before}"))
    assert "message-09" in earlier
    assert "message-10" not in earlier


def test_the_page_of_components_is_for_staff(as_ada, ada):
    assert as_ada.get("/nacre").status_code == 404
    ada.is_staff = True
    ada.save()
    page = text(as_ada.get("/nacre"))
    assert "Switch back" in page
