"""A database that can't be used is said to be, by the API and by pages, wherever it is missed; then all goes on."""

import contextlib

import pytest
from django.test import Client

from conch.db import step_now
from tests.conftest import make_account
from tests.security.everything import signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.contextmanager
def without(table):
    """That table can't be found for a while: every statement that needs it fails, as with a database gone wrong."""
    rename(table, f"{table}_away")
    try:
        yield
    finally:
        rename(f"{table}_away", table)


def rename(old, new):
    from django.db import connection

    def now():
        with connection.cursor() as cursor:
            # Views and triggers of others are left as they are.
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA legacy_alter_table = ON")
            cursor.execute(f"ALTER TABLE {old} RENAME TO {new}")

    step_now(now)


def unavailable(response):
    assert response.status_code == 503
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["retry-after"] == "5"
    said = response.json()
    assert (said["code"], said["status"]) == ("database", 503)
    assert said["detail"] == "The database can't do that now. Nothing was changed; try again."


@pytest.mark.parametrize(
    ("table", "method", "path", "body"),
    [
        ("conch_conversation", "GET", "/api/conversations", None),
        ("conch_conversation", "POST", "/api/conversations", {}),
        ("conch_account", "GET", "/api/accounts", None),
        ("conch_preferences", "PATCH", "/api/preferences", {"limit_paid": True}),
        # The token itself can't be looked up: before any view.
        ("conch_apitoken", "GET", "/api/accounts", None),
    ],
)
def test_a_call_that_needs_what_is_away_is_answered_503_and_succeeds_afterwards(call, table, method, path, body):
    with without(table):
        unavailable(call.request(method, path, json=body))

    assert call.request(method, path, json=body).status_code in {200, 201}


def test_a_message_that_couldnt_be_written_is_refused_and_sent_again_is_there_once(call):
    chat = call.post("/api/conversations", json={}).json()["id"]
    given = {"text": "Hello", "idempotency_key": "once"}
    with without("conch_turn"):
        unavailable(call.post(f"/api/conversations/{chat}/messages", json=given))

    first = call.post(f"/api/conversations/{chat}/messages", json=given).json()["id"]
    assert call.post(f"/api/conversations/{chat}/messages", json=given).json()["id"] == first


@pytest.mark.parametrize("table", ["conch_account", "conch_preferences", "django_session"])
@pytest.mark.parametrize("path", ["/", "/settings/providers"])
def test_a_page_says_so_without_a_stack_or_a_statement(ada, table, path):
    make_account(ada)
    client = signed_in(ada, raise_request_exception=False)
    with without(table):
        response = client.get(path)

    said = response.content.decode()
    assert response.status_code == 503
    assert "Conch’s database can’t be used at the moment. Nothing was changed." in said
    assert "Traceback" not in said
    assert table not in said
    assert response.headers["content-security-policy"]
    assert client.get(path).status_code == 200


def test_readiness_tells_a_proxy_and_liveness_stays(settings):
    """A process whose database is away is not to be killed for it, only left alone for a while."""
    client = Client()
    kept = settings.DATABASES["default"]["NAME"]
    from django.db import connection

    assert client.get("/readyz").status_code == 200
    connection.close()
    connection.settings_dict["NAME"] = f"{kept}/nowhere"
    try:
        away, alive = client.get("/readyz"), client.get("/healthz")
    finally:
        connection.close()
        connection.settings_dict["NAME"] = kept

    assert (away.status_code, alive.status_code) == (503, 200)
    assert client.get("/readyz").status_code == 200
