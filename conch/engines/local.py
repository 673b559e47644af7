"""The model on this computer: a server of one's own, else a model file run beside Conch, else nobody, and it says why.

All three speak Chat Completions on loopback. It is always there as an account, needs no sign-in and is never paid for.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from conch.engines import local_models, local_server
from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    Done,
    EngineError,
    EngineFault,
    Event,
    Identity,
    Model,
    Rejected,
    Request,
    Room,
    Unreachable,
)
from conch.engines.local_models import LocalFacts, Setup
from conch.engines.local_process import Address, CouldNotStart, ModelProcess
from conch.engines.local_told import listed, run_here
from conch.engines.refusals import Speaks
from conch.engines.wire import Client, Clients
from conch.engines.wire_chat import chat_body, stream_chat

# What the tiny model answers best with (local.md: the best of ten settings tried); longer instructions make it worse.
TINY_INSTRUCTIONS = "You are a helpful AI assistant."
TINY_SAMPLING = {"temperature": 0.2, "top_p": 0.9, "dry_multiplier": 0.8, "dry_allowed_length": 2}
TINY_LOADED = 4096  # tokens: the history it is given and its answer, with room for what was counted too low
TINY_ANSWER = 512  # tokens; it would go round in circles
PORTS = (11434, 1234, 8080)  # where Ollama, LM Studio and llama-server listen unless they are told otherwise
ANSWERS_WITHIN = 1.0  # seconds; a server on loopback that takes longer is busy with something else
ENDS_WITHIN = 2.0  # seconds from a broken connection to the end of the process that broke it
OWN_LOADED = local_models.OWN_CONTEXT + local_models.OWN_ANSWER


@dataclass(frozen=True, slots=True)
class Where:
    """A server to ask: its client, the model by the server's own name, and what else a request there carries.

    `answers`: the model by the name that people know, where it is another.
    """

    client: Client
    model: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    answers: str = ""


def facts() -> LocalFacts:
    """Who would answer on this computer, without starting or asking anything (R10). Raises ImproperlyConfigured."""
    return local_models.facts(local_models.setup())


@dataclass(frozen=True, slots=True)
class Found:
    """A server that runs on this computer and could be chosen for the model here, with the models it lists."""

    url: str
    label: str
    models: tuple[str, ...]


async def servers_here(ports: Sequence[int] = ()) -> list[Found]:
    """Ollama, LM Studio and llama-server, where they listen by default and answer; to be offered, never just used."""
    clients = Clients(Speaks.COMPATIBLE)
    await asyncio.to_thread(clients.prepare)  # not on the servers' time: a cold start takes longer than they are given

    async def ask(port: int) -> Found | None:
        url = f"http://127.0.0.1:{port}/v1"
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                listing = await listed_here(clients.client(Access("local"), url, key="none"), url)
        except (EngineError, TimeoutError):
            return None
        models = tuple(str(entry["id"]) for entry in listing)
        return Found(url, local_models.server_label(url), models) if models else None

    try:
        return [found for found in await asyncio.gather(*map(ask, ports or PORTS)) if found]
    finally:
        await clients.close()


class Local:
    """The model on this computer."""

    id: ClassVar[str] = "local"
    label: ClassVar[str] = "The model on this computer"
    billing: ClassVar[Billing] = Billing.LOCAL
    shares_account: ClassVar[str] = "local"
    meters: ClassVar[bool] = False
    connect_by: ClassVar[ConnectBy] = ConnectBy.NOTHING
    plan_name: ClassVar[str] = ""
    monogram: ClassVar[str] = "PC"
    official_base_url: ClassVar[str] = ""
    preferred_models: ClassVar[tuple[str, ...]] = ()
    billing_page: ClassVar[str] = ""

    def __init__(self, given: Setup | None = None) -> None:
        self._given = given
        self._process: ModelProcess | None = None
        self._clients = Clients(Speaks.COMPATIBLE)

    @property
    def given(self) -> Setup:
        """What was configured: the environment's, unless it was passed."""
        return self._given or local_models.setup()

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer. Raises EngineFault, saying what to do, where there is no model or its process ended."""
        where = await self._where(access, request.model)
        body = chat_body(replace(request, model=where.model), extra=where.extra)
        if not request.instructions and "dry_multiplier" in where.extra:
            body["messages"] = [{"role": "system", "content": TINY_INSTRUCTIONS}, *body["messages"]]
        try:
            async with aclosing(stream_chat(where.client, body)) as events:
                async for event in events:
                    yield replace(event, model=where.answers) if isinstance(event, Done) and where.answers else event
        except EngineError as error:
            raise await self._explained(error) from error

    async def read_room(self, access: Access) -> Room | None:  # noqa: ARG002 - there is nothing to run out of
        """It has no limits."""
        return None

    async def identify(self, access: Access) -> Identity:  # noqa: ARG002 - there is one
        """This computer's."""
        return Identity(identity="local", whose="this computer")

    async def models(self, access: Access) -> Sequence[Model]:
        """What can be asked for: those that its server lists, or the one file. Raises EngineError; starts nothing."""
        known = local_models.facts(self.given)
        if not known.present:
            raise EngineFault(known.why_missing, accepted=False)
        if not self.given.url:
            return [Model(known.model_id, known.label, tools=known.tools, images=known.images, context=known.context)]
        return [listed(entry) for entry in await listed_here(self._server(access), self.given.url)]

    async def warm(self) -> None:
        """Have the model loaded before the first message needs it; where there is none, nothing happens."""
        if not self.given.url and local_models.facts(self.given).present:
            try:
                await self._address()
            except EngineFault:
                return  # the first message says it

    def prepare(self) -> None:
        """Load the client; the model itself is loaded for the first message that needs it."""
        self._clients.prepare()

    async def close(self) -> None:
        """Close connections and use the process no longer: it ends when nobody does."""
        await self._clients.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.leave)

    async def _where(self, access: Access, model: str) -> Where:
        given = self.given
        if given.url:
            client = self._server(access)
            return Where(client, given.model or model or await self._first_listed(client))
        known = local_models.facts(given)
        if not known.present:
            raise EngineFault(known.why_missing, accepted=False)
        address = await self._address()
        client = self._clients.client(access, address.url, key=address.key)
        extra = {"max_tokens": TINY_ANSWER, **TINY_SAMPLING} if known.tiny else {"max_tokens": local_models.OWN_ANSWER}
        return Where(client, local_server.MODEL_ALIAS, extra, answers=known.model_id)

    def _server(self, access: Access) -> Client:
        """A server of the person's own; one that wants no key gets a word that none has."""
        return self._clients.client(access, self.given.url, key=self.given.key or "none")

    async def _first_listed(self, client: Client) -> str:
        found = await listed_here(client, self.given.url)
        if not found:
            raise EngineFault(f"{self.given.url} lists no model: load one there.", accepted=False)
        return str(found[0]["id"])

    async def _address(self) -> Address:
        given = self.given
        file = local_models.model_file(given)
        loaded = OWN_LOADED if given.model else TINY_LOADED
        if self._process is None or (self._process.model, self._process.context) != (file, loaded):
            if self._process is not None:
                self._process.leave()
            self._process = ModelProcess(file, loaded, given.folder / "local")
        try:
            return await asyncio.to_thread(self._process.address)
        except CouldNotStart as error:
            raise EngineFault(str(error), accepted=False) from error

    async def _explained(self, error: EngineError) -> EngineError:
        """The same error, unless our own process has ended: then that, and nothing is said to be unreachable."""
        process = self._process
        if process is None or isinstance(error, Rejected) or not isinstance(error, EngineFault | Unreachable):
            return error
        if not await asyncio.to_thread(process.has_ended, ENDS_WITHIN):
            return error
        said = f"{process.how_it_ended()} It is started again with the next message."
        return EngineFault(said, cut=isinstance(error, EngineFault) and error.cut, accepted=error.accepted)


async def listed_here(client: Client, url: str) -> list[Mapping[str, Any]]:
    """The models that a server lists and runs itself. Raises EngineError."""
    listing = (await client.read("/models")).body
    try:
        tags = (await client.read(f"{url.removesuffix('/').removesuffix('/v1')}/api/tags")).body
    except EngineError:
        tags = None  # no Ollama
    return run_here(listing, tags)
