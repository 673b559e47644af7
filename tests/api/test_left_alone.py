"""What a call leaves behind in the process that answered it: nothing, whether or not somebody waited for the answer."""

import gc
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

PAGES = 10
LEFT = 120
TOGETHER = 10  # turns that run at once
STEADY = 5  # looks that find the same
PATIENCE = 60.0  # seconds; of a busy machine


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
        assert [browser.get("/signin").status_code for _ in range(PAGES)] == [200] * PAGES

        _until(lambda: _none_left(before))


def test_turns_whose_posters_left_leave_no_thread_and_no_open_file_behind(base, world):  # noqa: F811
    """speed.md, pitfall 1: each turn that outlived its request kept a thread and two or three files."""
    key = world.account("openai", secret="sk-left").key.replies("One two three four five.", hold_after=1)
    token = tokens.make(world.person, "left", timezone.now())
    chats = [world.chat("openai").pk for _ in range(LEFT + TOGETHER)]
    _post_and_leave(base, token, chats[:TOGETHER], world.simulator, key)
    before = _threads_and_files()

    for start in range(TOGETHER, len(chats), TOGETHER):
        _post_and_leave(base, token, chats[start : start + TOGETHER], world.simulator, key)

    assert Turn.objects.filter(state=Turn.State.DONE).count() == LEFT + TOGETHER
    _until(lambda: _none_left(before))


def _post_and_leave(base, token, chats, simulator, key):
    """Post a message to each chat, go away as soon as its stream has begun, and wait until all have ended.

    No answer ends before all have begun: each time as many connections to the provider are open, and kept.
    """
    asked = len(simulator.requests(key.secret)) + len(chats)
    for chat in chats:
        _post_one(urlsplit(base), token, chat)
    simulator.wait_for(asked, key.secret, timeout_s=PATIENCE)
    for _ in chats:
        key.release()
    _until(lambda: not Turn.objects.exclude(state__in=Turn.ENDS).exists())


def _post_one(address, token, chat):
    body = json.dumps({"text": "hi"}).encode()
    head = (
        f"POST /api/conversations/{chat}/messages HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {token}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as poster:
        poster.sendall(head.encode() + body)
        assert poster.recv(64).startswith(b"HTTP/1.1 200")


def _until(holds):
    """Wait for what the server does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _threads_and_files():
    """How many there are, once they stay as many: connections that were closed have been let go of."""
    looks = []
    while len(looks) < 100 and (len(looks) < STEADY or len(set(looks[-STEADY:])) > 1):
        time.sleep(0.02)
        gc.collect()
        looks.append((threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))))
    return looks[-1]


def _none_left(before):
    """Fewer are none left behind: on a busy machine what was there before may have ended late."""
    return all(now <= then for now, then in zip(_threads_and_files(), before, strict=True))
