"""The pages of the chat: what they show, to whom, and what they never do."""

from datetime import timedelta

import pytest
from django.utils import timezone

from conch.models import Attempt, Conversation, Refusal, Turn, Window
from tests.conftest import NOW, make_account
from tests.pages.conftest import a_chat, a_line, a_turn
from tests.pages.test_lines import offer, routed, waiting

pytestmark = pytest.mark.django_db


def text(response):
    return response.content.decode()


def later(**span):
    return (timezone.now() + timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_the_first_page_is_a_new_chat_and_makes_none(as_ada):
    page = text(as_ada.get("/"))

    assert "Connect an account" in page
    assert not Conversation.objects.exists()


def test_the_first_page_is_the_latest_chat_where_there_is_one(as_ada, ada):
    a_chat(ada, title="Older", updated_at=NOW - timedelta(days=1))
    a_turn(a_chat(ada, title="The latest"), "What now?")

    assert '<h1 class="cut" id="title">The latest</h1>' in text(as_ada.get("/"))
    assert '<h1 class="cut" id="title">New chat</h1>' in text(as_ada.get("/?new"))


@pytest.mark.parametrize(
    "path",
    [
        "c/{chat}",
        "c/{chat}/now",
        "c/{chat}/export.md",
        "c/{chat}/export.json",
        "turns/{turn}/stream",
        "turns/{turn}/answer",
    ],
)
def test_what_is_somebody_elses_is_not_there_to_read(as_ada, bob, path):
    chat = a_chat(bob)
    turn = a_turn(chat)

    assert as_ada.get(f"/{path.format(chat=chat.pk, turn=turn.pk)}").status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "c/{chat}/messages",
        "c/{chat}/continue",
        "c/{chat}/switch-back",
        "c/{chat}/carry-on",
        "c/{chat}/account",
        "c/{chat}/cap",
        "c/{chat}/title",
        "c/{chat}/delete",
        "c/{chat}/restore",
        "turns/{turn}/stop",
        "turns/{turn}/cancel",
        "turns/{turn}/retry",
        "turns/{turn}/answer-with",
        "turns/{turn}/send-now",
    ],
)
def test_what_is_somebody_elses_is_not_there_to_act_on(as_ada, bob, path):
    make_account(bob)
    chat = a_chat(bob)
    turn = a_turn(chat)
    given = {"text": "hi", "title": "mine", "account": "local"}

    response = as_ada.post(f"/{path.format(chat=chat.pk, turn=turn.pk)}", given)

    assert response.status_code == 404
    assert Conversation.objects.get(pk=chat.pk).title == "Slow query"
    assert Turn.objects.count() == 1


@pytest.mark.parametrize("path", ["c/{chat}/messages", "c/{chat}/switch-back", "turns/{turn}/retry", "begin"])
def test_reading_an_address_that_acts_does_nothing(as_ada, ada, path):
    """STR-02: a GET never starts work."""
    chat = a_chat(ada)
    turn = a_turn(chat)

    assert as_ada.get(f"/{path.format(chat=chat.pk, turn=turn.pk)}").status_code == 405
    assert Turn.objects.count() == 1


def test_what_a_person_wrote_is_text(as_ada, ada):
    chat = a_chat(ada, title="<b>Title</b>")
    a_turn(chat, "<script>alert(1)</script> **bold** \u202egnp.exe", "<img src=x onerror=alert(2)>")

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; **bold**" in page
    assert "U+202E" in page
    assert "&lt;b&gt;Title&lt;/b&gt;" in page


def test_nothing_is_inline(as_ada, ada):
    """CSP: no script, style or handler of its own in any page."""
    chat = a_chat(ada)
    a_turn(chat, state="failed", answer="", failure_code="offline", failure={"code": "offline"})
    for path in ("/", "/?new", f"/c/{chat.pk}", "/chats?q=x"):
        page = text(as_ada.get(path))

        assert " style=" not in page
        assert "<style" not in page
        assert " onclick=" not in page
        assert all("src=" in tag for tag in page.split("<script")[1:] if tag)


def test_the_line_stands_before_the_answer_with_switch_back_on_the_latest_alone(as_ada, ada):
    """R22, R23."""
    chat = a_chat(ada)
    first, second = a_turn(chat, "one", account="codex-2"), a_turn(chat, "two", account="codex-3")
    a_line(first, "limit.routed", routed(to="codex-2", until=later(hours=2)))
    a_line(second, "limit.routed", routed(to="codex-3", to_label="The third", until=later(hours=2)))

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert page.count(f'action="/c/{chat.pk}/switch-back"') == 1
    assert (
        page.index("The third")
        < page.index(f"/c/{chat.pk}/switch-back")
        < page.index("answer-2" if second.pk == 2 else f"answer-{second.pk}")
    )


def test_a_folded_line_is_said_once_and_carries_on_while_the_chat_waits(as_ada, ada):
    """R23."""
    until = later(hours=2)
    chat = a_chat(ada, waits_until=timezone.now() + timedelta(hours=2))
    turn = a_turn(chat)
    a_line(turn, "limit.routed", routed(until=until, folded={"until": until}))
    a_line(
        turn,
        "limit.back",
        {"engine": "c", "engine_label": "Claude Code", "until": until, "to": "codex", "to_label": "Codex"},
    )

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert page.count("this chat waits for it until") == 1
    assert "Carry on with Codex" in page
    Conversation.objects.update(waits_until=None)
    assert "Carry on with Codex" not in text(as_ada.get(f"/c/{chat.pk}"))


def test_a_reset_that_has_passed_has_nothing_to_switch_back_from(as_ada, ada):
    """R23: the chat's own account answers next by itself."""
    chat = a_chat(ada, account="claude-code")
    a_line(a_turn(chat), "limit.routed", routed(until="2026-10-09T10:00:00Z"))

    assert "Switch back" not in text(as_ada.get(f"/c/{chat.pk}"))


def test_a_waiting_message_offers_what_would_help_and_the_page_looks_again(as_ada, ada):
    """R16; without script the page reloads at the reset."""
    chat = a_chat(ada)
    turn = a_turn(chat, "later", "", "waiting", ended_at=None, until=timezone.now() + timedelta(minutes=5))
    a_line(turn, "limit.waiting", waiting("chosen", until=later(minutes=5), could=offer("Codex")))

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "Send with Codex now" in page
    assert f'action="/turns/{turn.pk}/cancel"' in page
    assert "every 5s" in page
    assert "load delay:30" in page
    assert '<noscript><meta http-equiv="refresh" content="30' in page


def test_a_running_answer_is_watched_and_a_message_behind_it_says_so(as_ada, ada):
    """R35: one stream a page."""
    chat = a_chat(ada)
    running = a_turn(chat, "first", "", "running", ended_at=None)
    behind = a_turn(chat, "second", "", "queued", ended_at=None, account="")

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert page.count("sse-connect=") == 1
    assert f'sse-connect="/turns/{running.pk}/stream"' in page
    assert "Goes out after the answer above." in page
    assert f'action="/turns/{behind.pk}/send-now"' in page
    assert f'formaction="/turns/{running.pk}/stop"' in page


def test_what_a_refused_attempt_had_written_is_folded_under_the_line(as_ada, ada):
    """R17."""
    make_account(ada, label="Codex")
    chat = a_chat(ada)
    turn = a_turn(chat, answer="The whole answer.")
    Attempt.objects.create(
        turn=turn, run=1, account="codex", model="gpt-5.5", state="refused", partial="Half of", started_at=NOW
    )

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "What Codex had written" in page
    assert "Half of" in page


def test_a_failure_says_what_would_help_and_a_cut_answer_goes_on(as_ada, ada):
    chat = a_chat(ada)
    a_turn(chat, "a", "Half", "failed", failure_code="cut", failure={"code": "cut", "label": "Codex"})
    a_turn(
        chat,
        "b",
        "",
        "failed",
        failure_code="unreachable",
        failure={"code": "unreachable", "label": "Codex", "offers": [offer("Local", "local")]},
    )
    a_turn(chat, "c", "To the cap", ending="length")

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "stopped before the end." in page
    assert "can’t be reached." in page
    assert "Answer with Local" in page
    assert "This answer reached the length allowed for it." in page
    assert page.count(f'action="/c/{chat.pk}/continue"') == 2


def test_who_answered_with_what_and_what_it_cost_is_on_every_reply(as_ada, ada):
    """R33: unknown is never shown as nothing."""
    make_account(ada, label="Codex", known_models=[{"id": "gpt-5.5", "label": "GPT-5.5"}])
    make_account(ada, "openrouter", label="OpenRouter")
    chat = a_chat(ada)
    a_turn(chat)
    a_turn(chat, account="openrouter", cost_nano=21_000_000)
    a_turn(chat, account="openrouter", cost_nano=None)

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "<bdi>Codex</bdi></b><span>GPT-5.5</span>" in page
    assert '<span class="cost">$0.02</span>' in page
    assert page.count("price unknown") == 1


def test_two_accounts_that_read_alike_say_whose_they_are(as_ada, ada):
    """R2."""
    make_account(ada, label="Codex", whose="ada@work.example", identity="a")
    make_account(ada, slug="codex-2", label="Codex", whose="ada@home.example", identity="b")
    chat = a_chat(ada)
    a_turn(chat, account="codex-2")

    assert "<bdi>ada@home.example</bdi>" in text(as_ada.get(f"/c/{chat.pk}"))


def test_under_the_box_it_says_who_pays_and_who_comes_back(as_ada, ada):
    from tests.settings_ui.conftest import window

    first = make_account(ada, label="Claude Code", identity="1")
    other = make_account(ada, slug="codex-2", label="Codex", identity="2")
    window(first, 100, timezone.now(), hours=2)
    window(other, 28, timezone.now())
    chat = a_chat(ada)

    page = text(as_ada.get(f"/c/{chat.pk}"))

    assert "In your ChatGPT plan." in page
    assert "Back to Claude Code at" in page or "Back to Claude Code tomorrow" in page
    assert 'aria-label="Answering: Codex' in page
    assert "Answers now" in page
    assert "72%" in page


def test_the_first_run_says_what_the_tiny_model_is(as_ada, monkeypatch):
    from conch.engines import local_models

    facts = local_models.LocalFacts(present=True, label="SmolLM2 135M", tiny=True, note=local_models.TINY_NOTE)
    monkeypatch.setattr(local_models, "facts", lambda _setup: facts)

    page = text(as_ada.get("/"))

    assert "tiny built-in model, often wrong, English only" in page
    assert "Free, on this computer" in page


def test_a_plan_that_refused_while_its_meter_shows_room_has_none_drawn_and_is_not_said_to_be_empty(as_ada, ada):
    """R8: no more is known than that it refused."""
    account, now = make_account(ada, label="Codex", model="gpt-5.5"), timezone.now()
    Window.objects.create(
        account=account,
        name="5-hour",
        used_percent=20,
        resets_at=now + timedelta(hours=3),
        length_minutes=300,
        read_at=now,
    )
    assert "<span>80%</span>" in text(as_ada.get("/?new"))

    Refusal.objects.create(account=account, kind="refused", at=now, retry_at=now + timedelta(minutes=15))
    page = text(as_ada.get("/?new"))

    assert '<span title="Codex">Codex</span><span>refused</span></li>' in page
    assert "none left" not in page


def test_a_reply_is_given_as_it_was_written_and_as_nothing_that_a_browser_runs(as_ada, ada):
    turn = a_turn(a_chat(ada), answer="**Bold** <script>x</script>")

    response = as_ada.get(f"/turns/{turn.pk}/answer")

    assert text(response) == "**Bold** <script>x</script>"
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
