"""A server of our own over HTTP: books, for whoever brings the right header.

`python -m tests.tools.servers.library --port 0` prints its address; TOKEN is what the header must hold, if anything.
"""

import argparse
import asyncio
import os
import socket
import sys

import uvicorn
from mcp.server import MCPServer
from starlette.responses import JSONResponse, RedirectResponse

BOOKS = {"Middlemarch": 1871, "Emma": 1815, "Dracula": 1897}

server = MCPServer("library", title="Library")


@server.tool(title="when was it written")
def year(title: str) -> str:
    """The year that a book came out."""
    return str(BOOKS.get(title, "There is no such book."))


@server.tool(title="all books")
def books() -> list[str]:
    """Every book there is."""
    return list(BOOKS)


def guarded(application, token):
    """The application for whoever has the token, and a door that only leads elsewhere."""

    async def outer(scope, receive, send):
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            if scope["path"] == "/moved":
                await RedirectResponse(os.environ.get("MOVED_TO", "/mcp"), 307)(scope, receive, send)
                return
            if token and headers.get("authorization") != f"Bearer {token}":
                await JSONResponse({"error": "who are you?"}, 401)(scope, receive, send)
                return
        await application(scope, receive, send)

    return outer


def main():
    """Serve on a free port, and print the address once it can be called."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "0")))
    listening = socket.create_server(("127.0.0.1", parser.parse_args().port))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    app = guarded(server.streamable_http_app(), os.environ.get("TOKEN", ""))
    config = uvicorn.Config(app, log_level="warning", lifespan="on")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main()
