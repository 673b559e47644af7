"""The OpenAPI document and its page: whole, and without anything from elsewhere."""

import re

import pytest

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = {
    "GET /api/accounts",
    "PATCH /api/accounts/{slug}",
    "POST /api/accounts/{slug}/check",
    "GET /api/preferences",
    "PATCH /api/preferences",
    "GET /api/fallback",
    "POST /api/conversations",
    "GET /api/conversations",
    "GET /api/conversations/{conversation_id}",
    "PATCH /api/conversations/{conversation_id}",
    "DELETE /api/conversations/{conversation_id}",
    "POST /api/conversations/{conversation_id}/messages",
    "GET /api/conversations/{conversation_id}/turns/{turn_id}/events",
    "POST /api/conversations/{conversation_id}/turns/{turn_id}/stop",
    "POST /api/conversations/{conversation_id}/turns/{turn_id}/retry",
    "POST /api/conversations/{conversation_id}/turns/{turn_id}/answer-with",
    "POST /api/conversations/{conversation_id}/turns/{turn_id}/tools/{call_id}",
    "POST /api/conversations/{conversation_id}/limit-back",
    "DELETE /api/conversations/{conversation_id}/limit-back",
    "GET /api/ledger",
}


def test_every_call_of_the_contract_is_in_the_document(call):
    document = call.get("/api/openapi.json").json()

    told = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert told >= CALLS
    assert all(
        "4XX" in operation["responses"] and len(operation["responses"]) > 1
        for methods in document["paths"].values()
        for operation in methods.values()
    )


def test_every_shape_that_is_spoken_of_is_there(call):
    text = call.get("/api/openapi.json").text
    document = call.get("/api/openapi.json").json()

    spoken_of = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert spoken_of <= document["components"]["schemas"].keys()


def test_the_page_shows_every_call_and_keeps_to_the_policy(call):
    """doors.md: its assets served locally, under the same CSP."""
    page = call.get("/api/docs")

    assert page.status_code == 200
    for told in CALLS:
        assert told in page.text
    assert "<style" not in page.text
    assert not re.search(r"\son\w+=", page.text)
    assert not re.search(r"<script(?![^>]*\bsrc=\"/)", page.text)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page.text)
    assert "default-src 'none'" in page.headers["content-security-policy"]
