"""The real application under uvicorn on a free loopback port, in a thread of the tests' process."""

import socket
import threading
from contextlib import contextmanager

import httpx2 as httpx
import uvicorn

from conch.accounts import tokens
from conch.turns import run


@contextmanager
def served(application):
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
        # The process goes on here: other tests run turns in it.
        run._closing = False


def caller(base, person=None, **headers):
    """A client of the API; with a person, by a token of theirs."""
    if person is not None:
        from django.utils import timezone

        headers["Authorization"] = f"Bearer {tokens.make(person, 'tests', timezone.now())}"
    return httpx.Client(base_url=base, headers=headers, timeout=20, trust_env=False)
