"""The connections under every HTTP engine: no proxy, no redirect, no cookie, and for guests only public addresses."""

import asyncio
import ipaddress
import socket
import ssl
import zlib
from contextlib import suppress
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2

from conch.engines.wire import CONNECT_SECONDS, SILENCE_SECONDS
from conch.engines.wire_network import Network

# Prefixes behind which the last four bytes are an IPv4 address (RFC 4291, 2765, 6052).
DISGUISES = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
# Of a network of one's own, though not every Python says so: translation within it, and what came before fc00::/7.
INSIDE = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "fec0::/10")))
# Bytes of a refusal, as it came and unpacked: it is an object with a sentence, and is looked through for what it means.
LONGEST_REFUSAL = 64 * 1024
TIMES = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS, write=30.0, pool=CONNECT_SECONDS)
LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=30.0)


def connections(*, public_only: bool) -> httpx2.AsyncClient:
    """One pool of connections. Accounts of one host share them, so nothing of one may stay on them (cookies)."""
    made = Transport(verify=tls(), trust_env=False, limits=LIMITS)
    transport = Bounded(PublicOnly(made) if public_only else made)
    no_cookies = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    return httpx2.AsyncClient(
        transport=transport,
        timeout=TIMES,
        trust_env=False,
        follow_redirects=False,
        cookies=no_cookies,
        headers={"Accept-Encoding": "identity"},
    )


@cache
def tls() -> ssl.SSLContext:
    """The certificates that are trusted: the system's, whatever the environment says. Read once, for all."""
    return httpx2.create_ssl_context(trust_env=False)


class Transport(httpx2.AsyncHTTPTransport):
    """The client's own transport, over connections of ours."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._pool._network_backend = Network()  # noqa: SLF001 - it takes no other one by its front door


class Bounded(httpx2.AsyncBaseTransport):
    """Reads a refusal's body here, up to a bound: the SDKs read it whole, however long it is, and however packed."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, its body bounded where it is no success."""
        response = await self._inner.handle_async_request(request)
        if response.status_code < 300:
            return response
        whole = bytearray()
        try:
            async for chunk in response.stream:  # type: ignore[union-attr]
                whole += chunk
                if len(whole) > LONGEST_REFUSAL:
                    break
        finally:
            await response.aclose()
        packed = response.headers.get("content-encoding", "")
        headers = [pair for pair in response.headers.raw if pair[0].lower() not in _OF_THE_WHOLE]
        content = _unpacked(bytes(whole[:LONGEST_REFUSAL]), packed)
        return httpx2.Response(response.status_code, headers=headers, content=content, extensions=response.extensions)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


_OF_THE_WHOLE = {b"content-length", b"content-encoding"}


def _unpacked(body: bytes, packed: str) -> bytes:
    """The body of one who packs it without having been asked to, as much of it as a refusal may have."""
    if packed.strip().lower() not in {"gzip", "x-gzip", "deflate"}:
        return body
    with suppress(zlib.error):
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, LONGEST_REFUSAL)
    return b""


class PublicOnly(httpx2.AsyncBaseTransport):
    """Connects to public addresses only, whatever a name resolves to at that moment (SEC-04).

    The name is resolved here and the request goes to the checked address itself, so that a second look-up can't change
    it; the certificate is still checked against the name.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it, or raise ConnectError: nothing was sent."""
        name = request.url.host
        address = await public_address(name, request.url.port or (443 if request.url.scheme == "https" else 80))
        if address is None:
            raise httpx2.ConnectError(f"{name} is not a public address", request=request)
        extensions: dict[str, Any] = {**request.extensions, "sni_hostname": name}
        fixed = httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=extensions,
        )
        return await self._inner.handle_async_request(fixed)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


async def public_address(host: str, port: int) -> str | None:
    """An address of that host to connect to; None if it has none, or any that isn't public."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return None
    addresses = [str(entry[4][0]) for entry in found]
    return addresses[0] if addresses and all(map(is_public, addresses)) else None


def is_public(address: str) -> bool:
    """Whether that address is of the internet: not loopback, private, link-local, reserved, nor a disguise of it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        ip = _undisguised(ip)
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in INSIDE)


def _undisguised(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that stands behind this one, where one does: mapped, translated (NAT64, SIIT) or tunnelled."""
    if ip.sixtofour is not None:
        return ip.sixtofour
    if any(ip in network for network in DISGUISES):
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip
