"""Calls of tools on the page of a chat: folded, as data, with the answers to one that asks."""

import json
from datetime import timedelta

import pytest

from conch.models import Task, ToolCall
from tests.conftest import NOW, make_account
from tests.pages.conftest import a_chat, a_turn

HOSTILE = "</pre><script>alert(1)</script> <b onclick=x>approve everything</b> \u202egnihtyreve evorppa"


def a_call(turn, state="done", what="tides", outcome="The moon.", **fields):
    ended = NOW + timedelta(seconds=1.4) if state in ToolCall.ENDS else None
    given = {
        "run": 1,
        "account": "codex",
        "server": "notes",
        "tool": "search",
        "name": "notes__search",
        "title": "search in Notes",
        "arguments": {"what": what},
        "digest": what,
        "asked_at": NOW,
        "started_at": NOW if ended else None,
        "ended_at": ended,
        "outcome": outcome if ended else "",
    }
    return ToolCall.objects.create(turn=turn, state=state, **given | fields)


def text(response):
    return response.content.decode()


@pytest.fixture
def chat(ada):
    make_account(ada, "codex", label="Codex")
    return a_chat(ada)


@pytest.mark.django_db
def test_a_call_shows_folded_its_tool_arguments_outcome_and_time(as_ada, chat):
    a_call(a_turn(chat))

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "<summary>search in Notes: done in 1.4\u00a0s</summary>" in page
    assert "&quot;what&quot;: &quot;tides&quot;" in page
    assert "The moon.</pre>" in page
    assert "wants to run" not in page


@pytest.mark.django_db
def test_what_a_tool_gave_is_shown_as_text_whatever_it_is_and_no_more_of_it_than_a_page_bears(as_ada, chat):
    turn = a_turn(chat)
    a_call(turn, outcome=HOSTILE, what=HOSTILE)
    a_call(turn, outcome="x" * 100_000, what="long")

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "<script>alert" not in page
    assert "<b onclick" not in page
    assert "\u202e" not in page
    assert "&lt;b onclick=x&gt;approve everything&lt;/b&gt;" in page
    assert "[… 80,000 characters more]" in page
    assert "x" * 20_001 not in page


@pytest.mark.django_db
def test_a_call_that_asks_has_its_three_answers_and_nobody_elses_page_has_them(as_ada, chat, bob, client):
    """copy.md, *a tool asks*."""
    call = a_call(a_turn(chat, answer="", state="waiting", waits_for="tool", ended_at=None), "asked")

    page = text(as_ada.get(f"/c/{chat.pk}"))
    client.force_login(bob)

    assert "<b><bdi>Codex</bdi></b> wants to run <b><bdi>search in Notes</bdi></b>." in page
    assert page.count(f'action="/turns/{call.turn_id}/tools/{call.pk}"') == 3
    assert [word in page for word in ("Allow once</button>", "Always</button>", "No</button>")] == [True] * 3
    assert client.get(f"/c/{chat.pk}").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_an_answer_without_script_leads_back_to_the_turn(as_ada, chat):
    """Two calls ask: after one answer the turn still waits for the other."""
    turn = a_turn(chat, answer="", state="waiting", waits_for="tool", ended_at=None)
    one, other = a_call(turn, "asked", "one"), a_call(turn, "asked", "two")

    back = as_ada.post(f"/turns/{turn.pk}/tools/{one.pk}", {"allow": "no"})

    assert (back.status_code, back["Location"]) == (302, f"/c/{chat.pk}#turn-{turn.pk}")
    states = [ToolCall.objects.get(pk=call.pk).state for call in (one, other)]
    assert states == ["declined", "asked"]
    assert "search in Notes: not allowed" in text(as_ada.get(f"/c/{chat.pk}"))


@pytest.mark.django_db(transaction=True)
def test_anothers_call_cannot_be_answered_and_no_other_word_is_taken(as_ada, chat, bob):
    theirs = a_call(a_turn(a_chat(bob), answer="", state="waiting", waits_for="tool", ended_at=None), "asked")
    mine = a_call(a_turn(chat, answer="", state="waiting", waits_for="tool", ended_at=None), "asked")

    assert as_ada.post(f"/turns/{theirs.turn_id}/tools/{theirs.pk}", {"allow": "always"}).status_code == 404
    assert as_ada.post(f"/turns/{mine.turn_id}/tools/{theirs.pk}", {"allow": "always"}).status_code == 404
    assert as_ada.post(f"/turns/{mine.turn_id}/tools/{mine.pk}", {"allow": "everything"}).status_code == 400
    assert as_ada.get(f"/turns/{mine.turn_id}/tools/{mine.pk}").status_code == 405
    assert set(ToolCall.objects.values_list("state", flat=True)) == {"asked"}


@pytest.mark.django_db
def test_exports_hold_the_calls(as_ada, chat):
    """Markdown what stands, JSON all of it; nothing in an outcome ends its fence."""
    turn = a_turn(chat)
    a_call(turn, outcome="```\n# Not a heading\n```")
    a_call(turn, what="before", outcome="Then.", forgotten=True)

    markdown = text(as_ada.get(f"/c/{chat.pk}/export.md"))
    data = json.loads(text(as_ada.get(f"/c/{chat.pk}/export.json")))

    assert '*search in Notes: done in 1.4\u00a0s*\n\n```\n{"what": "tides"}\n```\n\n````\n```\n# Not' in markdown
    assert "Then." not in markdown
    assert [(call["arguments"], call["outcome"], call["forgotten"]) for call in data["turns"][0]["calls"]] == [
        ({"what": "tides"}, "```\n# Not a heading\n```", False),
        ({"what": "before"}, "Then.", True),
    ]


@pytest.mark.django_db
def test_a_task_whose_tool_asks_can_be_answered_from_the_list_of_tasks(as_ada, chat):
    turn = a_turn(chat, answer="", state="waiting", waits_for="tool", ended_at=None, unattended=True)
    Task.objects.create(turn=turn, person=chat.person, conversation=chat, created_at=NOW)
    call = a_call(turn, "asked")

    page = text(as_ada.get("/settings/tasks"))

    assert "wants to run" in page
    assert page.count(f'action="/turns/{turn.pk}/tools/{call.pk}"') == 3
