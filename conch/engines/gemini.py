"""Gemini by API key: Google's OpenAI-compatible interface (providers.md 7)."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from conch.engines.base import Access, Billing, ConnectBy, Event, Identity, Model, Request, Room
from conch.engines.refusals import Speaks
from conch.engines.wire import Client, Clients
from conch.engines.wire_chat import chat_body, stream_chat
from conch.engines.wire_text import model_label

_NOT_FOR_CHAT = re.compile(
    r"embed|\baqa\b|imagen|veo|lyria|\btts\b|image|banana|omni|\blive\b|native-audio|robotics|computer-use"
)


class Gemini:
    """Replies by a Gemini API key, which pays per use beyond its free quota. What it has left can't be read."""

    id: ClassVar[str] = "gemini"
    label: ClassVar[str] = "Gemini"
    billing: ClassVar[Billing] = Billing.KEY
    shares_account: ClassVar[str] = "gemini"
    meters: ClassVar[bool] = False
    connect_by: ClassVar[ConnectBy] = ConnectBy.KEY
    plan_name: ClassVar[str] = ""
    monogram: ClassVar[str] = "GE"
    official_base_url: ClassVar[str] = "https://generativelanguage.googleapis.com/v1beta/openai"
    preferred_models: ClassVar[tuple[str, ...]] = ("gemini-2.5-flash", "gemini-2.5", "gemini")
    billing_page: ClassVar[str] = "https://ai.studio/projects"
    key_variable: ClassVar[str] = "GEMINI_API_KEY"
    price_list: ClassVar[str] = "google"

    def __init__(self) -> None:
        self.clients = Clients(Speaks.COMPATIBLE)

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer."""
        async with aclosing(stream_chat(self._client(access), chat_body(request))) as events:
            async for event in events:
                yield event

    async def read_room(self, access: Access) -> Room | None:  # noqa: ARG002 - nothing can be read with a key
        """What a key has left can't be read."""
        return None

    async def identify(self, access: Access) -> Identity:
        """Check the key. Whose project it is isn't said: a key is an account of its own (R1)."""
        await self._client(access).read("/models")
        return Identity()

    async def models(self, access: Access) -> Sequence[Model]:
        """What the key can chat with, as listed. What each can take isn't said."""
        reading = await self._client(access).read("/models")
        listed = reading.body.get("data") if isinstance(reading.body, Mapping) else None
        found = [_model(entry) for entry in listed or () if isinstance(entry, Mapping) and entry.get("id")]
        return [model for model in found if not _NOT_FOR_CHAT.search(model.id)]

    def prepare(self) -> None:
        """Load what the first turn would otherwise wait for. Blocking."""
        self.clients.prepare()

    async def close(self) -> None:
        """Close the connections."""
        await self.clients.close()

    def _client(self, access: Access) -> Client:
        return self.clients.client(access, access.base_url or self.official_base_url)


def _model(entry: Mapping[str, Any]) -> Model:
    # "models/gemini-…" is listed; replies and price lists know the name without.
    name = str(entry["id"]).removeprefix("models/")
    return Model(id=name, label=str(entry.get("display_name") or "") or model_label(name))
