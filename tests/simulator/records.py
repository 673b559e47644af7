"""Every request that arrived, in order: when, where, by which key, with what, and what came of it."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.server import Request
from tests.simulator.wire import Asked, Usage


@dataclass(slots=True)
class Seen:
    """One request. `at`: the simulator's clock, unix seconds; `monotonic`: for measuring; `asked`: if for a reply."""

    at: float
    monotonic: float
    method: str
    path: str
    key: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    query: dict[str, str] = field(default_factory=dict)
    asked: Asked | None = None
    status: int = 0
    outcome: str = ""
    said: int = 0  # characters of the answer that were sent
    billed: Usage | None = None

    @property
    def json(self) -> Any:
        return Request(self.method, self.path, {}, {}, self.body).json

    @property
    def model(self) -> str:
        return self.asked.model if self.asked else ""

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """What history arrived, as (role, text)."""
        return self.asked.messages if self.asked else ()

    def as_json(self) -> dict[str, Any]:
        billed = self.billed
        return {
            "at": self.at,
            "method": self.method,
            "path": self.path,
            "key": self.key,
            "headers": self.headers,
            "body": self.json,
            "model": self.model,
            "messages": [list(pair) for pair in self.messages],
            "status": self.status,
            "outcome": self.outcome,
            "billed": billed
            and {"input_tokens": billed.input_tokens, "output_tokens": billed.output_tokens, "cost": billed.cost},
        }


class Records:
    """The requests seen so far; waiting for the next ones needs no sleeping."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._arrived = threading.Condition()
        self.keeps_bodies = True

    def add(self, request: Request, key: str, at: float) -> Seen:
        body = request.body if self.keeps_bodies else b""
        fields = (request.method, request.path, key, request.headers, body, request.query)
        seen = Seen(at, time.monotonic(), *fields)
        with self._arrived:
            self._seen.append(seen)
        return seen

    def announce(self) -> None:
        """Wake whoever waits: a request is there with all that was asked."""
        with self._arrived:
            self._arrived.notify_all()

    def clear(self) -> None:
        with self._arrived:
            self._seen.clear()

    def matching(self, key: str | None = None, path: str = "", *, replies_only: bool = False) -> list[Seen]:
        """Requests of this key, under paths that contain this; `replies_only`: those that asked for a reply."""
        return list(self._matching(key, path, replies_only=replies_only))

    def _matching(self, key: str | None, path: str, *, replies_only: bool) -> Iterator[Seen]:
        for seen in list(self._seen):
            if key in {None, seen.key} and path in seen.path and (seen.asked is not None or not replies_only):
                yield seen

    def wait(self, count: int, key: str | None, path: str, *, replies_only: bool, timeout_s: float) -> list[Seen]:
        """Wait until there are so many. Raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        with self._arrived:
            while len(found := self.matching(key, path, replies_only=replies_only)) < count:
                if not self._arrived.wait(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"{len(found)} of {count} requests arrived in {timeout_s} s")
        return found
