"""`codex app-server` as Conch runs it: how it is started, its JSON-RPC, and what it asks that is always declined.

It runs in a home of its own that holds nothing but a link to the account's `auth.json` (Codex 0.163 renews through it):
the instructions, MCP servers, hooks, skills and memories of the person's own home have no switch that turns all of them
off, and nothing is to be written there (design.md, Engines). Every setting is a `-c` flag (clis.md 2.2).
"""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from conch.engines import codex_catalog
from conch.engines.base import EngineFault, ToolCall, ToolOutcome, Usage
from conch.engines.cli_process import CliProcess, Folder
from conch.engines.codex_home import AUTH_FILE

ANSWERED_WITHIN = 60.0  # seconds; cold it takes one, on a busy machine more
SETTINGS = (
    # The sign-in pays, never a key that may lie beside it (CON-02).
    'forced_login_method="chatgpt"',
    'cli_auth_credentials_store="file"',
    "check_for_update_on_startup=false",
    'approval_policy="never"',
    'sandbox_mode="read-only"',
    'web_search="disabled"',
    "project_doc_max_bytes=0",
    "include_environment_context=false",
    "include_permissions_instructions=false",
    "include_apps_instructions=false",
    # A long chat is cut by Conch, never summed up by another model call (R31, R34).
    f"model_auto_compact_token_limit={2**62}",
    "tool_output_token_limit=200000",  # what a tool gave is bounded by Conch
    "analytics.enabled=false",
    "feedback.enabled=false",
    'history.persistence="none"',
    "skills.include_instructions=false",
    "skills.bundled.enabled=false",
    "agents.enabled=false",
)
OFF = (
    *("apps", "browser_use", "code_mode_host", "computer_use", "goals", "hooks", "image_generation", "in_app_browser"),
    *("memories", "multi_agent", "plugins", "remote_plugin", "shell_snapshot", "shell_tool", "skill_search"),
    *("sleep_tool", "tool_suggest", "unbounded_connection_retries", "unified_exec", "view_image"),
)
# What it would only say back: among it the pictures that it was given.
NOT_TOLD = ("item/started", "thread/started", "remoteControl/status/changed", "thread/status/changed")
HELLO = {
    "clientInfo": {"name": "conch", "title": "Conch", "version": "1"},
    # `environments` at the start of a thread, which takes away the tool that edits files, is experimental.
    "capabilities": {"experimentalApi": True, "optOutNotificationMethods": list(NOT_TOLD)},
}
DECLINED = {"decision": "decline"}
CALLS_TOOL = "item/tool/call"  # of a tool that the thread was started with: Conch runs it
RunTool = Callable[[ToolCall], Awaitable[ToolOutcome]]


class Refused(Exception):
    """The server answered a request with an error. `message` is its own; `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Home(Folder):
    """A folder whose `home` holds a link to that sign-in and nothing else; `catalog`: what is known of the models."""

    def __init__(self, auth: Path, catalog: str = "") -> None:
        super().__init__()
        self.home = self.path / "home"
        self.home.mkdir()
        self._auth = auth.resolve()
        (self.home / AUTH_FILE).symlink_to(self._auth)
        self.catalog = self.path / "catalog.json" if catalog else None
        if self.catalog is not None:
            self.catalog.write_text(catalog)

    def remove(self) -> None:
        """Take it away. A sign-in that was renewed in the link's place goes where it belongs: the old one is spent."""
        kept = self.home / AUTH_FILE
        if kept.is_file() and not kept.is_symlink():
            beside = self._auth.with_name(f".{AUTH_FILE}.{token_hex(4)}")
            with suppress(OSError):
                beside.touch(mode=0o600)
                beside.write_bytes(kept.read_bytes())
                beside.replace(self._auth)
        super().remove()


def command(path: str, base: str, catalog: Path | None = None) -> list[str]:
    """The command line. No configuration can know the provider's name; nothing is tried again unseen (R34)."""
    name = f"conch_{token_hex(4)}"
    provider = (
        f'{{name="Conch",base_url={json.dumps(base + "/codex")},wire_api="responses",requires_openai_auth=true,'
        "supports_websockets=false,request_max_retries=0,stream_max_retries=0}"
    )
    settings = [
        *SETTINGS,
        f'model_provider="{name}"',
        f"model_providers.{name}={provider}",
        f"chatgpt_base_url={json.dumps(base)}",
        *(f"features.{feature}=false" for feature in OFF),
    ]
    if catalog is not None:
        settings.append(f"{codex_catalog.SETTING}={json.dumps(str(catalog))}")
    return [path, *(word for setting in settings for word in ("-c", setting)), "app-server"]


class CodexServer(CliProcess):
    """One app-server. Notifications that come while an answer is awaited are kept, in order, for `next_notice`.

    `thread`: the chat's, once it has one; `used`: what that has used so far; `answer`: its last one, where that is
    exactly what the chat was given.
    """

    _asked = 0
    thread = ""
    used = Usage()
    answer: str | None = None

    async def greet(self) -> None:
        """Shake hands. Raises EngineFault."""
        self._notices: deque[dict[str, Any]] = deque()
        await self.ask("initialize", HELLO)
        await self.send({"method": "initialized"})

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The answer to a request. Raises Refused with the server's error, EngineFault where none comes."""
        self._asked += 1
        await self.send({"id": self._asked, "method": method, "params": params})
        while (line := await self.next_line(ANSWERED_WITHIN)) is not None:
            if "method" in line:
                await self._notice(line)
            elif line.get("id") == self._asked:
                return _result(line)
        raise EngineFault(self.last_words() or f"Codex ended before it answered {method}", accepted=False)

    async def next_notice(self) -> dict[str, Any] | None:
        """The next notification; None once the server has ended."""
        while not self._notices:
            line = await self.next_line()
            if line is None:
                return None
            if "method" in line:
                await self._notice(line)
        return self._notices.popleft()

    async def _notice(self, line: dict[str, Any]) -> None:
        """Keep a notification; a request of the server's is answered, or its turn would hang: nothing is allowed.

        Only a call of a tool is kept too, for the turn to run it.
        """
        if "id" not in line or line["method"] == CALLS_TOOL:
            self._notices.append(line)
            return
        method = str(line["method"])
        if method == "mcpServer/elicitation/request":
            await self.send({"id": line["id"], "result": {"action": "decline", "content": None}})
        elif method.endswith("/requestApproval") and "permissions" not in method:
            await self.send({"id": line["id"], "result": DECLINED})
        else:
            error = {"code": -32601, "message": "Conch answers no such requests"}
            await self.send({"id": line["id"], "error": error})

    async def answer_call(self, notice: Mapping[str, Any], run_tool: RunTool | None) -> None:
        """Run the tool that it calls, and say what came of it. Lets Held pass."""
        params = notice.get("params")
        call = params if isinstance(params, Mapping) else {}
        given = call.get("arguments")
        if run_tool is None:
            outcome = ToolOutcome("", "Conch runs no tools here", failed=True)
        else:
            name, arguments = str(call.get("tool") or ""), given if isinstance(given, Mapping) else {}
            outcome = await run_tool(ToolCall(str(call.get("callId") or ""), name, arguments))
        said = [{"type": "inputText", "text": outcome.text}]
        await self.send({"id": notice["id"], "result": {"contentItems": said, "success": not outcome.failed}})


def _result(line: Mapping[str, Any]) -> Mapping[str, Any]:
    error = line.get("error")
    if isinstance(error, Mapping):
        code = error.get("code")
        raise Refused(code if isinstance(code, int) else 0, str(error.get("message") or ""))
    result = line.get("result")
    return result if isinstance(result, Mapping) else {}
