"""The life of a serving process: the worker beside it, and its turns and tool servers brought to an end before it goes.

Django has no lifespan of its own; this stands before it.
"""

import asyncio
import contextlib
import gc
import logging
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection

from conch.engines.registry import engine, engines_in_use, paths
from conch.ledger import prices
from conch.models import Account
from conch.tasks import routines
from conch.tools import sessions
from conch.turns.run import all_ended, begin_no_more, interrupt_all
from conch.turns.worker import work
from conch.turns.writing import keep_writing

logger = logging.getLogger("conch")

GRACE_SECONDS = 30.0
LAST_SECONDS = 5.0


def with_lifespan(application: Any) -> Any:
    """The application, with a lifespan."""

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            await application(scope, receive, send)

    return outer


async def _live(receive: Any, send: Any) -> None:
    await receive()
    stop = asyncio.Event()
    beside = [asyncio.create_task(keep_writing(), name="writing")]
    if settings.CONCH_WORKER:
        beside.append(asyncio.create_task(work(stop, also=(routines.look_round,)), name="worker"))
    await send({"type": "lifespan.startup.complete"})
    warming = asyncio.create_task(asyncio.to_thread(_warm), name="warming")
    await receive()
    warming.cancel()
    stop.set()
    await end_turns()
    await sessions.end_all()
    for task in beside:
        task.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    for used in engines_in_use():
        await used.close()
    await send({"type": "lifespan.shutdown.complete"})


def _warm() -> None:
    """Import the clients of connected accounts and the price list right after the start: else the first turn pays.

    What is there then stays for good, so the collector needn't look through it again: that took a tenth of a second, in
    which no answer streams.
    """
    try:
        connected = set(Account.objects.filter(removed_at=None).values_list("engine", flat=True))
    except DatabaseError:
        return
    finally:
        connection.close()
    for name in connected & set(paths()):
        engine(name).prepare()
    prices.warm()
    gc.collect()
    gc.freeze()


async def end_turns(grace: float = GRACE_SECONDS) -> None:
    """Begin no turn any more; let what runs come to its end for a while, then end it with what had arrived kept."""
    begin_no_more()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(all_ended(), grace)
        return
    interrupt_all()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(all_ended(), LAST_SECONDS)
