"""What is done beside the serving: turns that wait are woken, those left behind are run, those of the dead are ended.

Runs in every serving process that `up` starts, and alone as `manage.py worker`; any number at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.db import DatabaseError

from conch.db import look, step
from conch.turns import recovery, waiting
from conch.turns.clock import SYSTEM, Clock
from conch.turns.run import start
from conch.turns.writing import keep_writing

logger = logging.getLogger("conch.worker")

LOOK_SECONDS = 1.0
SWEEP_SECONDS = 10.0

_woken: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}


def wake() -> None:
    """Look at once: something has changed. Without a worker in this process another one looks within a second."""
    event = _woken.get(asyncio.get_running_loop())
    if event is not None:
        event.set()


async def work(stop: asyncio.Event, clock: Clock = SYSTEM) -> None:
    """Work until `stop` is set. A database that is away is waited for."""
    loop = asyncio.get_running_loop()
    event = _woken[loop] = asyncio.Event()
    writing = loop.create_task(keep_writing(clock), name="writing")
    swept = 0.0
    try:
        while not stop.is_set():
            event.clear()
            if loop.time() - swept >= SWEEP_SECONDS or not swept:
                swept = loop.time()
                await _round(sweep, clock)
            await _round(look_round, clock)
            await _either(event, stop)
    finally:
        _woken.pop(loop, None)
        writing.cancel()


async def _round(what: Callable[[Clock], Awaitable[None]], clock: Clock) -> None:
    try:
        await what(clock)
    except DatabaseError:
        logger.exception("the database can't be used; trying again in a second")


async def _either(event: asyncio.Event, stop: asyncio.Event) -> None:
    waits = {asyncio.ensure_future(event.wait()), asyncio.ensure_future(stop.wait())}
    await asyncio.wait(waits, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()


async def look_round(clock: Clock = SYSTEM) -> None:
    """One look: wake the turns that are due, run those that nobody has begun."""
    for turn_id in await look(waiting.due, clock.now()):
        start(turn_id, waking=True, clock=clock)
    for turn_id in await look(waiting.left_behind, clock.now()):
        start(turn_id, clock=clock)


async def sweep(clock: Clock = SYSTEM) -> None:
    """End the turns whose process is gone, and run what waited behind them."""
    for turn_id in await look(recovery.lapsed, clock.now()):
        following = await step(recovery.interrupt, turn_id, clock.now())
        if following is not None:
            start(following, clock=clock)
