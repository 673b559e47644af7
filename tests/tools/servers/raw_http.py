"""An HTTP server that means no good, by hand, in the loop of a test: `async with raw(how) as (url, asked)`."""

import asyncio
import contextlib
import gzip
import json

from tests.tools.servers.hostile import one

LONG = 65536


@contextlib.asynccontextmanager
async def raw(how):
    """Its address, and what it was asked: (method, path, headers)."""
    asked = []

    async def answer(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await _one(how, asked, reader, writer):
                pass
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1")
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", asked
    finally:
        server.close()


async def _one(how, asked, reader, writer):
    first = (await reader.readline()).decode()
    if not first:
        return False
    headers = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    message = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split()
    asked.append((method, path, headers))
    said = json.loads(message) if message else {}
    if said.get("method") == "tools/call":
        await CALLS[how](writer, said["id"], headers)
        return how in {"json", "sse"}
    if method == "GET":
        await resumed(writer)
        return False
    if "id" not in said:
        await whole(writer, b"", status="202 Accepted")
        return True
    await whole(writer, _answer(said))
    return True


def _answer(said):
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        },
        "tools/list": {"tools": [one("run")]},
    }
    if said["method"] in results:
        return _result(said["id"], results[said["method"]])
    return json.dumps({"jsonrpc": "2.0", "id": said["id"], "error": {"code": -32601, "message": "No"}}).encode()


def _result(id_, result):
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()


def _text(id_, text):
    return _result(id_, {"content": [{"type": "text", "text": text}]})


async def whole(writer, body, *, status="200 OK", kind="application/json", **more):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    await writer.drain()


async def begun(writer, kind="text/event-stream"):
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode())
    await writer.drain()


async def endless(writer, kind, piece):
    await begun(writer, kind)
    while True:
        writer.write(piece)
        await writer.drain()


async def broken_off(writer, _id, _headers):
    """An answer that breaks off and may be taken up again at once, and so on without end."""
    await begun(writer)
    writer.write(b"id: 1\nretry: 0\ndata:\n\n")
    await writer.drain()
    writer.close()


async def resumed(writer):
    await broken_off(writer, None, None)


CALLS = {
    "json": lambda writer, id_, _: whole(writer, _text(id_, "a\ud83dz\0!")),
    "sse": lambda writer, id_, _: whole(
        writer, b"event: message\ndata: " + _text(id_, "a\ud83dz\0!") + b"\n\n", kind="text/event-stream"
    ),
    "endless-json": lambda writer, _id, _: endless(writer, "application/json", b"[" * LONG),
    "endless-sse": lambda writer, _id, _: endless(writer, "text/event-stream", b"data: " + b"y" * LONG),
    "chatter": lambda writer, _id, _: endless(
        writer,
        "text/event-stream",
        b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n' * 400,
    ),
    "bomb": lambda writer, _id, _: whole(writer, gzip.compress(b"[" * 50_000_000), Content_Encoding="gzip"),
    "page": lambda writer, _id, _: whole(writer, b"<h1>Welcome</h1>", kind="text/html"),
    "broken": lambda writer, _id, _: whole(writer, b"{}", status="503 Busy"),
    "refuses": lambda writer, _id, _: whole(writer, b"{}", status="403 No"),
    "not-found": lambda writer, _id, _: whole(writer, b"gone", status="404 Not Found"),
    "breaks-off": broken_off,
}
