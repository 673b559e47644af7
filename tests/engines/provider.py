"""A provider on loopback that answers with exactly the bytes it is given, in the pieces it is given."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conch.engines.base import EngineError

PAYLOADS = Path(__file__).parent / "payloads"


def payload(name: str) -> Any:
    """A recorded shape: JSON parsed, anything else as bytes."""
    path = PAYLOADS / name
    return json.loads(path.read_text()) if path.suffix == ".json" else path.read_bytes()


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes = field(repr=False)

    @property
    def body(self) -> Any:
        return json.loads(self.raw) if self.raw else None


@dataclass
class Saying:
    """One answer. `end`: "whole", "cut" (closed before the body's end), "refuse" (closed before any byte), "hang"."""

    chunks: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    end: str = "whole"


class Provider:
    """Says what `says` queued, in order, by path where one is given; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.disconnected = asyncio.Event()
        self._queue: list[tuple[str, Saying]] = []
        self._always: dict[str, Saying] = {}
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> "Provider":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def stop(self) -> None:
        self._server.close()
        for writer in list(self._open):
            writer.close()
        await self._server.wait_closed()

    def says(
        self,
        chunks: Iterable[bytes | str] | bytes | str | dict | list,
        *,
        status=200,
        headers=None,
        end="whole",
        path="",
    ):
        """Queue an answer: bytes or pieces of them are an event stream, a dict or list is a JSON body."""
        self._queue.append((path, self._saying(chunks, status, headers, end)))

    def always(self, path: str, chunks, *, status=200, headers=None, end="whole"):
        """Answer every request for that path so."""
        self._always[path] = self._saying(chunks, status, headers, end)

    def says_payload(self, name: str, **more: Any) -> None:
        """Queue a recorded answer: `{"status", "headers", "body"}`, or a stream."""
        recorded = payload(name)
        if isinstance(recorded, dict) and "status" in recorded:
            self.says(recorded["body"], status=recorded["status"], headers=recorded["headers"], **more)
        else:
            self.says(recorded, **more)

    @staticmethod
    def _saying(chunks, status, headers, end) -> Saying:
        headers = dict(headers or {})
        if isinstance(chunks, dict) or (isinstance(chunks, list) and (not chunks or isinstance(chunks[0], dict))):
            headers.setdefault("content-type", "application/json")
            chunks = json.dumps(chunks)
        if isinstance(chunks, bytes | str):
            chunks = [chunks]
        headers.setdefault("content-type", "text/event-stream")
        return Saying([c.encode() if isinstance(c, str) else c for c in chunks], status, headers, end)

    def _next(self, path: str) -> Saying:
        for place, (wanted, saying) in enumerate(self._queue):
            if not wanted or path.startswith(wanted):
                del self._queue[place]
                return saying
        for wanted, saying in self._always.items():
            if path.startswith(wanted):
                return saying
        return self._saying({"error": {"message": f"nothing at {path}"}}, 404, None, "whole")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = first.split(" ")
                self.asked.append(Asked(method, path, headers, body))
                if not await self._say(self._next(path), writer, reader):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.disconnected.set()
        finally:
            self._open.discard(writer)
            writer.close()

    async def _say(self, saying: Saying, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> bool:
        if saying.end == "refuse":
            return False
        headers = {"transfer-encoding": "chunked"} | saying.headers
        lines = [f"HTTP/1.1 {saying.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for chunk in saying.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if saying.end == "hang":
            await reader.read(1)  # until the other side is gone
            self.disconnected.set()
            return False
        if saying.end == "cut":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def heard(events) -> list[Any]:
    """All events of a reply."""
    return [event async for event in events]


async def heard_until_refused(events) -> tuple[list[Any], EngineError]:
    """What came before the error, and the error."""
    said = []
    try:
        async for event in events:
            said.append(event)  # noqa: PERF401 - what came before the error is kept
    except EngineError as error:
        return said, error
    raise AssertionError(f"no refusal after {said}")


def text_of(events: Iterable[Any]) -> str:
    """The answer's text."""
    return "".join(event.text for event in events if type(event).__name__ == "Text")
