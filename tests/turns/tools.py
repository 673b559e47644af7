"""A person's tool server that really runs, what it ran, and models of the simulator that ask for its tools."""

import asyncio
import json
import sys
from contextlib import suppress

from conch.accounts.seal import seal
from conch.db import look
from conch.models import ToolCall, ToolPermission, ToolServer
from conch.tools.listing import kept_of
from conch.turns.clock import SYSTEM
from tests.simulator.scripts import Call
from tests.turns import tool_server

SERVER = "ledger"
# As the server lists them.
TOOLS = list(kept_of(asyncio.run(tool_server.server.list_tools())).tools)


def call(tool, what, **more):
    """A scripted call of one of the server's tools."""
    return Call(name=f"{SERVER}__{tool}", arguments={"what": what}, **more)


class Ledger:
    """The server of one person, and the file in which it writes what ran."""

    def __init__(self, person, folder):
        self.person = person
        self.file = folder / "calls"
        self.row = ToolServer.objects.create(
            person=person,
            slug=SERVER,
            name="Ledger",
            kind="stdio",
            command=[sys.executable, "-m", "tests.turns.tool_server"],
            sealed_environment=seal(json.dumps({"CALLS_FILE": str(self.file), "PYTHONPATH": ":".join(sys.path)})),
            tools=TOOLS,
            listed_at=SYSTEM.now(),
            created_at=SYSTEM.now(),
        )

    def permits(self, permission, *tools):
        """Let these tools (all of them where none is named) run as said."""
        for tool in TOOLS:
            if not tools or tool["name"] in tools:
                ToolPermission.objects.update_or_create(
                    server=self.row,
                    tool=tool["name"],
                    defaults={"permission": permission, "digest": tool["digest"]},
                )

    def permission(self, tool):
        """What holds for that tool by now."""
        row = ToolPermission.objects.filter(server=self.row, tool=tool).first()
        return row.permission if row is not None else "ask"

    @property
    def ran(self):
        """What really ran, in order."""
        with suppress(FileNotFoundError):
            return self.file.read_text().splitlines()
        return []

    async def has_run(self, count=1):
        """Wait until so many calls have begun in the server's process."""
        while len(self.ran) < count:  # noqa: ASYNC110  a file tells: another process writes it
            await asyncio.sleep(0.01)

    def says(self, words):
        """How `look_up` describes itself once the program is started anew; nothing: it isn't there."""
        self.file.with_name(self.file.name + ".says").write_text(words)

    def opens(self):
        """Let the calls of `wait` go on."""
        self.file.with_name(self.file.name + ".open").write_text("")


async def calls_of(turn):
    """The turn's calls as they are kept: tool, state, outcome."""
    rows = ToolCall.objects.filter(turn=turn, forgotten=False).order_by("pk")
    return await look(lambda: list(rows.values_list("tool", "state", "outcome")))


async def asking(turn):
    """The ids of the turn's calls that ask."""
    rows = ToolCall.objects.filter(turn=turn, state="asked").order_by("pk").values_list("pk", flat=True)
    return await look(lambda: list(rows))
