"""Lists of tools that follow their servers: read when a session opens, when a server says so, and once a day.

A yes holds for the tool as it described itself (docs/decisions/0014): before a call runs, its server is asked in the
very session whether the tool still says the same.
"""

import asyncio
from contextlib import suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any

from django.db import DatabaseError
from django.utils import timezone

from conch import reread
from conch.db import look, step
from conch.models import ToolServer
from conch.tools import servers
from conch.tools.launches import Launch
from conch.tools.listing import WITHIN, kept_of
from conch.tools.sessions import Session
from conch.tools.trouble import ToolTrouble

# Seconds until a list is read whose server said that it changed: several notices are one. Then less and less often.
SETTLES, LONGEST_PAUSE = 1.0, 300.0
MOST_AT_ONCE = 20


async def as_asked(session: Session, launch: Launch, tool: str, digest: str, seconds: float) -> None:
    """Make sure that the tool is what it was when it was offered. Raises ToolTrouble: no call may go out."""
    listed = session.listed
    async with listed.reading:
        if listed.stale or not listed.has(tool, digest):
            try:
                await _read(session, launch, seconds)
            except ToolTrouble as trouble:
                trouble.sent = False
                raise
    if not listed.has(tool, digest):
        raise ToolTrouble("changed")


async def _read(session: Session, launch: Launch, seconds: float, *, by_itself: bool = False) -> None:
    """Read the list in that session and keep it. Raises ToolTrouble."""

    async def asked(client: Any) -> Any:
        return await import_module("conch.tools.protocol").listed(client)

    begun = session.listed.begin()
    tools, whole = await session.use(asked, seconds, by_itself=by_itself)
    found = kept_of(tools, whole=whole)
    session.listed.took({tool["name"]: tool["digest"] for tool in found.tools}, begun)
    session.listed.followed_by(partial(_follow, session, launch))
    await step(servers.keep_listing, launch.server, found, timezone.now())


async def _follow(session: Session, launch: Launch) -> None:
    """The server said that its list changed: read it again until what was read is what it has."""
    pause = SETTLES
    with suppress(ToolTrouble, DatabaseError):
        while session.listed.stale and not session.over:
            await asyncio.sleep(pause)
            pause = min(10 * pause, LONGEST_PAUSE)
            async with session.listed.reading:
                if session.listed.stale:
                    await _read(session, launch, WITHIN, by_itself=True)


def due(now: datetime) -> list[int]:
    """The servers whose list is due."""
    rows = ToolServer.objects.filter(removed_at=None)
    return list(reread.due(rows, now).order_by("listed_at").values_list("pk", flat=True)[:MOST_AT_ONCE])


async def read_if_due(server_id: int, now: datetime) -> None:
    """Ask one server for its tools anew where nobody else does; one that can't be asked keeps what it listed."""
    server = await step(_taken, server_id, now)
    if server is not None and not await servers.check(server, now):
        await step(_failed, server, now)


async def read_due(now: datetime) -> None:
    """Ask the servers that are due, one after another."""
    for server_id in await look(due, now):
        await read_if_due(server_id, now)


# Steps: database work only.


def _taken(server_id: int, now: datetime) -> ToolServer | None:
    """The server as it was, for whoever reads its list now."""
    server = ToolServer.objects.select_related("person").filter(pk=server_id, removed_at=None).first()
    return server if server is not None and reread.taken(ToolServer.objects.all(), server_id, now) else None


def _failed(server: ToolServer, now: datetime) -> None:
    ToolServer.objects.filter(pk=server.pk, removed_at=None).update(**reread.failed(server, now))
