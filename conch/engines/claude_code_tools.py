"""Conch's tools for Claude Code: an MCP server that is Conch itself, spoken to over the program's own control lines.

The program is told of one server of type "sdk" (clis.md 3.3 has the lines; claude-agent-sdk does the same). It asks for
the tools at its start, and for each call in the middle of a turn; its turn waits for the answer. No other server is
known to it, whatever its home says.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from conch.engines.base import Tool, ToolCall, ToolOutcome

SERVER = "conch"
PROTOCOL = "2025-06-18"
METHOD_NOT_FOUND = -32601
# What a tool gave is bounded by Conch, in size and in time; of a long one the program would show the model a beginning.
LONGEST = 500_000
SWITCHES = {
    # All are shown to the model, none looked up first.
    "MAX_MCP_OUTPUT_TOKENS": "200000",
    "MCP_TOOL_TIMEOUT": "86400000",
    "ENABLE_TOOL_SEARCH": "false",
}
RunTool = Callable[[ToolCall], Awaitable[ToolOutcome]]


def flags(tools: Sequence[Tool]) -> list[str]:
    """What the program is started with; nothing for a chat without tools."""
    if not tools:
        return []
    config = {"mcpServers": {SERVER: {"type": "sdk", "name": SERVER}}}
    return ["--mcp-config", json.dumps(config), "--allowedTools", f"mcp__{SERVER}"]


def told_apart(tools: Sequence[Tool]) -> str:
    """What tells a program with these tools from one with others."""
    return json.dumps([_listed(tool) for tool in tools], sort_keys=True) if tools else ""


async def answered(message: Mapping[str, Any], tools: Sequence[Tool], run_tool: RunTool | None) -> dict[str, Any]:
    """The answer to one message of the program's to the server. Lets Held pass."""
    params = message.get("params")
    params = params if isinstance(params, Mapping) else {}
    method = str(message.get("method"))
    if method == "initialize":
        about = {"name": SERVER, "version": "1"}
        version = params.get("protocolVersion") or PROTOCOL
        return _result(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    if method == "tools/list":
        return _result(message, {"tools": [_listed(tool) for tool in tools]})
    if method == "tools/call" and run_tool is not None:
        return _result(message, await _called(params, str(message.get("id")), run_tool))
    if method == "ping" or "id" not in message:
        return _result(message, {})
    error = {"code": METHOD_NOT_FOUND, "message": f"Conch answers no {method}"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


async def _called(params: Mapping[str, Any], name: str, run_tool: RunTool) -> dict[str, Any]:
    given = params.get("arguments")
    arguments = given if isinstance(given, Mapping) else {}
    outcome = await run_tool(ToolCall(name, str(params.get("name") or ""), arguments))
    return {"content": [{"type": "text", "text": outcome.text}], "isError": outcome.failed}


def _listed(tool: Tool) -> dict[str, Any]:
    # One whose arguments aren't said to be an object would have the program refuse them all.
    about = {"name": tool.name, "description": tool.description, "inputSchema": {**tool.schema, "type": "object"}}
    return {**about, "_meta": {"anthropic/maxResultSizeChars": LONGEST}}


def _result(message: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
