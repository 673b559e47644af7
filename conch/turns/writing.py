"""Writing down what runs here: one flush of all turns whose text has grown, every 250 ms, and the leases."""

import asyncio
import logging

from django.db import DatabaseError

from conch.db import step
from conch.turns.clock import SYSTEM, Clock
from conch.turns.record import flush
from conch.turns.run import Runner, running, stop_here

logger = logging.getLogger("conch.turns")

EVERY_SECONDS = 0.25
ROUNDS_A_LEASE = 16  # a lease is renewed every four seconds, also for a turn that says nothing


async def keep_writing(clock: Clock = SYSTEM) -> None:
    """Write until cancelled. While the database can't be reached nothing is lost: the text is kept and comes later."""
    rounds = 0
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        rounds += 1
        grown = [
            one for one in running() if one.run_number and (one.dirty or one.unkept or not rounds % ROUNDS_A_LEASE)
        ]
        if grown:
            await _write(grown, clock)


async def _write(grown: list[Runner], clock: Clock) -> None:
    growths = [one.growth() for one in grown]
    try:
        for turn_id in await step(flush, growths, clock.now()):
            stop_here(turn_id)
    except DatabaseError as error:  # a full disk, a lock: no fault of ours that a trace would show
        logger.warning("what had arrived of %s turns could not be written down yet: %s", len(growths), error)
        for one, growth in zip(grown, growths, strict=True):
            one.unkept[:0] = growth.events
            one.dirty = True
