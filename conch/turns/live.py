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
        self._waiting: set[asyncio.Future[bool]] = set()

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

    async def batches(self, after: int) -> AsyncIterator[list[Event]]:
        """What is told beyond that id, each time all that is there, until the run's last event or the close.

        An empty one is a sign of life. A slow watcher gets fewer and larger ones.
        """
        place = bisect_right(self.told, after, key=lambda event: event.id)
        while True:
            if place < len(self.told):
                # What was told after this watcher came, it may have seen elsewhere.
                batch = [event for event in self.told[place:] if event.id > after]
                place = len(self.told)
                if batch:
                    yield batch
                if self.told[-1].kind in LAST and place == len(self.told):
                    return
            elif self.closed:
                return
            elif not await self._more():
                yield []

    async def _more(self) -> bool:
        """Wait until something was told, or for as long as silence may last."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        silence = loop.call_later(HEARTBEAT_SECONDS, _answer, future, False)
        self._waiting.add(future)
        try:
            return await future
        finally:
            silence.cancel()
            self._waiting.discard(future)

    def _wake(self) -> None:
        for future in self._waiting:
            _answer(future, True)


def _answer(future: "asyncio.Future[bool]", told: bool) -> None:
    if not future.done():
        future.set_result(told)


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
