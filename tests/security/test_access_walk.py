"""Every address of the product, asked for by nobody, by somebody else, and without the page's own CSRF token."""

import json

import pytest
from django.test import Client

from tests.conftest import make_person
from tests.security.everything import (
    MARK,
    METHODS,
    OPEN,
    SECRET,
    addresses,
    body,
    filled,
    one_of_everything,
    rows_of,
    signed_in,
    still_in,
)

pytestmark = pytest.mark.django_db(transaction=True)
# Anything that a form or a call of ours may carry, as somebody else would fill it in.
KINDS = ("text/plain", "application/x-www-form-urlencoded", "application/json")
HARMLESS = {"admin/(?P<url>.*)$"}  # leads on to the same address with a slash
NOWHERE = dict.fromkeys(
    ("conversation_id", "turn_id", "attachment_id", "agent_id", "task_id", "routine_id", "token_id"), 10**9
) | {"slug": "nowhere"}
TRIED = {"account": "adas", "title": "Mine now", "label": "Mine now", "text": "", "month": "2026-10", "model": "m"}


@pytest.fixture
def adas():
    return one_of_everything(make_person("ada", is_owner=True, is_staff=True, is_superuser=True))


def asked(client, method, address, **how):
    given = {"data": json.dumps(TRIED), "content_type": "application/json"} if method != "get" else {"data": TRIED}
    if method == "post" and not address.startswith("/api/"):
        given = {"data": TRIED}
    return getattr(client, method)(address, **(given | how))


def test_there_are_addresses_to_walk():
    known = dict(addresses())

    assert len(known) > 100
    assert set(known) >= OPEN


def test_nobody_reaches_anything_but_the_doors(adas):
    """Every page, fragment, call, export, attachment and stream asks for a sign-in first."""
    nobody = Client(raise_request_exception=False)
    before, let_in = rows_of(adas.person), []

    for written, _ in addresses():
        for method in METHODS:
            response = asked(nobody, method, filled(written, adas.named))
            said = body(response)
            leads_in = response.status_code in {301, 302} and "/signin" not in response["Location"]
            closed = response.status_code in {401, 404, 405} or (response.status_code == 302 and not leads_in)
            if written.startswith("admin/"):
                closed = closed or "/admin/login" in response.get("Location", "")
            if MARK.encode() in said or response.status_code >= 500 or not (closed or written in OPEN):
                let_in.append(f"{method} {written}: {response.status_code} {response.get('Location', '')}")

    assert let_in == []
    assert rows_of(adas.person) == before


@pytest.mark.parametrize("staff", [False, True], ids=["a person", "staff without rights"])
def test_what_is_anothers_is_not_there_whoever_asks_and_however(adas, staff):
    """404 for every object of another's, never 403; nothing of it in any answer, nothing of it changed."""
    bob = make_person("bob", is_staff=staff)
    client = signed_in(bob, raise_request_exception=False)
    before, found = rows_of(adas.person), []

    for written, _ in addresses():
        others = {name for name in adas.named if f":{name}>" in written or f"<{name}>" in written}
        for method in METHODS:
            response = asked(still_in(client, bob), method, filled(written, adas.named))
            said = body(response)
            hidden = response.status_code in {404, 405} or (
                # A call that can't be read is refused before anything is looked for: the same for what isn't there.
                response.status_code == 422 == asked(client, method, filled(written, NOWHERE)).status_code
            )
            if written.startswith("admin/"):
                hidden = response.status_code in {302, 403, 404, 405} or b"adas" not in said
            if (
                MARK.encode() in said
                or SECRET.encode() in said
                or response.status_code >= 500
                or (others and not hidden)
            ):
                found.append(f"{method} {written}: {response.status_code}")

    assert found == []
    assert rows_of(adas.person) == before


def test_no_request_of_another_site_changes_anything(adas):
    """CSRF, also for a form that poses as JSON by text/plain, with the browser's own session."""
    before, let_in = rows_of(adas.person), []

    client = signed_in(adas.person, enforce_csrf_checks=True, raise_request_exception=False)
    ways = [("post", kind) for kind in KINDS] + [("patch", "text/plain"), ("delete", "text/plain")]

    for written, _ in addresses():
        for method, kind in ways:
            send = getattr(client, method)
            address = filled(written, adas.named)
            response = send(address, json.dumps(TRIED), content_type=kind, headers={"origin": "https://evil.example"})
            if response.status_code not in {403, 404, 405} and written not in HARMLESS:
                let_in.append(f"{method} {kind} {written}: {response.status_code}")

    assert let_in == []
    assert rows_of(adas.person) == before
