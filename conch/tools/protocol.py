"""What the official client is asked for: to open a session, to list tools, to call one. Imported with it, on first use.

It is given a session's own calls only: what a tool says it returns isn't checked against its schema, which is the
server's too and could be made to cost hours.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types
from mcp.client import Client, ClientSession
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from conch.engines.wire_text import said
from conch.models import ToolServer
from conch.tools.launches import Launch
from conch.tools.over_http import over_http
from conch.tools.over_stdio import over_stdio
from conch.tools.trouble import ToolTrouble

MOST_PAGES = 200
MOST_TOOLS = 1000
SILENT = ("mcp", "client")  # loggers of the client: they would write down what servers and tools say

Answer = mcp_types.CallToolResult | mcp_types.InputRequiredResult

_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
_OVER = {ToolServer.Kind.STDIO: over_stdio, ToolServer.Kind.HTTP: over_http}

for _name in SILENT:
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@asynccontextmanager
async def opened(launch: Launch, changed: Callable[[], None]) -> AsyncIterator[ClientSession]:
    """A session that is ready for calls. What goes wrong is a ToolTrouble, or what `trouble_in` finds in it.

    `changed` is told when the server says that its list of tools is another one: a program at any time, an address
    together with its answers.
    """
    transport = _OVER[ToolServer.Kind(launch.kind)](launch)
    who = mcp_types.Implementation(name="conch", version="0.1")

    async def heard(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed()

    async with (
        Client(transport, client_info=who, cache=None, message_handler=heard) as client,
        anyio.create_task_group() as beside,
    ):
        if launch.kind == ToolServer.Kind.STDIO and client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            beside.start_soon(_listen, client)
        yield client.session
        beside.cancel_scope.cancel()


async def _listen(client: Client) -> None:
    """Ask to be told of changes, as newer versions of the protocol want it; what is told is heard as a notification."""
    with suppress(MCPError, SubscriptionLost, TimeoutError):
        async with client.listen(tools_list_changed=True) as told:
            async for _ in told:
                pass


async def listed(session: ClientSession) -> tuple[list[mcp_types.Tool], bool]:
    """All tools that the server lists, and whether that is all: a list without end is left after a while."""
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        params = mcp_types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        page = await session.list_tools(params=params)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > MOST_TOOLS:
            break
    return tools[:MOST_TOOLS], cursor is None and len(tools) <= MOST_TOOLS


async def called(session: ClientSession, tool: str, arguments: Mapping[str, Any]) -> Answer:
    """What the server answers to one call."""
    params = mcp_types.CallToolRequestParams(name=tool, arguments=dict(arguments))
    return await session.send_request(mcp_types.CallToolRequest(params=params), _ANSWER)


def trouble_in(error: BaseException) -> ToolTrouble:
    """What went wrong, found in what the client raised: in a group of its tasks' errors, or in an error's cause."""
    found = [trouble for leaf in _leaves(error) if (trouble := _told(leaf)) is not None]
    return found[0] if found else ToolTrouble("cut", sent=True)


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _told(error: BaseException) -> ToolTrouble | None:
    if isinstance(error, ToolTrouble):
        return error
    if isinstance(error, MCPError):
        return _refused(error)
    if isinstance(error, ValidationError):
        return ToolTrouble("rubbish", sent=True)
    if isinstance(error, RuntimeError):  # so the client says that no version of the protocol is common to both
        return ToolTrouble("rubbish", sent=True)
    return None


def _refused(error: MCPError) -> ToolTrouble | None:
    """An error that the server answered, or that the client made of there being no answer."""
    if error.code == mcp_types.CONNECTION_CLOSED:
        return None
    if error.code == mcp_types.INVALID_REQUEST and error.message == "Session terminated":
        return ToolTrouble("expired")
    if error.code == mcp_types.PARSE_ERROR:
        return ToolTrouble("rubbish", sent=True)
    return ToolTrouble("refused", sent=True, said=said(error.message))
