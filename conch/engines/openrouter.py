"""OpenRouter by API key: Chat Completions with the price charged, and a key that knows its own cap (providers.md 6)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from decimal import Decimal
from typing import Any, ClassVar

from conch.engines import windows
from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    EngineError,
    Event,
    Identity,
    LimitReached,
    Model,
    Request,
    Room,
)
from conch.engines.refusals import Speaks
from conch.engines.wire import Client, Clients
from conch.engines.wire_chat import chat_body, stream_chat
from conch.engines.wire_text import count, money


class OpenRouter:
    """Replies by an OpenRouter key, which pays per use. Its own cap can be read; the account's credit can't."""

    id: ClassVar[str] = "openrouter"
    label: ClassVar[str] = "OpenRouter"
    billing: ClassVar[Billing] = Billing.KEY
    shares_account: ClassVar[str] = "openrouter"
    meters: ClassVar[bool] = True
    connect_by: ClassVar[ConnectBy] = ConnectBy.KEY
    plan_name: ClassVar[str] = ""
    monogram: ClassVar[str] = "OR"
    official_base_url: ClassVar[str] = "https://openrouter.ai/api/v1"
    preferred_models: ClassVar[tuple[str, ...]] = ("openai/gpt-5.5", "anthropic/claude-sonnet-5", "openai/gpt-5")
    billing_page: ClassVar[str] = "https://openrouter.ai/settings/credits"
    key_variable: ClassVar[str] = "OPENROUTER_API_KEY"

    def __init__(self) -> None:
        self.clients = Clients(Speaks.OPENROUTER)

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer. A refusal for the key's cap that gives no reset gets the one that the key has."""
        try:
            async with aclosing(stream_chat(self._client(access), chat_body(request))) as events:
                async for event in events:
                    yield event
        except LimitReached as limit:
            if limit.status in {402, 403} and limit.scope == "limit" and limit.until is None:
                with suppress(EngineError):  # the refusal stands, whether the key can be read or not
                    limit.room = await self.read_room(access)
                    limit.until = limit.room.key_resets_at
            raise

    async def read_room(self, access: Access) -> Room:
        """The key's own cap and what is left of it."""
        reading = await self._client(access).read("/key")
        return windows.openrouter_key(reading.body, reading.headers, reading.at)

    async def identify(self, access: Access) -> Identity:
        """Check the key. Who made it says nothing of whose credit it draws on: a key is an account of its own (R1)."""
        await self._client(access).read("/key")
        return Identity()

    async def models(self, access: Access) -> Sequence[Model]:
        """All models with their live prices and what they take."""
        reading = await self._client(access).read("/models")
        listed = reading.body.get("data") if isinstance(reading.body, Mapping) else None
        return [_model(entry) for entry in listed or () if isinstance(entry, Mapping) and entry.get("id")]

    def prepare(self) -> None:
        """Load what the first turn would otherwise wait for. Blocking."""
        self.clients.prepare()

    async def close(self) -> None:
        """Close the connections."""
        await self.clients.close()

    def _client(self, access: Access) -> Client:
        return self.clients.client(access, access.base_url or self.official_base_url)


def _model(entry: Mapping[str, Any]) -> Model:
    takes, kinds = entry.get("supported_parameters"), _of(entry, "architecture").get("input_modalities")
    prices = _of(entry, "pricing")
    return Model(
        id=str(entry["id"]),
        label=str(entry.get("name") or ""),
        tools="tools" in takes if isinstance(takes, list) else None,
        images="image" in kinds if isinstance(kinds, list) else None,
        context=count(entry.get("context_length")) or None,
        input_price=_price(prices.get("prompt")),
        output_price=_price(prices.get("completion")),
    )


def _of(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = entry.get(name)
    return value if isinstance(value, Mapping) else {}


def _price(value: Any) -> Decimal | None:
    """USD per token; a negative one means that it varies: no figure."""
    price = money(value)
    return price if price is not None and price >= 0 else None
