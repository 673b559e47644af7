"""The connections under the HTTP engines: the first address that answers, what has come, when the other side left."""

import asyncio
import contextlib
import socket
import ssl

import httpcore2
import pytest
import uvloop

from conch.engines import wire_network
from conch.engines.wire_network import MOST_UNREAD, Network
from tests.simulator.tls import authority


@contextlib.asynccontextmanager
async def served(answer, tls=None):
    """A server on a free port; `answer` is called with each connection's reader and writer."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _echo(reader, writer):
    while said := await reader.read(65536):
        writer.write(said)
    writer.close()


async def test_what_is_sent_comes_back_and_an_idle_connection_knows_that_its_server_left():
    async with served(_echo) as port:
        stream = await Network().connect_tcp("127.0.0.1", port, timeout=5)
        await stream.write(b"hello")
        assert await stream.read(3, timeout=5) == b"hel"
        assert stream.get_extra_info("is_readable")
        assert await stream.read(99, timeout=5) == b"lo"
        assert not stream.get_extra_info("is_readable")
        assert stream.get_extra_info("server_addr") == ("127.0.0.1", port)

        stream.get_extra_info("socket").shutdown(socket.SHUT_WR)
        assert await stream.read(99, timeout=5) == b""
        assert stream.get_extra_info("is_readable")
    await stream.aclose()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_over_tls_a_server_is_believed_by_its_certificate_alone(run, tmp_path):
    """On both kinds of loops that Conch runs on."""
    trusted, tls = authority(tmp_path)

    async def asked(context, name):
        async with served(_echo, tls) as port:
            stream = await Network().connect_tcp("127.0.0.1", port, timeout=5)
            stream = await stream.start_tls(context, server_hostname=name, timeout=5)
            await stream.write(b"whole" * 20_000)
            came = b""
            while len(came) < 100_000:
                came += await stream.read(65536, timeout=5)
            known = stream.get_extra_info("ssl_object").version()
            await stream.aclose()
            return came, known

    came, known = run(asked(ssl.create_default_context(cafile=trusted), "localhost"))
    assert came == b"whole" * 20_000
    assert known == "TLSv1.3"
    with pytest.raises(httpcore2.ConnectError, match=r"CERTIFICATE_VERIFY_FAILED|verify failed"):
        run(asked(ssl.create_default_context(), "localhost"))
    with pytest.raises(httpcore2.ConnectError, match=r"ostname|verify failed"):
        run(asked(ssl.create_default_context(cafile=trusted), "another.example"))


async def test_silence_and_a_server_that_takes_nothing_end_by_their_times():
    async def deaf(_reader, _writer):
        await asyncio.sleep(60)

    async with served(deaf) as port:
        stream = await Network().connect_tcp("127.0.0.1", port, timeout=5)
        with pytest.raises(httpcore2.ReadTimeout):
            await stream.read(1, timeout=0.01)
        with pytest.raises(httpcore2.WriteTimeout):
            await stream.write(bytes(64 * 1024 * 1024), timeout=0.01)
        await stream.aclose()
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"more", timeout=1)


async def test_a_flood_is_held_back_and_all_of_it_arrives():
    whole = 8 * 1024 * 1024

    async def flood(_reader, writer):
        writer.write(bytes(whole))
        await writer.drain()
        writer.close()

    async with served(flood) as port:
        stream = await Network().connect_tcp("127.0.0.1", port, timeout=5)
        await asyncio.sleep(0.2)
        held = len(stream._unread)
        came = 0
        while piece := await stream.read(65536, timeout=5):
            came += len(piece)
        await stream.aclose()

    assert held <= MOST_UNREAD + 1024 * 1024
    assert came == whole


async def test_a_connection_that_is_torn_off_is_said_to_be():
    async def tears(reader, writer):
        await reader.read(1)
        writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with served(tears) as port:
        stream = await Network().connect_tcp("127.0.0.1", port, timeout=5)
        await stream.write(b"x")
        with pytest.raises(httpcore2.ReadError):
            await stream.read(1, timeout=5)


async def test_an_address_that_says_nothing_does_not_hold_up_the_one_that_answers(monkeypatch):
    """A host with two addresses, one of which is lost on the way: the other is tried beside it (RFC 8305)."""
    monkeypatch.setattr(wire_network, "NEXT_ADDRESS_AFTER", 0.02)
    tried = wire_network._tried

    async def lost(family, kind, protocol, name, address):
        if family == socket.AF_INET6:
            await asyncio.sleep(60)
        return await tried(family, kind, protocol, name, address)

    monkeypatch.setattr(wire_network, "_tried", lost)
    async with served(_echo) as port:
        places = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", port, 0, 0)),
        ]

        async def found(*_, **__):
            return places

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
        stream = await Network().connect_tcp("two.example", port, timeout=5)
        await stream.write(b"here")

        assert await stream.read(9, timeout=5) == b"here"
        await stream.aclose()


async def test_where_nobody_listens_it_is_said_that_nothing_was_sent():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with pytest.raises(httpcore2.ConnectError):
        await Network().connect_tcp("127.0.0.1", port, timeout=5)
    with pytest.raises(httpcore2.ConnectError):
        await Network().connect_tcp("nowhere.invalid", port, timeout=5)
