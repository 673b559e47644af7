"""`manage.py worker`: what has to happen without a page open, in a process of its own."""

import asyncio
import signal
from typing import Any

from django.conf import settings
from django.db import connection

from conch.management.base import Command as Base


class Command(Base):
    """Work until told to stop."""

    serves = True
    help = "Run background tasks, routines, waiting turns, sweeps and readings of room; any number on PostgreSQL."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Work until SIGTERM or SIGINT; what runs is brought to an end first."""
        connection.ensure_connection()
        settings.CONCH_WORKER = True
        asyncio.run(_live())


async def _live() -> None:
    """The life of a serving process, without the serving."""
    from conch.lifespan import with_lifespan

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    told = iter(["lifespan.startup"])

    async def receive() -> dict[str, str]:
        kind = next(told, None)
        if kind is None:
            await stop.wait()
        return {"type": kind or "lifespan.shutdown"}

    async def send(_message: dict[str, str]) -> None:
        """Nobody waits for these."""

    await with_lifespan(None)({"type": "lifespan"}, receive, send)
