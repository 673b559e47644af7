"""HTTP/1.1 over raw asyncio: parsing, keep-alive, chunked answers with backpressure, and ways to break off.

No framework, so that several hundred streams at 20 chunks a second cost little (speed.md). An `Exchange` is one request
and the means to answer it; when the client goes away, the task that answers is cancelled.
"""

import asyncio
import contextlib
import json
import traceback
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

LARGEST_HEAD = 256 * 1024
LARGEST_BODY = 128 * 1024 * 1024


_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode  # made once: it is used for every chunk


def compact(value: Any) -> bytes:
    """As JSON without a space; a lone surrogate arrives escaped, as providers send it."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body as JSON; {} where it is none."""
        with contextlib.suppress(ValueError):
            return json.loads(self.body)
        return {}


class Exchange:
    """One request and the means to answer it: whole, as a stream of chunks, or by breaking off."""

    def __init__(self, connection: "Connection", request: Request) -> None:
        self._connection = connection
        self.request = request
        self.begun = False
        self.ended = False

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Overloaded"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        self.begun = True
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """Answer whole. A body that isn't bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) else compact(body)
        kind = {} if isinstance(body, bytes) else {"content-type": "application/json"}
        head = kind | (headers or {}) | {"content-length": str(len(raw))}
        raw = b"" if self.request.method == "HEAD" else raw
        self._connection.write(self._head(status, head) + raw)
        self.ended = True

    def begin(self, headers: dict[str, str] | None = None, status: int = 200) -> None:
        """Send the head of a stream of events."""
        kind = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
        self._connection.write(self._head(status, kind | (headers or {}) | {"transfer-encoding": "chunked"}))

    def write(self, data: bytes) -> None:
        self._connection.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def ready(self) -> None:
        """Wait until the client has taken enough of what was written."""
        await self._connection.writable.wait()

    def end(self) -> None:
        self._connection.write(b"0\r\n\r\n")
        self.ended = True

    def cut(self) -> None:
        """Break the connection off in the middle of whatever was being said."""
        self.ended = True
        self._connection.abort()


class Connection(asyncio.Protocol):
    """One client connection; requests on it are answered one after another."""

    def __init__(self, answering, open_connections: set["Connection"]) -> None:
        self._answering = answering
        self._open = open_connections
        self._buffer = bytearray()
        self._task: asyncio.Task | None = None
        self._transport: asyncio.Transport | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport) -> None:
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, exc) -> None:
        self._open.discard(self)
        self.writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        try:
            request = self._take()
        except ValueError:
            self.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self._transport.close()
            return
        if request is not None:
            self._task = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: Request) -> None:
        exchange = Exchange(self, request)
        try:
            await self._answering(exchange)
        except asyncio.CancelledError:
            return
        except Exception:  # noqa: BLE001  the server's edge: a bug here must not look like a silent provider
            traceback.print_exc()
        if not exchange.ended:  # a stream that was left open ends with its connection
            self.abort()
        self._task = None
        if request.headers.get("connection", "").lower() == "close":
            self._transport.close()
        elif self._buffer:
            self._next()

    def _take(self) -> Request | None:
        """Take one whole request off the buffer; None while it is still arriving."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > LARGEST_HEAD:
                raise ValueError("the head is too long")
            return None
        first, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        taken = self._body(end + 4, headers)
        if taken is None:
            return None
        body, used = taken
        del self._buffer[:used]
        split = urlsplit(target)
        return Request(method, unquote(split.path), dict(parse_qsl(split.query)), headers, body)

    def _body(self, start: int, headers: dict[str, str]) -> tuple[bytes, int] | None:
        if headers.get("expect", "").lower() == "100-continue":
            headers.pop("expect")
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks(start)
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= LARGEST_BODY:
            raise ValueError("the body is too long")
        if len(self._buffer) < start + length:
            return None
        return bytes(self._buffer[start : start + length]), start + length

    def _chunks(self, at: int) -> tuple[bytes, int] | None:
        parts = []
        while (line_end := self._buffer.find(b"\r\n", at)) >= 0:
            size = int(bytes(self._buffer[at:line_end]).split(b";")[0], 16)
            at = line_end + 2 + size + 2
            if len(self._buffer) < at:
                return None
            if size == 0:
                return b"".join(parts), at
            parts.append(bytes(self._buffer[line_end + 2 : line_end + 2 + size]))
        return None
