"""What the HTTP engines share: the official SDKs on kept clients, streams as frames, failures as base.EngineError.

The SDKs bring the transport, the sign-in and their error classes. Requests and answers are plain dicts: typed ones cost
0.2 ms a message and 0.13 ms a chunk. Retries are off (an SDK sleeps for hours on a Retry-After, and may pay twice);
so are redirects, cookies, and everything that an environment variable could change.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from conch.engines.base import Access, EngineError, EngineFault, Rejected, SignedOut, Unreachable
from conch.engines.refusals import Answer, Speaks, reading_failure, refusal
from conch.engines.wire_frames import LONGEST_EVENT, Frame, FrameReader
from conch.engines.wire_text import said

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 120.0  # between two pieces of an answer; providers send comments or pings well within it
READING_SECONDS = 30.0  # for a list of models or a reading of room, whole
HEADERS_SECONDS = 300.0  # until an answer's first bytes, the body of a refusal included
DRAIN_SECONDS = 0.1
KEPT_CLIENTS = 256


def utc_now() -> datetime:
    """The time, asked for at this edge only; everything beneath is given it."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Client:
    """One SDK client: a base URL and a key, over the connections that all clients share."""

    sdk: Any
    errors: type[Exception]  # the root of the SDK's own errors
    speaks: Speaks
    host: str
    key: str = field(default="", repr=False)
    now: Callable[[], datetime] = utc_now
    # What the SDK would otherwise copy from its defaults, deeply, for every request.
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @asynccontextmanager
    async def answer(
        self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator["Answering"]:
        """Send one request and hold its answer while it streams. Sent once, never again. Raises EngineError."""
        import httpx2

        model = str(body.get("model") or "")
        if not model:
            raise Rejected("no model is named", reason="model_gone")  # an empty name is never sent (FBK-05)
        with self._failures(model):
            async with asyncio.timeout(HEADERS_SECONDS):
                response = await self.sdk.post(
                    path,
                    body=body,
                    cast_to=httpx2.Response,
                    stream=True,
                    options={**self.options, "headers": dict(headers or {})},
                )
        try:
            yield Answering(response, self, model)
        finally:
            await response.aclose()

    async def read(self, path: str, *, headers: Mapping[str, str] | None = None) -> "Reading":
        """What is there, as JSON: models, a key's facts, windows. A refusal of a reading is never a limit (LIM-20)."""
        import httpx2

        with self._failures("", reading=True):
            async with asyncio.timeout(READING_SECONDS):
                response = await self.sdk.get(
                    path,
                    cast_to=httpx2.Response,
                    stream=True,
                    options={**self.options, "headers": dict(headers or {})},
                )
                try:
                    text = await _whole(response)
                finally:
                    await response.aclose()
        body = parsed(text)
        if not isinstance(body, dict | list):
            raise EngineFault("the answer is no JSON", status=response.status_code)
        return Reading(body, dict(response.headers), self.now())

    @contextmanager
    def _failures(self, model: str, *, reading: bool = False) -> Iterator[None]:
        """Whatever the SDK raises before an answer, as one of ours."""
        import httpx2

        try:
            yield
        except TimeoutError as error:
            raise EngineFault("no answer in time", accepted=not reading) from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise Unreachable(said(str(error)), host=self.host) from error
        except httpx2.TransportError as error:
            raise EngineFault(said(str(error)) or "the connection broke", cut=True, accepted=not reading) from error
        except self.errors as error:
            raise self._ours(error, model, reading=reading) from error

    def _ours(self, error: Exception, model: str, *, reading: bool) -> EngineError:
        import httpx2

        response = getattr(error, "response", None)
        if response is not None:
            answer = Answer(response.status_code, lowered(response.headers), parsed(response.text), model, self.key)
            return (reading_failure if reading else refusal)(self.speaks, answer, self.now())
        cause = error.__cause__
        nothing_sent = httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout | httpx2.UnsupportedProtocol
        if isinstance(cause, nothing_sent):
            return Unreachable(said(str(cause)) or "no connection", host=self.host)
        return EngineFault(said(str(cause or error)) or "the connection broke", cut=True, accepted=not reading)


@dataclass(frozen=True, slots=True)
class Reading:
    """One JSON answer with its headers and when it came."""

    body: Any
    headers: Mapping[str, str]
    at: datetime


class Answering:
    """An answer under way: its headers, then its frames."""

    def __init__(self, response: Any, client: Client, model: str) -> None:
        self.headers: Mapping[str, str] = lowered(response.headers)
        self._response = response
        self._client = client
        self._model = model
        self._bytes: AsyncIterator[bytes] | None = None

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Every frame as it is complete. A connection that breaks raises EngineFault(cut=True); its end just ends."""
        import httpx2

        try:
            if self.headers.get("content-type", "").startswith("application/json"):
                # A server that doesn't stream, or says no under 200, answers in one piece.
                yield Frame("", await _whole(self._response))
                return
            reader = FrameReader()
            self._bytes = self._response.aiter_bytes()
            async for chunk in self._bytes:
                for frame in reader.feed(chunk):
                    yield frame
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError) as error:
            raise EngineFault(said(str(error)) or "the connection broke", cut=True) from error

    def failure(self, body: Any, *, started: bool, status: int = 200) -> EngineError:
        """What an error inside the stream means. `started`: part of the answer came before, so it may be charged."""
        answer = Answer(status, self.headers, body, self._model, self._client.key, in_stream=True, accepted=started)
        return refusal(self._client.speaks, answer, self._client.now())

    async def drain(self) -> None:
        """Read the few bytes after the terminal event, so that the connection can be used again."""
        if self._bytes is None:
            return
        with suppress(Exception):  # the answer is whole; nothing that happens now can change it
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in self._bytes:
                    pass


class Clients:
    """The clients of one engine, one per base URL and key, made on first use and forgotten with their event loop.

    All of them share one TLS context and one pool of connections: a client of its own for each would cost 27 ms.
    """

    def __init__(self, speaks: Speaks, now: Callable[[], datetime] = utc_now) -> None:
        self.now = now
        self._speaks = speaks
        self._kept: WeakKeyDictionary[asyncio.AbstractEventLoop, OrderedDict[Any, Client]] = WeakKeyDictionary()
        self._http: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[bool, Any]] = WeakKeyDictionary()

    def client(self, access: Access, base_url: str, *, key: str | None = None) -> Client:
        """The client for that account. `key` stands in for the account's, where each request brings its own."""
        key = (access.key if key is None else key).strip()
        public_only = access.public_only
        if not key or not key.isascii() or not key.isprintable():
            raise SignedOut("the key is empty or holds characters that no key has")
        kept = self._kept.setdefault(asyncio.get_running_loop(), OrderedDict())
        place = (base_url, key, public_only)
        if place not in kept:
            kept[place] = self._made(base_url, key, self._connections(public_only=public_only))
            if len(kept) > KEPT_CLIENTS:
                kept.popitem(last=False)
        kept.move_to_end(place)
        return kept[place]

    def prepare(self) -> None:
        """Import the SDK and read the certificates now (0.7 s), so that the first turn needn't. Blocking."""
        from conch.engines import wire_transport

        wire_transport.tls()
        import_module("anthropic" if self._speaks is Speaks.ANTHROPIC else "openai")

    async def close(self) -> None:
        """Close this loop's connections."""
        loop = asyncio.get_running_loop()
        self._kept.pop(loop, None)
        for http in self._http.pop(loop, {}).values():
            await http.aclose()

    def _connections(self, *, public_only: bool) -> Any:
        from conch.engines.wire_transport import connections

        kept = self._http.setdefault(asyncio.get_running_loop(), {})
        if public_only not in kept:
            kept[public_only] = connections(public_only=public_only)
        return kept[public_only]

    def _made(self, base_url: str, key: str, http: Any) -> Client:
        import httpx2

        make = _anthropic if self._speaks is Speaks.ANTHROPIC else _openai
        try:
            sdk, errors, unset = make(base_url, key, http)
            host = httpx2.URL(base_url).host
        except httpx2.InvalidURL as error:
            raise Unreachable(said(str(error)), host=base_url) from error
        options = {"max_retries": 0, "timeout": unset, "post_parser": unset}
        return Client(sdk, errors, self._speaks, host, key, self.now, options)


def _openai(base_url: str, key: str, http: Any) -> tuple[Any, type[Exception], Any]:
    from openai import NOT_GIVEN, AsyncOpenAI, OpenAIError

    sdk = AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, http_client=http, timeout=http.timeout)
    # The SDK fills these from the environment; an account's answers come by its own key and nothing else (R34).
    sdk.organization = sdk.project = sdk.admin_api_key = None
    sdk._custom_headers = {}  # noqa: SLF001 - OPENAI_CUSTOM_HEADERS has no other switch
    return sdk, OpenAIError, NOT_GIVEN


def _anthropic(base_url: str, key: str, http: Any) -> tuple[Any, type[Exception], Any]:
    from anthropic import NOT_GIVEN, AnthropicError, AsyncAnthropic, Omit

    sdk = AsyncAnthropic(api_key=key, base_url=base_url, max_retries=0, http_client=http, timeout=http.timeout)
    # The sign-in and the version of the wire that providers.md 2.1 describes, instead of what this SDK's release picks,
    # and instead of ANTHROPIC_CUSTOM_HEADERS, which has no other switch.
    headers: dict[str, Any] = {"X-Api-Key": key, "Authorization": Omit(), "anthropic-version": "2023-06-01"}
    sdk._custom_headers = headers  # noqa: SLF001
    return sdk, AnthropicError, NOT_GIVEN


def parsed(text: str) -> Any:
    """The JSON value in it, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def lowered(headers: Any) -> dict[str, str]:
    """Headers by lower-case names."""
    return {str(name).lower(): str(value) for name, value in headers.items()}


async def _whole(response: Any) -> str:
    whole = bytearray()
    async for chunk in response.aiter_bytes():
        whole += chunk
        if len(whole) > LONGEST_EVENT:
            raise EngineFault("the answer is longer than any answer can be", cut=True)
    return whole.decode("utf-8", "replace")
