"""Where a server's sign-in may be (SEC-04), and that asking there is bounded: servers name those addresses."""

import asyncio
import contextlib

import httpx2
import pytest

from conch.tools import discovery, endpoints
from conch.tools.endpoints import allowed
from conch.tools.trouble import ToolTrouble

PUBLIC, HERE, LAN = "https://books.example/mcp", "http://127.0.0.1:9000/mcp", "https://10.0.0.5/mcp"


@pytest.mark.parametrize(
    ("address", "server", "owner", "may"),
    [
        ("https://auth.example/token", PUBLIC, True, True),
        ("https://auth.example/token", PUBLIC, False, True),
        ("http://auth.example/token", PUBLIC, True, False),
        ("http://books.example/token", "http://books.example/mcp", True, False),
        ("https://127.0.0.1/token", PUBLIC, True, False),
        ("http://127.0.0.1:1/token", PUBLIC, True, False),
        ("http://localhost/token", PUBLIC, True, False),
        ("https://10.0.0.5/token", PUBLIC, True, False),
        ("https://router.local/token", PUBLIC, True, False),
        ("http://169.254.169.254/latest", HERE, True, False),
        ("http://127.0.0.1:1/token", HERE, True, True),
        ("http://localhost:1/token", HERE, True, True),
        ("http://[::1]:1/token", HERE, True, True),
        ("http://127.0.0.1:1/token", HERE, False, False),
        ("https://10.0.0.5:8443/token", LAN, True, True),
        ("http://10.0.0.5/token", LAN, True, False),
        ("https://10.0.0.6/token", LAN, True, False),
        ("https://10.0.0.5/token", LAN, False, False),
        ("https://u:p@auth.example/token", PUBLIC, True, False),
        ("javascript:alert(1)", PUBLIC, True, False),
        ("file:///etc/passwd", PUBLIC, True, False),
        ("https://[::1/token", PUBLIC, True, False),
        ("https:///token", PUBLIC, True, False),
        ("", PUBLIC, True, False),
    ],
)
def test_a_sign_in_may_be_no_further_inside_than_its_server(address, server, owner, may):
    assert allowed(address, server, owner=owner) is may


@pytest.mark.parametrize("owner", [True, False])
async def test_a_name_of_the_internet_that_leads_inside_is_not_asked(owner):
    """Whatever a name resolves to at that moment, for the owner's servers too."""
    came = []
    server = await asyncio.start_server(lambda _reader, writer: came.append(writer) or writer.close(), "127.0.0.1")
    port = server.sockets[0].getsockname()[1]

    asked = await _asked_of(f"https://auth.example:{port}/token", owner=owner, resolves_to="127.0.0.1")
    server.close()

    assert asked == "sign_in_unreachable"
    assert came == []


async def _asked_of(address, *, owner, resolves_to):
    loop = asyncio.get_running_loop()
    known = loop.getaddrinfo

    async def resolved(host, port, **more):
        name = host.decode() if isinstance(host, bytes) else host
        return await known(resolves_to if name == httpx2.URL(address).host else host, port, **more)

    loop.getaddrinfo = resolved
    try:
        async with endpoints.endpoints(PUBLIC, owner=owner) as ask:
            await ask(httpx2.Request("GET", address))
    except ToolTrouble as trouble:
        return trouble.code
    finally:
        loop.getaddrinfo = known
    return ""


@contextlib.asynccontextmanager
async def answering(head, piece=b""):
    """A server that says that, and then, without end, the piece."""

    async def answer(reader, writer):
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            while piece:
                writer.write(piece)
                await writer.drain()
            await asyncio.Event().wait()

    server = await asyncio.start_server(answer, "127.0.0.1")
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


async def test_metadata_without_an_end_is_not_read():
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n", b"[" * 65536) as url:
        with pytest.raises(ToolTrouble, match="too_much"):
            await discovery.place_of(url, "", owner=True)


async def test_metadata_that_never_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(discovery, "WITHIN", 0.3)
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{") as url:
        with pytest.raises(ToolTrouble, match="sign_in_unreachable"):
            await discovery.place_of(url, "", owner=True)


async def test_a_redirect_is_not_followed():
    head = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with answering(head) as url:
        assert await discovery.place_of(url, "", owner=True) is None
