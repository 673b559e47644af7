"""Claude Code: a Claude plan by the program that the person is signed in to, unmodified (clis.md 3, providers.md 1).

A process answers in one chat alone, and may be kept for its next message (cli_process_ready). What it hasn't heard of
the chat it is given natively: each old message of the person's is sent with `shouldQuery` off and waited for, else all
answers would land before the questions. No tools but Conch's; no hooks, memory, MCP servers or settings of the person's
own, whatever their home says; no key of the environment pays (R34).
"""

import asyncio
import json
import subprocess
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urlsplit

from conch.engines import claude_code_room as rooms
from conch.engines import claude_code_tools as tools
from conch.engines import programs
from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    EngineFault,
    Event,
    Identity,
    LimitReached,
    Message,
    Model,
    Progress,
    Rejected,
    Request,
    Room,
    SignedOut,
    Throttled,
    Tool,
    Unreachable,
)
from conch.engines.claude_code_home import account_in, credentials_age, home_variables, identity_of, windows_fetched_at
from conch.engines.claude_code_lines import Before, Turn, check_payer
from conch.engines.cli_process import CliProcess, Folder
from conch.engines.cli_process_ready import WAITS, Ready
from conch.engines.wire_text import clean

STARTED_WITHIN = 60.0  # seconds; cold it takes two, on a busy machine more
READ_WITHIN = 30.0
TOOLS_WITHIN = 10.0
USAGE = {"subtype": "get_usage", "skip_behaviors": True}
FLAGS = (
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--include-partial-messages", "--tools", "", "--strict-mcp-config", "--setting-sources", ""),
    *("--disable-slash-commands", "--no-session-persistence"),
)
ONLY_REPLIES = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}  # asks nothing but for replies: its windows neither
SWITCHES = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    # Trying again is the turn's business, and an answer that broke off is never asked for anew unseen (R34).
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_AUTO_COMPACT": "1",
    **tools.SWITCHES,
}
NO_INSTRUCTIONS = "You are a helpful assistant."


class ClaudeCode:
    """Replies by a person's Claude plan. Its windows come with every answer, and ahead of one where it may be asked."""

    id: ClassVar[str] = "claude-code"
    label: ClassVar[str] = "Claude Code"
    billing: ClassVar[Billing] = Billing.PLAN
    shares_account: ClassVar[str] = "claude-code"
    meters: ClassVar[bool] = True
    connect_by: ClassVar[ConnectBy] = ConnectBy.SIGN_IN
    plan_name: ClassVar[str] = "Claude plan"
    monogram: ClassVar[str] = "Cl"
    official_base_url: ClassVar[str] = "https://api.anthropic.com"
    preferred_models: ClassVar[tuple[str, ...]] = ("opus", "sonnet", "haiku")
    billing_page: ClassVar[str] = "https://claude.ai/settings/usage"
    program: ClassVar[programs.Kind] = programs.CLAUDE
    signs_in_by: ClassVar[programs.Kind] = programs.CLAUDE

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.now = now
        self._open: set[Started] = set()
        self._ready: Ready[Started] = Ready()
        self._readable: dict[tuple[str, int], bool] = {}  # which sign-ins may read their windows ahead

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer. Closing the iterator ends the program."""
        if self._ready.place.locked():
            yield Progress(WAITS)
        async with self._ready.place:
            path = await asyncio.to_thread(programs.find, self.program)
            asked_as = (request.model, request.instructions, tools.told_apart(request.tools))
            key = (path, access.home, access.base_url, credentials_age(access.home), *asked_as)
            start = partial(self._start, path, access, request.model, request.instructions, request.tools)
            history = request.messages[:-1]
            taken = await self._ready.take(key, request.conversation, history, start)
            async with self._ended_after(taken.process) as process:
                process.answer = None
                _check_account(process.hello, access)
                await _hand_over(process, history[taken.told :])
                async with aclosing(self._answer(process, access, request)) as events:
                    async for event in events:
                        yield event
                if process.answer is not None:
                    self._open.discard(process)
                    self._ready.keep(taken, (*request.messages, Message("assistant", process.answer)))

    async def read_room(self, access: Access) -> Room | None:
        """Every window, ahead of a turn; asks no model. None where the sign-in or the version can't say.

        A program that asks for nothing but replies says whether this sign-in may read them; only one that may ask for
        more does, and is started for this alone. Raises EngineError where they couldn't be read.
        """
        sign_in = (access.home, credentials_age(access.home))
        if self._readable.get(sign_in) is None:
            async with self._process(access) as process:
                self._readable = {sign_in: await process.may_read_windows()} | self._readable
        if not self._readable[sign_in]:
            return None
        asked_at = self.now()
        async with self._process(access, only_replies={}) as process:
            answer = await process.ask(USAGE, READ_WITHIN)
        await process.ended()  # it writes down when it has fetched them
        return rooms.usage_as_read(answer, windows_fetched_at(access.home), asked_at, self.now())

    async def identify(self, access: Access) -> Identity:
        """Whose plan it is, by the program's own word. Raises SignedOut, Rejected where a key would pay."""
        path = await asyncio.to_thread(programs.find, self.program)
        said = await asyncio.to_thread(_auth_status, path, _environment(access, path))
        if said.get("loggedIn") is not True:
            raise SignedOut(f"Claude Code is signed out. Sign in: {self.program.sign_in}")
        method = said.get("authMethod")
        if method not in {"claude.ai", "oauth_token"} or said.get("apiProvider") not in {None, "firstParty"}:
            raise Rejected(f"Claude Code is signed in by {method}, not by a Claude plan", reason="paying")
        organization = said.get("orgId")
        plan, name = said.get("subscriptionType"), said.get("orgName")
        if not organization and account_in(access.home).whose == said.get("email"):
            organization = account_in(access.home).identity.partition(":")[0]
        return identity_of(organization, said.get("email"), plan=plan, organization=name)

    async def models(self, access: Access) -> Sequence[Model]:
        """What the program offers for this plan, by its own short names."""
        async with self._process(access) as process:
            said = process.hello.get("models")
        listed = [model for model in said if isinstance(model, Mapping)] if isinstance(said, list) else []
        return [_model(model) for model in listed if model.get("value") not in {None, "", "default"}]

    def signed_in_here(self) -> Identity | None:
        """Whose sign-in the program has written down in its usual place; None where it has none. Asks nobody."""
        kept = account_in("")
        return kept if kept.whose else None

    async def close(self) -> None:
        """End what runs."""
        await self._ready.close()
        await asyncio.gather(*(process.ended() for process in list(self._open)))

    async def _start(
        self,
        path: str,
        access: Access,
        model: str = "",
        instructions: str = "",
        offered: Sequence[Tool] = (),
        only_replies: Mapping[str, str] = ONLY_REPLIES,
    ) -> "Started":
        """A program that has said who it is."""
        command = [path, *FLAGS, *tools.flags(offered), "--system-prompt", clean(instructions) or NO_INSTRUCTIONS]
        command += ["--model", model] if model else []
        process = await Started.start(command, {**_environment(access, path), **only_replies}, Folder())
        process.offered = offered
        try:
            await process.greet()
        except BaseException:  # it must not be left running
            process.end()
            raise
        return process

    @asynccontextmanager
    async def _process(
        self, access: Access, only_replies: Mapping[str, str] = ONLY_REPLIES
    ) -> AsyncGenerator["Started", None]:
        """A program for a question that is no turn."""
        path = await asyncio.to_thread(programs.find, self.program)
        async with self._ended_after(await self._start(path, access, only_replies=only_replies)) as process:
            _check_account(process.hello, access)
            yield process

    @asynccontextmanager
    async def _ended_after(self, process: "Started") -> AsyncGenerator["Started", None]:
        """The process, ended on the way out unless it was kept meanwhile."""
        self._open.add(process)
        try:
            yield process
        finally:
            if process in self._open:
                self._open.discard(process)
                process.end()

    async def _answer(self, process: "Started", access: Access, request: Request) -> AsyncGenerator[Event, None]:
        turn = Turn(request.model, self.now, before=process.before)
        await process.send({"type": "user", "message": _message(request.messages[-1])})
        try:
            while not turn.ended:
                line = await process.next_line()
                if line is None:
                    said = process.last_words() or "Claude Code ended in the middle of its answer"
                    raise EngineFault(said, cut=True)
                await process.serve(line, request.run_tool)
                for event in turn.read(line):
                    yield event
            process.before, process.answer = turn.after, turn.answer
        except Throttled as error:
            if error.accepted:  # the answer broke off: only its windows say whether for a limit
                await self._raise_if_full(access, request.model, error)
            raise
        except Unreachable as error:
            error.host = error.host or urlsplit(access.base_url or self.official_base_url).hostname or ""
            raise
        finally:
            if turn.begun and not turn.ended:  # left to itself for a moment, it might ask once more for what failed
                process.end(gently=False)

    async def _raise_if_full(self, access: Access, model: str, error: Throttled) -> None:
        with suppress(EngineFault, Unreachable, SignedOut):  # then nothing more is known of it
            room = await self.read_room(access)
            full, until = rooms.full_until(room, model, self.now())
            if full:
                raise LimitReached(error.said, until=until, room=room, accepted=True, status=429) from error


class Started(CliProcess):
    """A Claude Code process. `hello` is what it answered to the first question: its account and its models.

    `offered`: the tools of Conch's that it may call.
    `answer`: its last one, where that is exactly what the chat was given; `before`: what its next turn goes on from.
    """

    hello: Mapping[str, Any]
    offered: Sequence[Tool] = ()
    told_tools = False
    before = Before()
    answer: str | None = None
    _asked = 0

    async def greet(self) -> None:
        """Ask who it is, and let it ask for the tools, which it waits for only so long. Raises EngineFault."""
        self.hello = await self.ask({"subtype": "initialize"}, STARTED_WITHIN)
        with suppress(TimeoutError):  # one that asks later, in its turn, is answered then
            async with asyncio.timeout(TOOLS_WITHIN):
                while self.offered and not self.told_tools:
                    if (line := await self.next_line()) is None:
                        raise EngineFault(self.last_words() or "Claude Code ended at its start", accepted=False)
                    await self.serve(line)

    async def ask(self, request: Mapping[str, Any], within: float) -> Mapping[str, Any]:
        """The answer to a control request; other lines meanwhile are passed over. Raises EngineFault."""
        self._asked += 1
        name = f"conch-{self._asked}"
        await self.send({"type": "control_request", "request_id": name, "request": request})
        while (line := await self.next_line(within)) is not None:
            await self.serve(line)
            response = line.get("response")
            if line.get("type") != "control_response" or not isinstance(response, Mapping):
                continue
            if response.get("request_id") == name:
                answer = response.get("response")
                if response.get("subtype") == "success" and isinstance(answer, Mapping):
                    return answer
                raise EngineFault(str(response.get("error") or "Claude Code didn't answer"), accepted=False)
        raise EngineFault(self.last_words() or "Claude Code ended at its start", accepted=False)

    async def may_read_windows(self) -> bool:
        """Whether this sign-in has the scope for it, and the program is new enough to know the question."""
        with suppress(EngineFault):
            return (await self.ask(USAGE, READ_WITHIN)).get("rate_limits_available") is True
        return False

    async def serve(self, line: Mapping[str, Any], run_tool: tools.RunTool | None = None) -> None:
        """Answer a request of the program's, or its turn would hang: its tools are run, nothing else is allowed."""
        request = line.get("request")
        if line.get("type") != "control_request" or not isinstance(request, Mapping):
            return
        answer: dict[str, Any] = {"subtype": "error", "error": "Conch answers no such requests"}
        message = request.get("message")
        if request.get("subtype") == "mcp_message" and isinstance(message, Mapping):
            said = await tools.answered(message, self.offered, run_tool)
            self.told_tools = self.told_tools or message.get("method") == "tools/list"
            answer = {"subtype": "success", "response": {"mcp_response": said}}
        answer["request_id"] = line.get("request_id")
        await self.send({"type": "control_response", "response": answer})


def _environment(access: Access, path: str) -> dict[str, str]:
    base = {"ANTHROPIC_BASE_URL": access.base_url} if access.base_url else {}
    return programs.scrubbed(path, **SWITCHES, **home_variables(access.home), **base)


def _check_account(hello: Mapping[str, Any], access: Access) -> None:
    """Before anything is asked: the plan's own sign-in pays, and it is still this account's (R34, R36)."""
    account = hello.get("account")
    account = account if isinstance(account, Mapping) else {}
    check_payer(account.get("apiKeySource"), accepted=False)
    if account.get("apiProvider") not in {None, "firstParty"}:
        check_payer(account["apiProvider"], accepted=False)
    theirs = account_in(access.home).identity
    if ":" in access.identity and theirs and theirs.lower() != access.identity.lower():
        raise SignedOut("the Claude sign-in in that folder is now somebody else's")


async def _hand_over(process: Started, messages: Sequence[Message]) -> None:
    """The chat so far, as the program's own history; costs nothing."""
    for message in messages:
        if message.role == "assistant":
            await process.send({"type": "assistant", "message": _message(message)})
            continue
        await process.send({"type": "user", "shouldQuery": False, "message": _message(message)})
        while (line := await process.next_line(READ_WITHIN)) is not None and line.get("type") != "result":
            if line.get("type") == "system":
                check_payer(line.get("apiKeySource"), accepted=False)
            await process.serve(line)
        if line is None:
            raise EngineFault(process.last_words() or "Claude Code ended before it was asked", accepted=False)


def _message(message: Message) -> dict[str, Any]:
    pictures = [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": b64encode(image.data).decode()},
        }
        for image in message.images
    ]
    text = [{"type": "text", "text": clean(message.text)}] if message.text or not pictures else []
    return {"role": message.role, "content": [*pictures, *text]}


def _auth_status(path: str, environment: Mapping[str, str]) -> Mapping[str, Any]:
    """What `claude auth status` prints; it exits with 1 when signed out, and prints all the same. Blocking."""
    folder = Folder()
    try:
        said = subprocess.run(  # noqa: S603 - the program that the person installed
            [path, "auth", "status", "--json"],
            env={**environment, **ONLY_REPLIES},
            cwd=folder.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STARTED_WITHIN,
            check=False,
        )
        status = json.loads(said.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise EngineFault("Claude Code doesn't say who is signed in", accepted=False) from error
    finally:
        folder.remove()
    return status if isinstance(status, Mapping) else {}


def _model(said: Mapping[str, Any]) -> Model:
    """One of its short names. What it stands for now is the first part of its description ("Opus 5.5 · Best for …")."""
    named = str(said.get("description") or "").partition(" · ")
    label = named[0] if named[1] and len(named[0]) <= 30 else str(said.get("displayName") or said["value"])
    return Model(id=str(said["value"]), label=label, tools=True, images=True)
