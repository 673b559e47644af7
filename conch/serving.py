"""Serving: a socket, uvicorn on it, and the worker beside."""

import contextlib
import errno
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn
from urllib.parse import urlsplit

from django.conf import settings

EVERYWHERE = {"0.0.0.0", "::", ""}  # noqa: S104  compared, not bound
# A running answer gets its 30 s in conch.lifespan; whoever only watches is let go before.
GRACE_SECONDS = 30


class CantListen(Exception):
    """The address can't be listened at; says why and what to do."""


def base_address(host: str = "", port: int = 0) -> str:
    """Where a browser on this machine finds Conch: "http://127.0.0.1:8765"."""
    host, port = host or settings.CONCH_HOST, port or settings.CONCH_PORT
    shown = "127.0.0.1" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def keep_address(address: str) -> None:
    """Write down where this Conch serves, for commands that print links while it runs."""
    with contextlib.suppress(OSError):  # a full disk is told by what can't do without it
        (settings.CONCH_DATA / "address").write_text(address)


def present_address() -> str:
    """Where the Conch that runs on this folder serves, else where one would by the configuration."""
    try:
        kept = (settings.CONCH_DATA / "address").read_text().strip()
        parts = urlsplit(kept)
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=1).close()
    except (OSError, ValueError):
        return base_address()
    return kept


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at that address; port 0: a free one. Raises CantListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise CantListen(_why(host, port, error)) from error
    listening.set_inheritable(True)
    return listening


def _why(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken, perhaps by another Conch. Choose one with --port or CONCH_PORT."
    if error.errno == errno.EACCES:
        return f"Port {port} isn't allowed for this user. Choose one above 1023 with --port or CONCH_PORT."
    return f"{host} can't be listened at: {error.strerror or error}. Choose an address with --host or CONCH_HOST."


def serve(host: str, port: int, workers: int = 1, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until told to stop, with the background worker in each process.

    `ready` is called with the address once connections are taken: what comes before the first process is up waits in
    the socket's queue. Raises CantListen.
    """
    listening = listen(host, port)
    if ready is not None:
        ready(base_address(host, listening.getsockname()[1]))
    serve_on(listening, workers)


def _told_to_stop(_number: int, _frame: object) -> NoReturn:
    """Uvicorn passes the signal on once everything has ended: that is the end that was asked for, no failure."""
    sys.exit(0)


def serve_on(listening: socket.socket, workers: int = 1) -> None:
    """Serve on a socket that listens already."""
    import uvicorn

    os.environ["CONCH_WORKER"] = "on"  # for processes of their own
    settings.CONCH_WORKER = True
    config = uvicorn.Config(
        "conch.asgi:application",
        loop="auto",
        http="auto",
        lifespan="on",
        log_config=None,
        access_log=False,  # addresses hold one-time links
        server_header=False,
        proxy_headers=settings.CONCH_HTTPS,
        workers=workers,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=75,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _told_to_stop)
    if workers == 1:
        uvicorn.Server(config).run(sockets=[listening])
        return
    from uvicorn.supervisors import Multiprocess

    Multiprocess(config, sockets=[listening]).run()
