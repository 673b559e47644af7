"""A server that is an address: the official client over connections of ours, which bound and clean what comes.

No proxy, redirect or cookie; for guests only addresses of the internet, whatever a name resolves to at that moment
(SEC-04). Nothing is asked for but what answers a call: the stream on which a server could speak by itself stays shut.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2
from mcp.client import Transport
from mcp.client.auth import utils as official
from mcp.client.streamable_http import streamable_http_client

from conch.engines.wire_text import clean_json
from conch.engines.wire_transport import LIMITS, PublicOnly, tls
from conch.tools.launches import Launch
from conch.tools.listing import plain
from conch.tools.signed import Signed
from conch.tools.trouble import ToolTrouble

LARGEST = 8 * 1024 * 1024  # bytes of one answer
MOST_EVENTS = 5000  # of one answer: notices of progress, and then what it is
MOST_RESUMED = 20  # answers that broke off and were taken up again, in one session
LONGEST_CHALLENGE = 2000  # characters of what a server that refuses asks for
TOO_LITTLE = "insufficient_scope"
TIMES = httpx2.Timeout(300.0, connect=10.0, write=30.0, pool=10.0)

_ODD = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def over_http(launch: Launch) -> Transport:
    """The transport of an address."""
    return _connected(launch)


@asynccontextmanager
async def _connected(launch: Launch) -> AsyncIterator[Any]:
    made = httpx2.AsyncHTTPTransport(verify=tls(), trust_env=False, limits=LIMITS)
    reached: httpx2.AsyncBaseTransport = PublicOnly(made) if launch.public_only else made
    if launch.grant is not None and launch.grant.signed_in and not launch.shows_own:
        reached = Signed(reached, launch, launch.grant)
    transport = Guarded(reached, launch)
    client = httpx2.AsyncClient(
        transport=transport,
        timeout=TIMES,
        trust_env=False,
        follow_redirects=False,
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        headers={**launch.secrets, "Accept-Encoding": "identity"},
    )
    async with client, streamable_http_client(launch.url, http_client=client, max_sse_event_size=LARGEST) as streams:
        yield streams


class Guarded(httpx2.AsyncBaseTransport):
    """What goes to a server and comes from it. An answer that is none ends the session, saying what it was."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, launch: Launch) -> None:
        self._inner = inner
        self._launch = launch
        self._resumed = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response, its body bounded and cleaned. Raises ToolTrouble."""
        if request.method == "GET" and not self._takes_up(request):
            return httpx2.Response(405)
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ToolTrouble("unreachable") from error
        if response.has_redirect_location or response.status_code in {401, 403} or response.status_code >= 500:
            await response.aclose()
            raise _answered(response, self._launch)
        headers = [
            (name, value)
            for name, value in response.headers.raw
            if name.lower() not in {b"content-length", b"content-encoding"}
        ]
        return httpx2.Response(
            response.status_code, headers=headers, stream=_Cleaned(response), extensions=response.extensions
        )

    def _takes_up(self, request: httpx2.Request) -> bool:
        self._resumed += "last-event-id" in request.headers
        return "last-event-id" in request.headers and self._resumed <= MOST_RESUMED

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _answered(response: httpx2.Response, launch: Launch) -> ToolTrouble:
    if response.has_redirect_location:
        return ToolTrouble("redirected")
    if response.status_code >= 500:
        return ToolTrouble("status", sent=True, status=response.status_code)
    trouble = _refused(response, launch)
    asked_for = response.headers.get("WWW-Authenticate", "")[:LONGEST_CHALLENGE]
    trouble.challenge = "".join(char for char in asked_for if char.isascii() and char.isprintable())
    return trouble


def _refused(response: httpx2.Response, launch: Launch) -> ToolTrouble:
    """Who asks isn't accepted: a sign-in has ended, or isn't enough, or is wanted, or a header is."""
    status = response.status_code
    if not launch.shows_own:
        if launch.grant is not None and status == 401:
            return ToolTrouble("sign_in_over")
        if launch.grant is not None and official.extract_field_from_www_auth(response, "error") == TOO_LITTLE:
            scope = official.extract_scope_from_www_auth(response) or ""
            return ToolTrouble("sign_in_scope", scope=plain(scope, LONGEST_CHALLENGE))
        if status == 401 and official.extract_resource_metadata_from_www_auth(response):
            return ToolTrouble("sign_in")
    return ToolTrouble("signed_out", status=status)


class _Cleaned(httpx2.AsyncByteStream):
    """A body of so many bytes at most, in whole lines, in whose JSON no lone surrogate and no NUL is left."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._events = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, part = LARGEST, bytearray()
        async for chunk in self._response.stream:  # type: ignore[union-attr]
            left -= len(chunk)
            if left < 0:
                raise ToolTrouble("too_much", sent=True)
            whole, newline, rest = chunk.rpartition(b"\n")
            if newline:
                part += whole
                yield b"".join(self._cleaned(line) + newline for line in part.split(newline))
                part.clear()
            part += rest
        if part:
            yield bytes(self._cleaned(part))

    def _cleaned(self, line: bytes | bytearray) -> bytes | bytearray:
        self._events += line.startswith(b"data:")
        if self._events > MOST_EVENTS:
            raise ToolTrouble("too_much", sent=True)
        return _clean(line)

    async def aclose(self) -> None:
        await self._response.aclose()


def _clean(line: bytes | bytearray) -> bytes | bytearray:
    if not _ODD.search(line):
        return line
    field, colon, value = line.partition(b"data:") if line.startswith(b"data:") else (b"", b"", line)
    with suppress(ValueError, RecursionError):
        return field + colon + json.dumps(clean_json(json.loads(value))).encode()
    return line
