"""Codex: the ChatGPT plan over HTTP, with the sign-in that the Codex program keeps (providers.md 4).

The same account as Codex CLI: a reading or a refusal of either is one of both.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conch.engines import codex_renewal, programs, windows
from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    EngineError,
    Event,
    Identity,
    KnownModels,
    Model,
    Request,
    Room,
    SignedOut,
    Unreachable,
    Usage,
)
from conch.engines.codex_home import Tokens, folder_of, known_tokens, read_tokens, signed_in_at
from conch.engines.refusals import Speaks
from conch.engines.wire import Client, Clients, Reading
from conch.engines.wire_responses import responses_body, stream_responses
from conch.engines.wire_text import count, model_label

# As the program names itself: the backend serves its own programs.
VERSION = "0.171.0"
HEADERS = {"originator": "codex_cli_rs", "version": VERSION, "User-Agent": f"codex_cli_rs/{VERSION} (Conch)"}


class Codex:
    """Replies by a person's ChatGPT plan. Its windows can be read ahead of a turn, and come with every answer."""

    id: ClassVar[str] = "codex"
    label: ClassVar[str] = "Codex"
    billing: ClassVar[Billing] = Billing.PLAN
    shares_account: ClassVar[str] = "openai-codex"
    meters: ClassVar[bool] = True
    connect_by: ClassVar[ConnectBy] = ConnectBy.SIGN_IN
    plan_name: ClassVar[str] = "ChatGPT plan"
    monogram: ClassVar[str] = "Cx"
    official_base_url: ClassVar[str] = "https://chatgpt.com/backend-api"
    preferred_models: ClassVar[tuple[str, ...]] = ("gpt-5.5", "gpt-5")
    billing_page: ClassVar[str] = "https://chatgpt.com/codex/settings/usage"
    counted_exactly: ClassVar[bool] = True  # its models split text as Conch counts it (conch/turns/tokens.py)
    signs_in_by: ClassVar[programs.Kind] = programs.CODEX

    def __init__(self) -> None:
        self.clients = Clients(Speaks.CODEX)
        self._renewing: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, asyncio.Lock]] = WeakKeyDictionary()

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer. A sign-in that has run out is renewed once; nothing was accepted before."""
        tokens = await self._tokens(access)
        begun = False
        try:
            async with aclosing(self._turn(access, tokens, request)) as events:
                async for event in events:
                    begun = True
                    yield event
        except SignedOut:
            if begun:
                raise
        else:
            return
        tokens = await self._renewed(access, tokens)
        async with aclosing(self._turn(access, tokens, request)) as events:
            async for event in events:
                yield event

    async def read_room(self, access: Access) -> Room:
        """Every window of the plan, as the provider reads it ahead of a turn; one free request."""
        base = self._base(access)
        # A base of its own without /backend-api has the readings elsewhere.
        path = "/wham/usage" if base.endswith("/backend-api") else "/api/codex/usage"
        reading = await self._read(access, path)
        return windows.codex_usage(reading.body, reading.headers, reading.at)

    async def identify(self, access: Access) -> Identity:
        """Whose the sign-in is, by its own claims, once the provider takes it."""
        tokens = await self._tokens(access)
        try:
            await self.read_room(access)
        except (SignedOut, Unreachable):
            raise
        except EngineError:
            return tokens.identity  # it was let in; only the reading failed
        return (await self._tokens(access)).identity

    async def models(self, access: Access) -> Sequence[Model]:
        """What the plan can answer with; where the backend gives no list, what is known and the account's own model."""
        try:
            reading = await self._read(access, f"/codex/models?client_version={VERSION}")
        except (SignedOut, Unreachable):
            raise
        except EngineError:
            known = dict.fromkeys(filter(None, (self.preferred_models[0], access.model)))
            return KnownModels(Model(model, model_label(model), tools=True, images=True) for model in known)
        listed = reading.body.get("models") if isinstance(reading.body, Mapping) else None
        entries = [entry for entry in listed or () if isinstance(entry, Mapping) and entry.get("slug")]
        shown = [entry for entry in entries if entry.get("visibility") in {None, "list"}]
        return [_model(entry) for entry in sorted(shown, key=lambda entry: count(entry.get("priority")) or 0)]

    def signed_in_here(self) -> Identity | None:
        """Whose sign-in the Codex program keeps in its usual place; None where it keeps none. Asks nobody."""
        return signed_in_at("")

    def prepare(self) -> None:
        """Load what the first turn would otherwise wait for. Blocking."""
        self.clients.prepare()

    async def close(self) -> None:
        """Close the connections."""
        await self.clients.close()

    async def _turn(self, access: Access, tokens: Tokens, request: Request) -> AsyncGenerator[Event, None]:
        body = responses_body(replace(request, max_output_tokens=None))  # this backend refuses a cap
        headers = _headers(tokens)
        if request.conversation:
            headers["session-id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, request.conversation))
        client = self._client(access, tokens)
        extra = False

        def aside(said: Mapping[str, str], event: Mapping[str, Any] | None) -> list[Event]:
            nonlocal extra
            extra = extra or (event is None and _on_credits(said, client.now()))
            room = _room(said, event, client.now())
            return [room] if room else []

        async with aclosing(stream_responses(client, "/codex/responses", body, headers=headers, aside=aside)) as events:
            async for event in events:
                yield replace(event, extra=True) if extra and isinstance(event, Usage) else event

    async def _read(self, access: Access, path: str) -> Reading:
        tokens = await self._tokens(access)
        try:
            return await self._client(access, tokens).read(path, headers=_headers(tokens))
        except SignedOut:
            tokens = await self._renewed(access, tokens)
        return await self._client(access, tokens).read(path, headers=_headers(tokens))

    async def _tokens(self, access: Access) -> Tokens:
        """The sign-in as it is now. Raises SignedOut where it is gone, or somebody else's than the account's."""
        folder = folder_of(access.home)
        known = known_tokens(folder)
        tokens = await asyncio.to_thread(read_tokens, folder) if known is None else known
        if tokens.expires_at is not None and tokens.expires_at <= self.clients.now():
            with suppress(SignedOut):  # a clock may be wrong: then the provider says what it thinks of it
                tokens = await self._renewed(access, tokens)
        theirs = tokens.identity.identity
        if ":" in access.identity and theirs and theirs != access.identity:
            raise SignedOut(f"the sign-in in {folder} is now somebody else's")
        return tokens

    async def _renewed(self, access: Access, refused: Tokens) -> Tokens:
        """A newer sign-in than the refused one, by the Codex program. One at a time for each home."""
        folder = folder_of(access.home)
        locks = self._renewing.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(folder, asyncio.Lock()):
            return await asyncio.to_thread(codex_renewal.renew, folder, refused, access.base_url)

    def _base(self, access: Access) -> str:
        return (access.base_url or self.official_base_url).rstrip("/")

    def _client(self, access: Access, tokens: Tokens) -> Client:
        """One client an address: tokens change by the hour, and come with each request."""
        return replace(self.clients.client(access, self._base(access), key="per-request"), key=tokens.access_token)


def _headers(tokens: Tokens) -> dict[str, str]:
    return {**HEADERS, "Authorization": f"Bearer {tokens.access_token}", "ChatGPT-Account-ID": tokens.account_id}


def _room(headers: Mapping[str, str], event: Mapping[str, Any] | None, now: datetime) -> Room | None:
    if event is None:
        return windows.codex_headers(headers, now)
    return windows.codex_event(event, headers, now) if event.get("type") == "codex.rate_limits" else None


def _on_credits(headers: Mapping[str, str], now: datetime) -> bool:
    """Whether an answer that comes although the plan is full is paid from credits (R32)."""
    paying = "true" in {headers.get(f"x-codex-credits-{name}", "").lower() for name in ("has-credits", "unlimited")}
    room = windows.codex_headers(headers, now)
    full = any((window.used_percent or 0) >= 100 and not window.models for window in (room.windows if room else ()))
    return paying and full


def _model(entry: Mapping[str, Any]) -> Model:
    kinds = entry.get("input_modalities")
    return Model(
        id=str(entry["slug"]),
        label=str(entry.get("display_name") or "") or model_label(str(entry["slug"])),
        tools=True,
        images="image" in kinds if isinstance(kinds, list) else True,
        context=count(entry.get("context_window")) or None,
    )
