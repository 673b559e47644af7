"""A gate that a reply waits at until a test, in another thread, lets it on: no test sleeps to be sure of a moment."""

import asyncio
import contextlib
import threading


class Gate:
    """Each `release` lets one waiter pass: the one that waits, or the next to come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passes = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def release(self) -> None:
        with self._lock:
            if not self._waiting:
                self._passes += 1
                return
            loop, future = self._waiting.pop(0)
        loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(None))

    async def passed(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._passes:
                self._passes -= 1
                return
            place = (loop, loop.create_future())
            self._waiting.append(place)
        try:
            await place[1]
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._waiting.remove(place)
