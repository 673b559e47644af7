"""TCP and TLS beneath the HTTP client, on asyncio itself.

The client brings a backend that runs on several kinds of loops; it gives its place in the loop up around every piece
that it sends or reads, and asks the system whether each idle connection still stands: a quarter of what a request
costs. Here a request's head and body leave together, and a connection knows by itself that its other side has gone.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import Any

import httpcore2

# Bytes that came and nobody has read yet; beyond that the other side is made to wait.
MOST_UNREAD = 256 * 1024
# Seconds that one address of a host has before the next is tried beside it (RFC 8305).
NEXT_ADDRESS_AFTER = 0.25


class Network(httpcore2.AsyncNetworkBackend):
    """Makes connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the client's own signature, as below
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first of the host's addresses that takes one. Raises ConnectError, ConnectTimeout."""
        try:
            async with asyncio.timeout(timeout):
                reached = await _reached(host, port)
                for option in socket_options or ():
                    reached.setsockopt(*option)
                _, stream = await asyncio.get_running_loop().create_connection(Stream, sock=reached)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        return stream

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Stream(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._unread = bytearray()
        self._over = False
        self._error: Exception | None = None
        self._full = False  # as much is on its way out as may be
        self._waiting: asyncio.Future[bool] | None = None

    def connection_made(self, transport: Any) -> None:
        """It stands."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._unread += data
        if len(self._unread) > MOST_UNREAD:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The other side says no more."""
        self._over = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        self._over, self._full, self._error = True, False, error
        self._wake()

    def pause_writing(self) -> None:
        """What is written waits here for now."""
        self._full = True

    def resume_writing(self) -> None:
        """It has gone out."""
        self._full = False
        self._wake()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """What has come, as soon as anything has; nothing where no more will. Raises ReadError, ReadTimeout."""
        while not self._unread and not self._over:
            if not await self._woken(timeout):
                raise httpcore2.ReadTimeout
        if not self._unread and self._error is not None:
            raise httpcore2.ReadError(str(self._error)) from self._error
        taken = bytes(self._unread[:max_bytes])
        del self._unread[:max_bytes]
        if not self._over:
            self._transport.resume_reading()
        return taken

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send it; waits only while too much is on its way already. Raises WriteError, WriteTimeout."""
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore2.WriteError(str(self._error or "the connection is closed"))
        self._transport.write(buffer)
        while self._full:
            if not await self._woken(timeout):
                raise httpcore2.WriteTimeout

    async def aclose(self) -> None:
        """Close it at once."""
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """Speak TLS from here on. Raises ConnectError, ConnectTimeout."""
        loop = asyncio.get_running_loop()
        try:
            self._transport = await loop.start_tls(
                self._transport,
                self,
                ssl_context,
                server_hostname=server_hostname,
                ssl_handshake_timeout=timeout,
            )
        except TimeoutError as error:
            self._transport.abort()
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:  # what is wrong with a certificate is one too
            self._transport.abort()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        """What the client asks of a connection. An idle one that has something to read was closed by its server."""
        if info == "is_readable":
            return bool(self._unread) or self._over or self._transport.is_closing()
        named = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(named.get(info, info))

    async def _woken(self, within: float | None) -> bool:
        """Wait until something has changed; False where nothing did within so many seconds."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        late = None if within is None else loop.call_later(within, _answer, self._waiting, False)
        try:
            return await self._waiting
        finally:
            self._waiting = None
            if late is not None:
                late.cancel()

    def _wake(self) -> None:
        if self._waiting is not None:
            _answer(self._waiting, True)


def _answer(waiting: "asyncio.Future[bool]", changed: bool) -> None:
    if not waiting.done():
        waiting.set_result(changed)


async def _reached(host: str, port: int) -> socket.socket:
    """A socket to the first address of that host that takes a connection, the families by turns. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    six = [place for place in found if place[0] == socket.AF_INET6]
    rest = [place for place in found if place[0] != socket.AF_INET6]
    addresses = [place for place in chain(*zip_longest(six, rest)) if place is not None]
    trying: set[asyncio.Task[socket.socket]] = set()
    failed: BaseException = OSError(f"{host} has no address")
    try:
        while addresses or trying:
            if addresses:
                trying.add(asyncio.create_task(_tried(*addresses.pop(0))))
            pause = NEXT_ADDRESS_AFTER if addresses else None
            done, trying = await asyncio.wait(trying, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda task: task.exception() is not None):
                failed = task.exception() or failed
                if task.exception() is None:
                    trying |= done - {task}
                    return task.result()
    finally:
        for task in trying:
            task.add_done_callback(_let_go)
            task.cancel()
    raise failed


async def _tried(family: int, kind: int, protocol: int, _name: str, address: Any) -> socket.socket:
    attempt = socket.socket(family, kind, protocol)
    attempt.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(attempt, address)
    except BaseException:  # also given up: whatever ends the attempt, its socket goes with it
        attempt.close()
        raise
    return attempt


def _let_go(task: "asyncio.Task[socket.socket]") -> None:
    """Another address was quicker."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
