"""Whether anybody can be reached at all (R19): a bare connection to other hosts, with nothing sent."""

import asyncio
import contextlib
import ipaddress
import socket
from urllib.parse import urlsplit

from conch.db import look
from conch.engines.base import Billing
from conch.engines.registry import engine, paths
from conch.models import Account, Turn
from conch.turns.gathering import Begun

PATIENCE_SECONDS = 3.0


async def nobody_answers(begun: Begun) -> bool:
    """Whether no other host of this person's remote accounts answers either.

    Loopback addresses say nothing. With no other host to ask, it is offline where the name can't be resolved or no
    route is there.
    """
    asked = begun.asked
    assert asked is not None
    if asked.billing == Billing.LOCAL:
        return False
    own = _host(asked.access.base_url or engine(asked.engine).official_base_url)
    if own is None or _is_loopback(own[0]):
        return False
    addresses = await look(_addresses, asked.tried.turn_id)
    others = {host for address in addresses if (host := _host(address)) is not None} - {own}
    others = {host for host in others if not _is_loopback(host[0])}
    if not others:
        return await _no_way_to(own)
    answers = await asyncio.gather(*(_answers(host) for host in others))
    return not any(answers)


def _addresses(turn_id: int) -> list[str]:
    """Where the person's remote accounts are asked."""
    person = Turn.objects.filter(pk=turn_id).values_list("conversation__person_id", flat=True)[0]
    rows = Account.objects.filter(person_id=person, removed_at=None).values_list("engine", "base_url")
    return [base_url or engine(name).official_base_url for name, base_url in rows if name in paths()]


def _host(address: str) -> tuple[str, int] | None:
    parts = urlsplit(address)
    if not parts.hostname:
        return None
    return parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


async def _answers(host: tuple[str, int]) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(*host), PATIENCE_SECONDS)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _no_way_to(host: tuple[str, int]) -> bool:
    loop = asyncio.get_running_loop()
    try:
        await asyncio.wait_for(loop.getaddrinfo(*host, type=socket.SOCK_STREAM), PATIENCE_SECONDS)
    except (OSError, TimeoutError):
        return True
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(*host), PATIENCE_SECONDS)
    except OSError as error:
        import errno

        return error.errno in {errno.ENETUNREACH, errno.EHOSTUNREACH}
    except TimeoutError:
        return False
    writer.close()
    return False
