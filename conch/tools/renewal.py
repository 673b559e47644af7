"""Renewing a sign-in that has run out: one at a time across all processes of Conch.

A refresh token may work once only. Two that renew at once sign each other out, so whoever has waited looks first
whether another was faster. It happens on a thread of its own, which a cancelled turn leaves to its end: a renewal is
never broken off half-way.
"""

import asyncio
import fcntl
from collections.abc import MutableMapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from django.utils import timezone

from conch.configuration import data_folder
from conch.db import look, step
from conch.engines.local_server import held
from conch.tools import grants
from conch.tools.grants import Grant
from conch.tools.launches import Launch
from conch.tools.trouble import ToolTrouble

WITHIN = 20.0  # seconds
GOODBYE = 5.0  # seconds to revoke what nobody is to have any more

_locks: MutableMapping[asyncio.AbstractEventLoop, dict[int, asyncio.Lock]] = WeakKeyDictionary()


async def renewed(launch: Launch, refused: Grant) -> Grant:
    """A sign-in with a newer token than the refused one. Raises ToolTrouble: it is over, or can't be renewed now."""
    locks = _locks.setdefault(asyncio.get_running_loop(), {})
    async with locks.setdefault(launch.server, asyncio.Lock()):
        return await asyncio.to_thread(_alone, launch, refused)


def _alone(launch: Launch, refused: Grant) -> Grant:
    with held(_lock_of(launch.server), fcntl.LOCK_EX):
        return asyncio.run(_renewed(launch, refused))


def _lock_of(server: int) -> Path:
    locks = data_folder() / "locks"
    locks.mkdir(mode=0o700, exist_ok=True)
    return locks / f"tools-{server}"


async def _renewed(launch: Launch, refused: Grant) -> Grant:
    kept = await look(grants.grant_of, launch.server)
    if kept is None or kept.name != refused.name or not kept.signed_in:
        raise ToolTrouble("sign_in_over")
    if kept.access_token != refused.access_token:
        return kept  # another was faster
    oauth, asking = _asking(launch)
    try:
        async with asyncio.timeout(WITHIN):
            made: Grant | None = await oauth.renewed(asking, kept, timezone.now())
    except TimeoutError as error:
        raise ToolTrouble("sign_in_late", seconds=round(WITHIN)) from error
    if made is None:
        await step(grants.end, launch.server, kept.name, timezone.now())
        raise ToolTrouble("sign_in_over")
    if not await step(grants.replace_tokens, launch.server, made):
        await revoked(launch, made)
        raise ToolTrouble("sign_in_over")
    return made


async def revoked(launch: Launch, grant: Grant) -> None:
    """Have the server forget tokens that are kept here no more; where it doesn't listen, that is all there is to do."""
    oauth, asking = _asking(launch)
    with suppress(ToolTrouble, TimeoutError):
        async with asyncio.timeout(GOODBYE):
            await oauth.revoked(asking, grant)


def _asking(launch: Launch) -> tuple[Any, Any]:
    oauth = import_module("conch.tools.oauth")
    return oauth, oauth.Asking(launch.url, not launch.public_only)
