"""OpenAI by API key, and any server that speaks as it does.

Which of OpenAI's two interfaces an address speaks is found out by asking: OpenAI itself speaks Responses. Another
address is asked by Responses first; one that has no such path (404, 405, 501: nothing was accepted, nothing is paid)
speaks Chat Completions, and is asked that way from then on, for as long as this process runs. A refusal for any other
reason is a refusal, and the request isn't sent again.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    EngineError,
    Event,
    Identity,
    Model,
    Rejected,
    Request,
    Room,
)
from conch.engines.refusals import Speaks
from conch.engines.wire import Client, Clients
from conch.engines.wire_chat import chat_body, stream_chat
from conch.engines.wire_responses import responses_body, stream_responses
from conch.engines.wire_text import count, model_label

NO_SUCH_PATH = {404, 405, 501}
_NOT_FOR_CHAT = re.compile(r"embed|rerank|whisper|\btts\b|dall-e|moderation|transcribe", re.IGNORECASE)
# Names of OpenAI's own; elsewhere "instruct" is what a model for chat is called.
_NOT_FOR_CHAT_OF_OPENAI = re.compile(r"realtime|audio|image|sora|babbage|davinci|instruct|-search-")


class OpenAI:
    """Replies by an OpenAI API key, which pays per use. What it has left can't be read."""

    id: ClassVar[str] = "openai"
    label: ClassVar[str] = "OpenAI"
    billing: ClassVar[Billing] = Billing.KEY
    shares_account: ClassVar[str] = "openai"
    meters: ClassVar[bool] = False
    connect_by: ClassVar[ConnectBy] = ConnectBy.KEY
    plan_name: ClassVar[str] = ""
    monogram: ClassVar[str] = "OA"
    official_base_url: ClassVar[str] = "https://api.openai.com/v1"
    preferred_models: ClassVar[tuple[str, ...]] = ("gpt-5.5", "gpt-5", "gemini-2.5-flash", "gemini")
    billing_page: ClassVar[str] = "https://platform.openai.com/settings/organization/billing"
    counted_exactly: ClassVar[bool] = True  # its models split text as Conch counts it (conch/turns/tokens.py)
    key_variable: ClassVar[str] = "OPENAI_API_KEY"
    address_variable: ClassVar[str] = "OPENAI_BASE_URL"

    def __init__(self) -> None:
        self.clients = Clients(Speaks.COMPATIBLE)
        self._speaks_chat: dict[str, bool] = {}  # by base URL; known once an answer came

    async def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer, by the interface that this address has."""
        base = self._base(access)
        if not self._speaks_chat.get(base, False):
            try:
                async with aclosing(
                    stream_responses(self._client(access), "/responses", responses_body(request))
                ) as events:
                    async for event in events:
                        self._speaks_chat[base] = False
                        yield event
            except EngineError as error:
                if base in self._speaks_chat or not self._has_no_such_path(base, error):
                    raise
            else:
                return
        async with aclosing(stream_chat(self._client(access), chat_body(request))) as events:
            async for event in events:
                self._speaks_chat[base] = True
                yield event

    async def read_room(self, access: Access) -> Room | None:  # noqa: ARG002 - nothing can be read with a plain key
        """A plain key's spend can't be read."""
        return None

    async def identify(self, access: Access) -> Identity:
        """The organisation that the key belongs to, where the server says it; a key is an account of its own (R1)."""
        reading = await self._client(access).read("/models")
        return Identity(organization=reading.headers.get("openai-organization", ""))

    async def models(self, access: Access) -> Sequence[Model]:
        """What the key can chat with, OpenAI's newest first, another server's as it lists them."""
        reading = await self._client(access).read("/models")
        listed = reading.body.get("data") if isinstance(reading.body, Mapping) else None
        entries = [entry for entry in listed or () if isinstance(entry, Mapping) and entry.get("id")]
        entries = [entry for entry in entries if not _NOT_FOR_CHAT.search(str(entry["id"]))]
        if self._base(access) == self.official_base_url:
            entries = [entry for entry in entries if not _NOT_FOR_CHAT_OF_OPENAI.search(str(entry["id"]))]
            entries.sort(key=lambda entry: -(count(entry.get("created")) or 0))
        return [_model(entry) for entry in entries]

    def prepare(self) -> None:
        """Load what the first turn would otherwise wait for. Blocking."""
        self.clients.prepare()

    async def close(self) -> None:
        """Close the connections."""
        await self.clients.close()

    def _base(self, access: Access) -> str:
        return (access.base_url or self.official_base_url).rstrip("/")

    def _client(self, access: Access) -> Client:
        return self.clients.client(access, self._base(access))

    def _has_no_such_path(self, base: str, error: EngineError) -> bool:
        if base == self.official_base_url or error.accepted or error.status not in NO_SUCH_PATH:
            return False
        return not (isinstance(error, Rejected) and error.reason == "model_gone")


def _model(entry: Mapping[str, Any]) -> Model:
    # Gemini lists "models/gemini-…" and takes the name without.
    name = str(entry["id"]).removeprefix("models/")
    context = entry.get("context_length") or entry.get("max_model_len") or entry.get("context_window")
    return Model(
        id=name, label=str(entry.get("display_name") or "") or model_label(name), context=count(context) or None
    )
