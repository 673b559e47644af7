"""A program's standard input and output, read and written by the event loop, each closed exactly once.

The loop only watches them; it doesn't own them. A transport of uvloop's over a pipe closes its descriptor twice, and by
the second time the number may be another's: a file of the database's, a connection, another program's pipe.
"""

import asyncio
import os
from collections.abc import Callable
from typing import IO, Any

CHUNK = 64 * 1024


class Pipes:
    """Both ends, of the loop that made this. `close` may be called from any thread, and again."""

    def __init__(self, writing: IO[bytes], reading: IO[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._writing, self._reading = writing, reading
        self._turn = asyncio.Lock()
        self._waiters: set[asyncio.Future[None]] = set()
        for pipe in (writing, reading):
            os.set_blocking(pipe.fileno(), False)

    async def read(self) -> bytes:
        """What the program has said since, at least something; nothing once it has ended, or this is closed."""
        while not self._reading.closed:
            try:
                return os.read(self._reading.fileno(), CHUNK)
            except BlockingIOError:
                await self._able(self._reading, self._loop.add_reader, self._loop.remove_reader)
        return b""

    async def write(self, data: bytes) -> None:
        """All of it, one call after another. Raises BrokenPipeError once the program takes no more."""
        left = memoryview(data)
        async with self._turn:
            while left:
                if self._writing.closed:
                    raise BrokenPipeError
                try:
                    left = left[os.write(self._writing.fileno(), left) :]
                except BlockingIOError:
                    await self._able(self._writing, self._loop.add_writer, self._loop.remove_writer)

    async def _able(self, pipe: IO[bytes], watch: Callable[..., Any], leave: Callable[[int], Any]) -> None:
        waiter = self._loop.create_future()
        self._waiters.add(waiter)
        watch(pipe.fileno(), _wake, waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if not pipe.closed:  # else the number may be another's by now
                leave(pipe.fileno())

    def close(self) -> None:
        """Close both; whoever waits goes on at once."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here or self._loop.is_closed():
            self._close()
        else:
            self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        for pipe, leave in ((self._writing, "remove_writer"), (self._reading, "remove_reader")):
            if not pipe.closed:
                if not self._loop.is_closed():
                    getattr(self._loop, leave)(pipe.fileno())
                pipe.close()
        for waiter in self._waiters:
            _wake(waiter)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
