"""Programs that stand ready for the next message: started, asked nothing yet, few, and not for long.

Only a process that has had no turn is here, so nothing of one chat can reach another. One for each way of starting one
(home, model, instructions); `MOST` in all and `AGE` at most, which bounds their memory: 140 MB each for Codex, 200 MB
for Claude Code (clis.md). Each belongs to the event loop that it was started in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Generic, TypeVar

from conch.engines.base import EngineError
from conch.engines.cli_process import CliProcess

MOST = 2
AGE = 600.0  # seconds

P = TypeVar("P", bound=CliProcess)
Start = Callable[[], Awaitable[P]]


@dataclass(slots=True)
class _Spare(Generic[P]):
    process: P
    loop: asyncio.AbstractEventLoop
    timer: asyncio.TimerHandle


class Spares(Generic[P]):
    """The ready processes of one engine."""

    def __init__(self) -> None:
        self._ready: dict[Hashable, _Spare[P]] = {}
        self._starting: dict[Hashable, asyncio.Task[None]] = {}

    async def take(self, key: Hashable, start: Start[P]) -> P:
        """One that is ready, for good; else a new one."""
        spare = self._ready.pop(key, None)
        if spare is None:
            return await start()
        spare.timer.cancel()
        if spare.loop is asyncio.get_running_loop() and spare.process.runs:
            return spare.process
        spare.process.end()
        return await start()

    def prepare(self, key: Hashable, start: Start[P]) -> None:
        """Have one ready soon. Failing to says nothing: the turn that needs it will find out."""
        if key in self._ready or key in self._starting:
            return
        task = asyncio.get_running_loop().create_task(self._fill(key, start), context=Context())
        self._starting[key] = task
        task.add_done_callback(lambda _: self._starting.pop(key, None))

    async def _fill(self, key: Hashable, start: Start[P]) -> None:
        try:
            process = await start()
        except (EngineError, OSError):
            return
        while len(self._ready) >= MOST:
            self._drop(next(iter(self._ready)))
        loop = asyncio.get_running_loop()
        self._ready[key] = _Spare(process, loop, loop.call_later(AGE, self._drop, key))

    def _drop(self, key: Hashable) -> None:
        spare = self._ready.pop(key, None)
        if spare is not None:
            spare.timer.cancel()
            spare.process.end()

    async def close(self) -> None:
        """End them all."""
        for task in list(self._starting.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        ending = [spare.process for spare in self._ready.values()]
        for key in list(self._ready):
            self._drop(key)
        await asyncio.gather(*(process.ended() for process in ending))
