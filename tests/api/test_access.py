"""Who may call: tokens, sessions with CSRF, and nobody's things but one's own."""

import re
from datetime import timedelta

import httpx2 as httpx
import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from conch.accounts import tokens
from conch.accounts.views import BACKEND
from conch.models import ApiToken, Conversation, ToolCall, Turn
from tests.api.site import caller
from tests.conftest import NOW, make_account

pytestmark = pytest.mark.django_db(transaction=True)

PROBLEM = "application/problem+json"


@pytest.fixture
def session(base, ada):
    """A browser in which ada is signed in."""
    store = SessionStore()
    store[SESSION_KEY], store[BACKEND_SESSION_KEY] = str(ada.pk), BACKEND
    store[HASH_SESSION_KEY] = ada.get_session_auth_hash()
    store.save()
    with httpx.Client(
        base_url=base, cookies={"conch_session": store.session_key}, trust_env=False, timeout=20
    ) as client:
        yield client


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}])
def test_nobody_gets_in_without_a_sign_in(base, transactional_db, headers):
    for path in ("/api/accounts", "/api/openapi.json", "/api/docs", "/api/conversations/1"):
        refused = httpx.get(base + path, headers=headers, trust_env=False, timeout=20)

        assert refused.status_code == 401
        assert refused.headers["content-type"] == PROBLEM
        assert refused.json()["status"] == 401


def test_a_revoked_token_and_one_of_a_person_switched_off_stop_at_once(call, ada):
    assert call.get("/api/accounts").status_code == 200

    ApiToken.objects.update(revoked_at=NOW)
    assert call.get("/api/accounts").status_code == 401

    ApiToken.objects.update(revoked_at=None)
    ada.is_active = False
    ada.save()
    assert call.get("/api/accounts").status_code == 401


def test_a_token_is_kept_as_a_digest_only(ada):
    token = tokens.make(ada, "tests", NOW)

    assert token not in str(ApiToken.objects.values().get())


def test_when_a_token_was_used_is_written_at_most_once_a_minute(ada):
    token = tokens.make(ada, "tests", NOW)

    for seconds in (0, 30, 59):
        assert tokens.person_of(token, NOW + timedelta(seconds=seconds)) == ada.pk
        assert ApiToken.objects.get().last_used_at == NOW
    tokens.person_of(token, NOW + timedelta(seconds=60))
    assert ApiToken.objects.get().last_used_at == NOW + timedelta(seconds=60)


def test_a_token_opens_the_api_and_no_page(call):
    assert call.get("/settings/providers").status_code == 302


def test_a_session_reads_and_changes_with_the_csrf_token_only(session, ada):
    assert session.get("/api/preferences").status_code == 200
    for kind in ("application/json", "text/plain"):
        refused = session.patch("/api/preferences", content='{"limit_paid": true}', headers={"Content-Type": kind})
        assert refused.status_code == 403
        assert refused.headers["content-type"] == PROBLEM
    ada.preferences.refresh_from_db()
    assert not ada.preferences.limit_paid

    page = session.get("/signin")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    changed = session.patch("/api/preferences", json={"limit_paid": True}, headers={"X-CSRFToken": token})
    assert (changed.status_code, changed.json()["limit_paid"]) == (200, True)


def test_another_sites_origin_is_refused_even_with_the_token(session):
    page = session.get("/signin")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]

    headers = {"X-CSRFToken": token, "Origin": "https://evil.example"}
    assert session.patch("/api/preferences", json={}, headers=headers).status_code == 403


def test_what_is_anothers_is_not_there(base, ada, bob):
    """doors.md: a person reaches only what is theirs; another's is 404."""
    make_account(ada, "codex")
    chat = Conversation.objects.create(person=ada, account="codex", created_at=NOW, updated_at=NOW)
    turn = Turn.objects.create(conversation=chat, state="done", text="Mine", answer="Yours", created_at=NOW)
    asked = ToolCall.objects.create(turn=turn, run=1, name="notes__write", digest="x", state="asked", asked_at=NOW)
    one, its_turn = f"/api/conversations/{chat.pk}", f"/api/conversations/{chat.pk}/turns/{turn.pk}"
    with caller(base, bob) as call:
        own = call.post("/api/conversations", json={}).json()["id"]
        walk = [
            call.patch("/api/accounts/codex", json={"label": "Mine now"}),
            call.post("/api/accounts/codex/check"),
            call.get("/api/fallback?engine=codex"),
            call.get(f"/api/fallback?conversation={chat.pk}"),
            call.get(one),
            call.patch(one, json={"title": "Mine now"}),
            call.delete(one),
            call.post(f"{one}/messages", json={"text": "Hello"}),
            call.post(f"{one}/limit-back"),
            call.delete(f"{one}/limit-back"),
            call.get(f"{its_turn}/events"),
            call.post(f"{its_turn}/stop"),
            call.post(f"{its_turn}/retry"),
            call.post(f"{its_turn}/answer-with", json={"account": "local"}),
            call.post(f"{its_turn}/tools/{asked.pk}", json={"allow": "always"}),
            call.get(f"/api/conversations/{own}/turns/{turn.pk}/events"),
            call.post(f"/api/conversations/{own}/turns/{turn.pk}/retry"),
        ]
        assert [response.status_code for response in walk] == [404] * len(walk)
        assert all(response.headers["content-type"] == PROBLEM for response in walk)
        assert [item["id"] for item in call.get("/api/conversations").json()["items"]] == [own]
        assert [account["slug"] for account in call.get("/api/accounts").json()] == ["local"]
        assert call.get("/api/ledger").json()["entries"] == []
        assert call.patch("/api/preferences", json={"limit_fallback": "codex"}).status_code == 422
        assert call.post("/api/conversations", json={"account": "codex"}).status_code == 422
    asked.refresh_from_db()
    assert asked.state == "asked"
    chat.refresh_from_db()
    assert (chat.title, chat.deleted_at) == ("", None)


def test_a_token_that_was_just_made_works_at_once(base, bob):
    with caller(base, bob) as call:
        assert call.get("/api/preferences").status_code == 200
    assert ApiToken.objects.get().last_used_at <= timezone.now()
