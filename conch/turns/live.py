"""The turns that run in this process, for those who watch them here.

What is told is kept for the run: a watcher that comes late, or is slow, gets it all and in order. A `Live` that is
closed before its last event has gone elsewhere (another process claimed the turn): its watchers go on in the database.
"""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator
from typing import Any

from conch.turns.events import LAST, Event

HEARTBEAT_SECONDS = 15.0

_running: dict[int, "Live"] = {}


class Live:
    """One run of one turn in this process: its place in the stream of events, what was told, and who waits."""

    def __init__(self, turn_id: int) -> None:
        self.turn_id = turn_id
        self.position = 0
        self.told: list[Event] = []
        self.closed = False
        self.stop = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    def tell(self, kind: str, data: dict[str, Any]) -> Event:
        """Tell an event to everybody, at the next id (text: by its length)."""
        self.position += len(data["text"]) if kind == "delta" else 1
        event = Event(self.position, kind, data)
        self.told.append(event)
        self._wake()
        return event

    def tell_all(self, events: list[Event]) -> None:
        """Tell events that have their ids already: they were committed with a step."""
        if events:
            self.told += events
            self.position = events[-1].id
            self._wake()

    def close(self) -> None:
        """Nothing more comes from here."""
        self.closed = True
        if _running.get(self.turn_id) is self:
            del _running[self.turn_id]
        self._wake()

    async def watch(self, after: int) -> AsyncIterator[Event | None]:
        """What is told beyond that id, until the run's last event or the close; None is a sign of life."""
        place = bisect_right(self.told, after, key=lambda event: event.id)
        while True:
            while place < len(self.told):
                event = self.told[place]
                place += 1
                if event.id <= after:
                    continue  # told after this watcher came, and seen by it elsewhere
                yield event
                if event.kind in LAST:
                    return
            if self.closed:
                return
            if not await self._more():
                yield None

    async def _more(self) -> bool:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait_for(future, HEARTBEAT_SECONDS)
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(future)
        return True

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)


def open_live(turn_id: int) -> Live | None:
    """The run of this turn that begins now in this process; None when one is under way here already."""
    if turn_id in _running:
        return None
    live = _running[turn_id] = Live(turn_id)
    return live


def live_of(turn_id: int) -> Live | None:
    """The run of that turn in this process, if there is one."""
    return _running.get(turn_id)


def all_live() -> list[Live]:
    """Every run in this process."""
    return list(_running.values())
