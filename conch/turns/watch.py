"""Watching a turn: its latest run from the start or from an id, then live until it ends. Watching never starts work.

A run in this process is followed as it is told; one in another is followed in the database, at most 150 ms behind.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from time import monotonic

from conch.db import look
from conch.models import Turn
from conch.turns.events import ENDS, LAST, Event, rows_of, told_again
from conch.turns.live import HEARTBEAT_SECONDS, live_of

LOOK_SECONDS = 0.15


async def watch(turn_id: int, after: int | None = None, *, follow: bool = False) -> AsyncIterator[Event | None]:
    """Tell the turn's events beyond `after`, one by one; None is a heartbeat. Ends as `batches` does."""
    async with aclosing(batches(turn_id, after, follow=follow)) as told:
        async for batch in told:
            for event in batch or (None,):
                yield event


async def batches(turn_id: int, after: int | None = None, *, follow: bool = False) -> AsyncGenerator[list[Event], None]:
    """Tell the turn's events beyond `after`, each time all that are there; an empty list is a heartbeat.

    Ends with the run's last event; with `follow`, after `waiting` and `capped`, stays for the next run.
    """
    seen = after or 0
    beat = monotonic()
    while True:
        live = live_of(turn_id)
        told = live.batches(seen) if live is not None else _from_the_database(turn_id, seen)
        last = None
        async for batch in told:
            if batch:
                seen, last = batch[-1].id, batch[-1].kind
            beat = monotonic()
            yield batch
        if last in ENDS or (last in LAST and not follow):
            return
        if last is None and live is None:
            if await look(_is_over, turn_id, seen, follow=follow):
                return
            if monotonic() - beat > HEARTBEAT_SECONDS:
                beat = monotonic()
                yield []
            await asyncio.sleep(LOOK_SECONDS)


async def _from_the_database(turn_id: int, after: int) -> AsyncIterator[list[Event]]:
    found = await look(_read, turn_id, after)
    if found:
        yield found


def _read(turn_id: int, after: int) -> list[Event]:
    turn = Turn.objects.filter(pk=turn_id).only("id", "run", "answer", "position").first()
    if turn is None or turn.position <= after:
        return []
    return list(told_again(turn, rows_of(turn), after))


def _is_over(turn_id: int, seen: int, *, follow: bool) -> bool:
    """Whether nothing more can come: the turn is gone, or at rest with all of it seen."""
    turn = Turn.objects.filter(pk=turn_id).only("state", "position").first()
    over = Turn.ENDS if follow else (*Turn.ENDS, Turn.State.WAITING, Turn.State.CAPPED)
    return turn is None or (turn.state in over and turn.position <= seen)
