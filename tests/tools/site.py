"""Tool servers for tests: ours over stdio and HTTP, one that means no good, and rows of them."""

import asyncio
import os
import select
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import mcp_types

from conch.models import ToolServer
from conch.tools import offers
from conch.tools.launches import launch_of, sealed
from conch.tools.listing import kept_of, listing_of
from tests.conftest import NOW
from tests.tools.servers import hostile, notes
from tests.tools.servers import library as books

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = [sys.executable, "-m"]
HERE = {"PYTHONPATH": str(ROOT)}


def digests(listed):
    return {tool["name"]: tool["digest"] for tool in kept_of(listed).tools}


# How the tools of our own servers describe themselves: their names are all different.
AS_LISTED = {
    **digests(asyncio.run(notes.server.list_tools())),
    **digests(asyncio.run(books.server.list_tools())),
    **digests([mcp_types.Tool(**hostile.one("run"))]),
}


def program(module, *words):
    return [*PYTHON, f"tests.tools.servers.{module}", *words]


def server_of(person, name, *, command=(), url="", secrets=None, tools=(), **fields):
    """A connected server, as its row is kept."""
    kind = "stdio" if command else "http"
    which = "sealed_environment" if command else "sealed_headers"
    given = {"command": list(command), "url": url, "slug": name.lower(), which: sealed(secrets or {})} | fields
    return ToolServer.objects.create(
        person=person, name=name, kind=kind, tools=list(tools), created_at=NOW, listed_at=NOW, tried_at=NOW, **given
    )


def notes_of(person, file, **secrets):
    """Our own server over stdio, its notes in that file."""
    return server_of(person, "Notes", command=program("notes"), secrets=HERE | {"NOTES_FILE": str(file)} | secrets)


def hostile_of(person, how, removed_at=None, **secrets):
    command = program("hostile", how)
    return server_of(person, "Hostile", command=command, secrets=HERE | secrets, removed_at=removed_at)


def listed(name="run", description="A tool.", **more):
    """A tool as a row keeps it."""
    schema = {"type": "object", "properties": {}}
    return {"name": name, "title": "", "description": description, "schema": schema, "digest": description, **more}


async def listing(server):
    """What the server lists, kept in its row."""
    found = await listing_of(launch_of(server))
    server.tools = list(found.tools)
    return found


def offered_by(server, tool):
    """A tool of the server as a chat is offered it."""
    return offers.Offered(
        name=offers.name_for(server.slug, tool),
        server=server.slug,
        tool=tool,
        title=tool,
        description="",
        schema={},
        permission="ask",
        digest=digest_of(server, tool),
    )


def digest_of(server, tool):
    """As its row has it, else as it is listed."""
    kept = {listed["name"]: listed["digest"] for listed in server.tools}
    return kept.get(tool) or AS_LISTED[tool]


async def gone(pid):
    """Whether that process ends, however long that takes within reason."""
    return await asyncio.to_thread(_ends, pid)


def _ends(pid):
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([ended], [], [], 20)[0])
    finally:
        os.close(ended)


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@contextmanager
def library(**environment):
    """Our own server over HTTP: its address."""
    running = subprocess.Popen(
        program("library"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env=os.environ | HERE | environment,
    )
    try:
        yield running.stdout.readline().strip()
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
