"""Codex CLI: a ChatGPT plan by the Codex program, over its app-server (clis.md 2.4, providers.md 3).

The same account as Codex: a reading or a refusal of either is one of both. A chat is an ephemeral thread in a process
of its own, with what it hasn't heard of the chat injected natively; both may be kept for the chat's next message.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from json import dumps
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from conch.engines import codex_catalog, codex_renewal, programs
from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    EngineError,
    EngineFault,
    Event,
    Identity,
    Message,
    Model,
    Overloaded,
    Progress,
    Rejected,
    Request,
    Room,
    SignedOut,
    Unreachable,
)
from conch.engines.cli_process_ready import WAITS, Ready
from conch.engines.codex_cli_lines import Turn, read_room
from conch.engines.codex_cli_refusals import reading_failure
from conch.engines.codex_cli_server import CALLS_TOOL, CodexServer, Home, Refused, command
from conch.engines.codex_home import AUTH_FILE, Tokens, folder_of, pays_by_key, read_tokens, signed_in_at
from conch.engines.wire_text import clean, model_label

SERVER_OVERLOADED = -32001
# What the Codex program is told of the network, beside what any program is.
CODEX_VARIABLES = ("CODEX_CA_CERTIFICATE", "CODEX_REFRESH_TOKEN_URL_OVERRIDE")


class CodexCli:
    """Replies by a person's ChatGPT plan, through the Codex program."""

    id: ClassVar[str] = "codex-cli"
    label: ClassVar[str] = "Codex CLI"
    billing: ClassVar[Billing] = Billing.PLAN
    shares_account: ClassVar[str] = "openai-codex"
    meters: ClassVar[bool] = True
    connect_by: ClassVar[ConnectBy] = ConnectBy.SIGN_IN
    plan_name: ClassVar[str] = "ChatGPT plan"
    monogram: ClassVar[str] = "Cc"
    official_base_url: ClassVar[str] = "https://chatgpt.com/backend-api"
    preferred_models: ClassVar[tuple[str, ...]] = ()  # the program lists the plan's best first
    billing_page: ClassVar[str] = "https://chatgpt.com/codex/settings/usage"
    counted_exactly: ClassVar[bool] = True  # its models split text as Conch counts it (conch/turns/tokens.py)
    program: ClassVar[programs.Kind] = programs.CODEX
    signs_in_by: ClassVar[programs.Kind] = programs.CODEX

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.now = now
        self._open: set[CodexServer] = set()
        self._ready: Ready[CodexServer] = Ready()

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer. Closing the iterator ends the program."""
        used, begun = await self._signed_in(access), False
        try:
            async with aclosing(self._turn(access, request)) as events:
                async for event in events:
                    begun = True
                    yield event
        except SignedOut:
            # One of the program's own requests may have renewed the sign-in while this one was refused with the old.
            if begun or (await self._signed_in(access)).access_token == used.access_token:
                raise
        else:
            return
        async with aclosing(self._turn(access, request)) as events:
            async for event in events:
                yield event

    async def read_room(self, access: Access) -> Room:
        """Every window of the plan, ahead of a turn; asks no model."""
        async with self._server(access) as server:
            return await self._windows(server)

    async def identify(self, access: Access) -> Identity:
        """Whose the sign-in is, by its own claims, once the program and the provider take it."""
        async with self._server(access) as server:
            try:
                await self._windows(server)
            except (SignedOut, Unreachable):
                raise
            except EngineError:
                pass  # it was let in; only the reading failed
        return (await asyncio.to_thread(read_tokens, folder_of(access.home))).identity

    async def models(self, access: Access) -> Sequence[Model]:
        """What the plan can answer with, best first, as the program lists it."""
        async with self._server(access) as server:
            try:
                answer = await server.ask("model/list", {})
            except Refused as error:
                raise reading_failure(error.message) from error
        listed = answer.get("data")
        listed = [model for model in listed if isinstance(model, Mapping)] if isinstance(listed, list) else []
        return [_model(model) for model in listed if model.get("id") and model.get("hidden") is not True]

    def signed_in_here(self) -> Identity | None:
        """Whose sign-in the Codex program keeps in its usual place; None where it keeps none. Asks nobody."""
        return signed_in_at("")

    async def close(self) -> None:
        """End what runs."""
        await self._ready.close()
        await asyncio.gather(*(server.ended() for server in list(self._open)))

    async def _turn(self, access: Access, request: Request) -> AsyncGenerator[Event, None]:
        key, start = await self._way(access)
        asked_as = (request.model, request.instructions, dumps(_tools(request)))
        if self._ready.place.locked():
            yield Progress(WAITS)
        async with self._ready.place:
            taken = await self._ready.take(key, request.conversation, request.messages[:-1], start, asked_as)
            async with self._ended_after(taken.process, access) as server:
                server.answer = None
                await _hand_over(server, request, taken.told)
                async with aclosing(self._answer(server, request)) as events:
                    async for event in events:
                        yield event
                if server.answer is not None:
                    self._open.discard(server)
                    self._ready.keep(taken, (*request.messages, Message("assistant", server.answer)))

    @asynccontextmanager
    async def _server(self, access: Access) -> AsyncGenerator[CodexServer, None]:
        """A server that speaks for this very sign-in, for what is no turn: it lists the plan's own models."""
        _, start = await self._way(access, answers=False)
        async with self._ended_after(await start(), access) as server:
            yield server

    async def _way(
        self, access: Access, *, answers: bool = True
    ) -> tuple[Hashable, Callable[[], Awaitable[CodexServer]]]:
        """How a server for that sign-in is started, and what tells it from others."""
        path = await asyncio.to_thread(programs.find, self.program)
        catalog = await asyncio.to_thread(codex_catalog.of_program, path) if answers else ""
        await self._signed_in(access)
        auth, base = folder_of(access.home) / AUTH_FILE, self._base(access)
        return (path, base, str(auth), auth.stat().st_mtime_ns), partial(_started, path, base, auth, catalog)

    @asynccontextmanager
    async def _ended_after(self, server: CodexServer, access: Access) -> AsyncGenerator[CodexServer, None]:
        """The server, ended on the way out unless it was kept meanwhile."""
        self._open.add(server)
        try:
            yield server
        except Unreachable as error:
            error.host = error.host or urlsplit(self._base(access)).hostname or ""
            raise
        finally:
            if server in self._open:
                self._open.discard(server)
                server.end()

    async def _signed_in(self, access: Access) -> Tokens:
        """The sign-in as it is now, renewed where it has run out. Raises SignedOut, Rejected where a key would pay."""
        folder = folder_of(access.home)
        if await asyncio.to_thread(pays_by_key, folder):
            raise Rejected("Codex is signed in by an API key there, not by a ChatGPT plan", reason="paying")
        tokens = await asyncio.to_thread(read_tokens, folder)
        theirs = tokens.identity.identity
        if ":" in access.identity and theirs and theirs != access.identity:
            raise SignedOut(f"the sign-in in {folder} is now somebody else's")
        if tokens.expires_at is not None and tokens.expires_at <= self.now():
            with suppress(SignedOut):  # a clock may be wrong: then the provider says what it thinks of it
                tokens = await asyncio.to_thread(codex_renewal.renew, folder, tokens, access.base_url)
        return tokens

    async def _answer(self, server: CodexServer, request: Request) -> AsyncGenerator[Event, None]:
        try:
            question = {"threadId": server.thread, "input": _input(request.messages[-1])}
            started = (await server.ask("turn/start", question)).get("turn")
        except Refused as error:
            raise _at_start(error) from error
        name = str(started.get("id") or "") if isinstance(started, Mapping) else ""
        turn = Turn(request.model, self.now, name, server.used)
        try:
            while not turn.ended:
                notice = await server.next_notice()
                if notice is None:
                    said = server.last_words() or "Codex ended in the middle of its answer"
                    raise EngineFault(said, cut=True)
                if notice["method"] == CALLS_TOOL:
                    turn.used_tools = True
                    await server.answer_call(notice, request.run_tool)
                for event in turn.read(notice):
                    yield event
        finally:
            if not turn.ended:
                await _interrupt(server, name)
        server.used, server.answer = turn.used, turn.answer
        if turn.failed is not None:
            raise turn.why(await self._windows_after(server) if turn.failed.needs_windows else None)

    async def _windows(self, server: CodexServer) -> Room:
        try:
            return read_room(await server.ask("account/rateLimits/read", None), self.now())
        except Refused as error:
            raise reading_failure(error.message) from error

    async def _windows_after(self, server: CodexServer) -> Room | None:
        with suppress(EngineError):
            return await self._windows(server)
        return None

    def _base(self, access: Access) -> str:
        return (access.base_url or self.official_base_url).rstrip("/")


async def _started(path: str, base: str, auth: Path, catalog: str) -> CodexServer:
    """A server that has shaken hands, and that the ChatGPT sign-in pays for."""
    folder = Home(auth, catalog)
    environment = programs.scrubbed(path, CODEX_HOME=str(folder.home), **programs.given(*CODEX_VARIABLES))
    server = await CodexServer.start(command(path, base, folder.catalog), environment, folder)
    try:
        await server.greet()
        await _check_payer(server)
    except BaseException:  # it must not be left running
        server.end()
        raise
    return server


async def _check_payer(server: CodexServer) -> None:
    """Before anything is asked: the ChatGPT sign-in pays (R34, CON-02)."""
    try:
        method = (await server.ask("getAuthStatus", {})).get("authMethod")
    except Refused:
        account = (await server.ask("account/read", {"refreshToken": False})).get("account")
        method = account.get("type") if isinstance(account, Mapping) else None
    if method is None:
        raise SignedOut("Codex is signed out. Sign in: codex login")
    if not str(method).lower().startswith("chatgpt"):
        raise Rejected(f"Codex would pay by {method}, not by the plan", reason="paying")


async def _hand_over(server: CodexServer, request: Request, told: int) -> None:
    """What its thread hasn't heard of the chat; a thread that nobody keeps, where it has none yet."""
    try:
        if not server.thread:
            thread = (await server.ask("thread/start", _thread(server, request))).get("thread")
            server.thread = str(thread.get("id") or "") if isinstance(thread, Mapping) else ""
        items = [_item(message) for message in request.messages[told:-1]]
        if items:
            await server.ask("thread/inject_items", {"threadId": server.thread, "items": items})
    except Refused as error:
        raise _at_start(error) from error


def _thread(server: CodexServer, request: Request) -> dict[str, Any]:
    return {
        "model": request.model,
        "cwd": str(server.folder.work),
        "approvalPolicy": "never",
        "sandbox": "read-only",
        "ephemeral": True,
        "environments": [],
        "dynamicTools": _tools(request),
        "baseInstructions": clean(request.instructions) or "You are a helpful assistant.",
    }


def _tools(request: Request) -> list[dict[str, Any]]:
    """The tools that Conch runs for the chat; the program calls no others."""
    return [
        {"type": "function", "name": tool.name, "description": tool.description, "inputSchema": dict(tool.schema)}
        for tool in request.tools
    ]


def _at_start(error: Refused) -> EngineError:
    if error.code == SERVER_OVERLOADED:
        return Overloaded(error.message)
    return EngineFault(error.message, accepted=False)


async def _interrupt(server: CodexServer, turn: str) -> None:
    """Stop what it is doing; the end of the process follows."""
    params = {"threadId": server.thread, "turnId": turn}
    await server.send({"id": "stop", "method": "turn/interrupt", "params": params})


def _item(message: Message) -> dict[str, Any]:
    kind = "output_text" if message.role == "assistant" else "input_text"
    pictures = [{"type": "input_image", "image_url": _url(image)} for image in message.images]
    text = [{"type": kind, "text": clean(message.text)}] if message.text or not pictures else []
    return {"type": "message", "role": message.role, "content": [*pictures, *text]}


def _input(message: Message) -> list[dict[str, Any]]:
    pictures = [{"type": "image", "url": _url(image)} for image in message.images]
    return [*pictures, *([{"type": "text", "text": clean(message.text)}] if message.text or not pictures else [])]


def _url(image: Any) -> str:
    return f"data:{image.media_type};base64,{b64encode(image.data).decode()}"


def _model(said: Mapping[str, Any]) -> Model:
    kinds = said.get("inputModalities")
    return Model(
        id=str(said["id"]),
        label=model_label(str(said["id"]))
        if str(said["id"]).startswith("gpt-")
        else str(said.get("displayName") or said["id"]),
        tools=True,
        images="image" in kinds if isinstance(kinds, list) else True,
    )
