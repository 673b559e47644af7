"""What a call leaves behind in the process that answered it: nothing, whether or not somebody waited for the answer."""

import json
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from conch.accounts import tokens
from conch.models import Turn
from tests.api.site import caller
from tests.turns.conftest import world  # noqa: F401  a fixture is found by name

LEFT = 120


@pytest.fixture
def begun(monkeypatch):
    """The names of the threads that were begun."""
    names = []
    start = threading.Thread.start

    def noted(thread):
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return names


def test_a_call_with_a_token_begins_no_thread(call, begun):
    """One a call, for Django's signals alone, took a millisecond each."""
    call.get("/api/accounts")  # the threads that read and write are there from now on
    begun.clear()

    assert [call.get("/api/accounts").status_code for _ in range(3)] == [200] * 3
    assert begun == []


def test_the_thread_that_a_page_needs_ends_with_it(base, transactional_db):
    with caller(base) as browser:
        browser.get("/signin")
        before = _threads_and_files()
        assert [browser.get("/signin").status_code for _ in range(3)] == [200] * 3

        assert _threads_and_files() == before


def test_turns_whose_posters_left_leave_no_thread_and_no_open_file_behind(base, world):  # noqa: F811
    """speed.md, pitfall 1: each turn that outlived its request kept a thread and two or three files."""
    world.account("openai", secret="sk-left").key.replies("One two three four five.", delay=0.002)
    token = tokens.make(world.person, "left", timezone.now())
    chats = [world.chat("openai").pk for _ in range(LEFT + 10)]
    _post_and_leave(base, token, chats[:10])
    before = _threads_and_files()

    _post_and_leave(base, token, chats[10:])

    assert Turn.objects.filter(state=Turn.State.DONE).count() == LEFT + 10
    assert _threads_and_files() == before


def _post_and_leave(base, token, chats):
    """Post a message to each chat, go away as soon as its stream has begun, and wait until all have ended."""
    address = urlsplit(base)
    body = json.dumps({"text": "hi"}).encode()
    for chat in chats:
        head = (
            f"POST /api/conversations/{chat}/messages HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((address.hostname, address.port), timeout=20) as poster:
            poster.sendall(head.encode() + body)
            assert poster.recv(64).startswith(b"HTTP/1.1 200")
    until = time.monotonic() + 30
    while Turn.objects.exclude(state__in=Turn.ENDS).exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def _threads_and_files():
    """How many there are once connections that were closed have been let go of."""
    found = None
    for _ in range(100):
        time.sleep(0.02)
        found, last = (threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))), found
        if found == last:
            break
    return found
