"""A server that is a program: JSON-RPC in lines over its pipes, as the official client takes them.

The program is run as those of providers are (conch/engines/cli_process): in an empty folder, with a scrubbed
environment, in its own process group, ended with its session and with Conch. Its lines are bounded and cleaned here.
"""

import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import anyio
import mcp_types
from mcp.client import Transport
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from conch.engines import programs
from conch.engines.base import EngineFault
from conch.engines.cli_process import CliProcess, Folder
from conch.engines.wire_text import clean_json, said
from conch.tools.launches import Launch
from conch.tools.trouble import ToolTrouble

LONGEST_LINE = 8 * 1024 * 1024  # bytes of one message
FOREVER = 7 * 24 * 3600.0  # seconds; an open session may be silent, a call has its own bound
MOST_ERRORS = 1024 * 1024  # bytes that a program's log takes on disk
# Notifications that are listened to: the list of tools is another one, and that this will be told.
HEARD = ("notifications/tools/list_changed", "notifications/subscriptions/acknowledged")
WORDS = 300  # characters of a program's last words

Streams = tuple[Any, Any]


class ServerProcess(CliProcess):
    """The program of a server."""

    longest_line: ClassVar[int] = LONGEST_LINE

    def forget_errors(self) -> None:
        """Give back the room of what it wrote to its standard error: servers log there for as long as they live."""
        with suppress(OSError, ValueError):
            assert self.popen.stderr is not None
            kept = self.popen.stderr.fileno()
            if os.fstat(kept).st_blocks * 512 > MOST_ERRORS:
                os.ftruncate(kept, 0)


def over_stdio(launch: Launch) -> Transport:
    """The transport of a program. Raises ToolTrouble where it doesn't start, or ends by itself."""
    return _running(launch)


@asynccontextmanager
async def _running(launch: Launch) -> AsyncIterator[Streams]:
    process = await _started(launch.command, launch.secrets)
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group, incoming, received, sent, outgoing:
            group.start_soon(_read, process, incoming, launch)
            group.start_soon(_write, process, outgoing)
            yield received, sent
            group.cancel_scope.cancel()
    finally:
        process.end()


async def _started(command: Sequence[str], environment: Mapping[str, str]) -> ServerProcess:
    program = _found(command[0], environment)
    try:
        return await ServerProcess.start(
            [program, *command[1:]], {**programs.scrubbed(program), **environment}, Folder()
        )
    except EngineFault as error:
        raise ToolTrouble("no_start", said=said(error.said)[:WORDS]) from error


def _found(name: str, environment: Mapping[str, str]) -> str:
    """The program's path: a name is looked for on the path, then where such programs usually are."""
    path = environment.get("PATH") or programs.scrubbed().get("PATH", os.defpath)
    places = [str(Path(place).expanduser()) for place in programs.USUAL_PLACES]
    program = shutil.which(Path(name).expanduser(), path=os.pathsep.join([path, *places]))
    if program is None:
        raise ToolTrouble("no_program", program=name[:200])
    return program


async def _read(process: ServerProcess, incoming: Any, launch: Launch) -> None:
    """What the program says, until it ends: ToolTrouble then, and the session is over."""
    async with incoming:
        try:
            while (line := await process.next_line(FOREVER)) is not None:
                process.forget_errors()
                message = _message(line)
                if message is not None:
                    await incoming.send(message)
        except EngineFault as error:
            raise ToolTrouble("rubbish", sent=True, said=said(error.said)[:WORDS]) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more
    raise ToolTrouble("ended", sent=True, said=_last_words(process, launch.secrets))


def _message(line: Mapping[str, Any]) -> SessionMessage | None:
    """One message; None for what nobody listens to: other notifications, and what isn't a message at all."""
    if "method" in line and "id" not in line and line["method"] not in HEARD:
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_python(clean_json(line), by_name=False))
    except (ValidationError, RecursionError):
        return None


async def _write(process: ServerProcess, outgoing: Any) -> None:
    async with outgoing:
        async for message in outgoing:
            await process.send(message.message.model_dump(by_alias=True, mode="json", exclude_unset=True))


def _last_words(process: ServerProcess, secrets: Mapping[str, str]) -> str:
    """The last line that the program wrote to its standard error, without what it was told in secret."""
    words = process.last_words()
    for secret in secrets.values():
        words = words.replace(secret, "…") if len(secret) > 3 else words
    lines = [line for line in words.splitlines() if line.strip()]
    return said(lines[-1])[:WORDS] if lines else ""
