"""Asking what belongs to a server's sign-in: its metadata, and where clients are registered and tokens given out.

A server names those addresses itself, so they are held to what its own address allows: https, or http on this computer
where the server is there too; inside a network only at the server's own host, and only for the owner (SEC-04).
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit

import httpx2

from conch.accounts.addresses import LONGEST, is_inside
from conch.engines.wire_transport import LIMITS, PublicOnly, tls
from conch.tools.listing import plain
from conch.tools.trouble import ToolTrouble

LARGEST = 256 * 1024  # bytes of one answer
WITHIN = 15.0  # seconds for one answer, however it comes
TIMES = httpx2.Timeout(WITHIN, connect=10.0)
OURS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "conch/0.1"}

Ask = Callable[[httpx2.Request], Awaitable[httpx2.Response]]


@asynccontextmanager
async def endpoints(server: str, *, owner: bool) -> AsyncIterator[Ask]:
    """A way to ask what that server's sign-in names. Asking raises ToolTrouble where that may not be, or can't be."""
    made = httpx2.AsyncHTTPTransport(verify=tls(), trust_env=False, limits=LIMITS)
    async with httpx2.AsyncClient(
        transport=_Held(made, server, owner=owner),
        timeout=TIMES,
        trust_env=False,
        follow_redirects=False,
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
    ) as client:

        async def ask(request: httpx2.Request) -> httpx2.Response:
            request.headers.update(OURS)
            try:
                async with asyncio.timeout(WITHIN):
                    response = await client.send(request, stream=True, follow_redirects=False)
                    return await _read(response)
            except (httpx2.HTTPError, TimeoutError) as error:
                raise ToolTrouble("sign_in_unreachable", host=request.url.host) from error

        yield ask


async def _read(response: httpx2.Response) -> httpx2.Response:
    whole = bytearray()
    try:
        async for chunk in response.aiter_raw():
            whole += chunk
            if len(whole) > LARGEST:
                raise ToolTrouble("too_much")
    finally:
        await response.aclose()
    return httpx2.Response(response.status_code, content=bytes(whole), request=response.request)


class _Held(httpx2.AsyncBaseTransport):
    def __init__(self, made: httpx2.AsyncBaseTransport, server: str, *, owner: bool) -> None:
        self._direct, self._public = made, PublicOnly(made)
        self._server, self._owner = server, owner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        address = str(request.url)
        hold(address, self._server, owner=self._owner)
        beside = self._owner and is_beside(address, self._server)
        return await (self._direct if beside else self._public).handle_async_request(request)

    async def aclose(self) -> None:
        await self._direct.aclose()


def hold(address: str, server: str, *, owner: bool) -> None:
    """Raises ToolTrouble for an address that a server's sign-in may not name."""
    if not allowed(address, server, owner=owner):
        raise ToolTrouble("sign_in_address", address=plain(address, 200))


def allowed(address: str, server: str, *, owner: bool) -> bool:
    """Whether a server's sign-in may be at that address: Conch asks there, or sends the person's browser there."""
    try:
        parts = urlsplit(address)
        inside, beside = is_inside(address), is_beside(address, server)
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.password is not None or len(address) > 4 * LONGEST:
        return False
    if inside and not (owner and beside):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def is_beside(address: str, server: str) -> bool:
    """Whether it is at the server's own host; this computer is one host, whatever it is called."""
    host, own = urlsplit(address).hostname or "", urlsplit(server).hostname or ""
    return host == own or (is_loopback(host) and is_loopback(own))


def is_loopback(host: str) -> bool:
    """Whether it is plainly this computer."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
