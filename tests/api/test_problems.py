"""Errors are problem documents (RFC 9457), and a call that can't be understood changes nothing."""

import contextlib
import socket

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chat(call):
    return call.post("/api/conversations", json={}).json()["id"]


def problem(response, status):
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert {"type", "title", "status", "detail"} <= document.keys()
    assert document["status"] == status
    return document


@pytest.mark.parametrize(
    "path", ["/api/", "/api/nothing", "/api/conversations/abc", "/api/conversations/1/turns/x/events", "/api/accounts/"]
)
def test_an_address_that_is_not_there(call, path):
    problem(call.get(path), 404)


def test_a_number_beyond_every_id_is_not_there(call):
    problem(call.get(f"/api/conversations/{10**30}"), 404)


def test_a_method_that_is_not_there_says_which_are(call):
    assert problem(call.put("/api/preferences"), 405)["detail"].startswith("Only ")
    assert "PATCH" in call.put("/api/preferences").headers["allow"]


@pytest.mark.parametrize("path", ["accounts", "preferences", "fallback", "conversations", "ledger", "openapi.json"])
def test_head_is_get_without_a_body(call, path):
    head, whole = call.head(f"/api/{path}"), call.get(f"/api/{path}")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["content-length"] == whole.headers["content-length"]


def test_head_of_what_cant_be_read_says_so_without_a_body(call, chat):
    assert call.head("/api/nothing").status_code == 404
    assert "GET" not in call.head("/api/accounts/local/check").headers["allow"]
    assert "GET, HEAD" in call.put("/api/preferences").headers["allow"]


def test_head_of_a_turns_events_doesnt_wait_for_them(call, chat):
    turn = call.post(f"/api/conversations/{chat}/messages", json={"text": "hi"}).json()["id"]

    head = call.head(f"/api/conversations/{chat}/turns/{turn}/events?follow=1")

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("body", ["{", "", "NaN", '{"limit_paid": tru', "\xff".encode("latin-1"), "[" * 100_000])
def test_a_body_that_is_no_json(call, body):
    assert call.patch("/api/preferences", content=body).status_code in {400, 422}


@pytest.mark.parametrize("body", ["[]", '"x"', "1", "null"])
def test_a_body_that_is_no_object(call, body):
    problem(call.patch("/api/preferences", content=body), 422)


def test_an_unknown_field_is_named(call):
    assert "limit_payed" in problem(call.patch("/api/preferences", json={"limit_payed": True}), 422)["detail"]


def test_what_was_sent_is_never_repeated_in_an_error(call):
    said = call.patch("/api/preferences", json={"limit_paid": "sk-secret-by-mistake"})

    assert "sk-secret" not in said.text


def test_a_message_over_the_limit_says_what_is_allowed(call, chat):
    refused = problem(call.post(f"/api/conversations/{chat}/messages", json={"text": "x" * 200_001}), 413)

    assert "200,000" in refused["detail"]


@pytest.mark.parametrize("text", ["", "   \n", "\u0000"])
def test_an_empty_message_is_refused(call, chat, text):
    problem(call.post(f"/api/conversations/{chat}/messages", json={"text": text}), 422)


def sent(base, head, body=b""):
    """What comes back on a bare connection, whether or not all of the body could be sent."""
    host, port = base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head)
        with contextlib.suppress(OSError):
            for _ in range(60):
                connection.sendall(body)
        with contextlib.suppress(OSError):
            return connection.recv(65536)
    return b""


def test_a_body_that_says_it_is_over_56_mib_is_refused_before_it_is_read(base):
    head = f"PATCH /api/preferences HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {57 * 2**20}\r\n\r\n"

    answered = sent(base, head.encode())

    assert answered.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answered


def test_a_body_that_says_no_length_is_cut_off_at_56_mib(base):
    head = b"PATCH /api/preferences HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = f"{2**20:x}\r\n".encode() + b"x" * 2**20 + b"\r\n"

    assert sent(base, head, chunk).startswith((b"HTTP/1.1 413", b""))


@pytest.mark.parametrize(
    ("images", "status"),
    [
        ([{"media_type": "image/png", "data": "no base64!"}], 422),
        ([{"media_type": "image/png", "data": "aGVsbG8="}], 422),
        ([{"media_type": "image/svg+xml", "data": "PHN2Zy8+"}], 422),
        ([{"media_type": "image/png"}], 422),
    ],
)
def test_an_image_is_one_by_its_content(call, chat, images, status):
    problem(call.post(f"/api/conversations/{chat}/messages", json={"text": "Look", "images": images}), status)


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "cursor=nonsense", "cursor=%00"])
def test_a_query_that_makes_no_sense(call, query):
    problem(call.get(f"/api/conversations?{query}"), 422)


@pytest.mark.parametrize("month", ["2026", "2026-13", "2026-1", "x", "2026-10-09"])
def test_a_month_that_is_none(call, month):
    problem(call.get(f"/api/ledger?month={month}"), 422)
