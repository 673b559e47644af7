"""What an engine is, what it says while it answers, and the few ways in which it can't.

Errors (each carries facts, never prose of ours; `said` is the provider's own text, redacted):

    EngineError
    ├── LimitReached     a usage limit: passed over until `until`, or for a while (R8, R17)
    ├── Throttled        asks for a pause of seconds; not a limit, never blocks or switches (R8)
    ├── Overloaded       the provider is overloaded or broken, and took nothing (R8)
    ├── Unreachable      nothing could be sent (R19)
    ├── SignedOut        the sign-in or key isn't accepted (R36)
    ├── Rejected         this request can't be taken: its model is gone, it is too long, it needs images or tools
    └── EngineFault      anything else: a stream that was cut, an answer that can't be read

`accepted` on every error says whether the provider may have started, and so may charge: only False allows Conch to send
the same again by itself (R34).

`Held` is none of these: the engine could answer, and a tool that it called has to ask the person first.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Protocol


class Billing(StrEnum):
    """How an account is paid."""

    PLAN = "plan"
    KEY = "key"
    LOCAL = "local"


class ConnectBy(StrEnum):
    """What connecting an account takes."""

    KEY = "key"
    SIGN_IN = "sign_in"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Access:
    """What an engine needs to speak for one account. `key` is the unsealed secret and never in a repr.

    `public_only`: only addresses of the internet may be connected to, whatever a name resolves to.
    """

    slug: str
    base_url: str = ""
    key: str = field(default="", repr=False)
    home: str = ""
    identity: str = ""
    model: str = ""
    public_only: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """A picture of a message, as bytes of its media type; of so many pixels, where that is known."""

    media_type: str
    data: bytes = field(repr=False)
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for; `id` is the provider's and never leaves the run that it came in (R31).

    `sealed`: what the provider wants back with it, unread (Gemini's thought signatures); it leaves the run no more.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    sealed: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of a call of this same run."""

    id: str
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One plain message. `calls` and `outcomes` are used only within a run's own tool rounds."""

    role: str  # "user" or "assistant"
    text: str = ""
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    outcomes: tuple[ToolOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call, with its JSON schema."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """All of one request, in plain conversation: who answers has no part in what is said (R31)."""

    model: str
    messages: tuple[Message, ...]
    instructions: str = ""
    # The cap on output tokens (R34); None where the engine takes none (plans).
    max_output_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    conversation: str = ""  # an opaque key for engines that keep a process for a chat
    # For engines whose program calls tools itself, in the middle of a reply: runs one of `tools` and says what came of
    # it. A tool's own failure is an outcome (`failed`); raises Held, which the engine lets pass. The others hand
    # CallTool out and are asked again with the outcomes.
    run_tool: Callable[[ToolCall], Awaitable[ToolOutcome]] | None = field(default=None, repr=False, compare=False)


# What a reply says while it arrives.


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Discard:
    """What streamed so far leaves the answer: it was provisional (Claude Code's deltas)."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the engine is doing now, in a few words of its own (a tool's name, "thinking")."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTool:
    """The model asks for a tool; the turn runs it and goes on with another request."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of this request so far; later figures replace earlier ones. None: not said.

    `input_tokens` is the whole prompt, cached tokens included; `cost` is what the provider says it charged, in USD.
    """

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    # A plan went on at a price per use (R32): what that cost, where known.
    extra: bool = False


@dataclass(frozen=True, slots=True)
class WindowReading:
    """One window of a plan as just read. A None says nothing and never replaces a known figure (R29)."""

    name: str  # "5-hour", "weekly", "Opus weekly", "key limit", by length and model, never by slot
    used_percent: float | None = None
    resets_at: datetime | None = None
    models: tuple[str, ...] = ()  # model ids or families it covers; empty: all
    length_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """What was read of an account's room. `complete`: every window is in it; else it is merged into what is known.

    `allowed`: the provider's own word on whether it would answer now, where it gives one. Key caps are in USD.
    """

    windows: tuple[WindowReading, ...] = ()
    complete: bool = False
    allowed: bool | None = None
    plan: str = ""
    key_cap: Decimal | None = None
    key_left: Decimal | None = None
    key_resets_at: datetime | None = None
    key_uncapped: bool = False
    clock_off_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The terminal event was seen. `ending`: "" whole, "length" cut by the output cap; `model` is what answered."""

    ending: str = ""
    model: str = ""


Event = Text | Discard | Progress | CallTool | Usage | Room | Done


# What an account is.


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose an account is. `identity` is the engine's own (R1), "" where it can't be known; `whose` is for people."""

    identity: str = ""
    whose: str = ""
    plan: str = ""
    organization: str = ""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of an account with what it can take; None: not known, assumed able (R9). Prices in USD per token."""

    id: str
    label: str = ""
    tools: bool | None = None
    images: bool | None = None
    context: int | None = None
    input_price: Decimal | None = None
    output_price: Decimal | None = None


class KnownModels(tuple[Model, ...]):
    """Models that are known to answer without a list of the provider's: enough to connect, nothing to go by later."""

    __slots__ = ()


# Why it can't.


class EngineError(Exception):
    """An engine couldn't answer. Raised as one of its subclasses only."""

    def __init__(self, said: str = "", *, accepted: bool = False, status: int | None = None) -> None:
        super().__init__(said)
        self.said = said
        self.accepted = accepted
        self.status = status


class LimitReached(EngineError):
    """A usage limit. `scope`: "limit" (a window, a cap), "money" (no credit), "not_entitled" (the plan has it not).

    `until` is the provider's own reset, None where it gave none. `model`: the one model it names, else "".
    `affordable_output`: the output tokens that the provider says it would still pay for (OpenRouter's 402).
    `room`: what the refusal itself said about windows. `clock_off_seconds`: our clock less the provider's, when far.
    """

    def __init__(
        self,
        said: str = "",
        *,
        until: datetime | None = None,
        scope: str = "limit",
        model: str = "",
        affordable_output: int | None = None,
        room: Room | None = None,
        accepted: bool = False,
        status: int | None = None,
        clock_off_seconds: int | None = None,
    ) -> None:
        super().__init__(said, accepted=accepted, status=status)
        self.until = until
        self.scope = scope
        self.model = model
        self.affordable_output = affordable_output
        self.room = room
        self.clock_off_seconds = clock_off_seconds


class Throttled(EngineError):
    """A pause is asked for: `retry_after` seconds, always above zero; not a limit."""

    def __init__(
        self, said: str = "", *, retry_after: float = 5.0, accepted: bool = False, status: int | None = None
    ) -> None:
        super().__init__(said, accepted=accepted, status=status)
        self.retry_after = retry_after


class Overloaded(EngineError):
    """The provider is overloaded (503, 529): tried again a few times (R8)."""


class Unreachable(EngineError):
    """Nothing could be sent: no route, no name, connection refused. `host` is who couldn't be reached."""

    def __init__(self, said: str = "", *, host: str = "") -> None:
        super().__init__(said)
        self.host = host


class SignedOut(EngineError):
    """The sign-in or key isn't accepted. `missing_program`: the program that would sign in isn't installed."""

    def __init__(self, said: str = "", *, status: int | None = None, missing_program: bool = False) -> None:
        super().__init__(said, status=status)
        self.missing_program = missing_program


class Rejected(EngineError):
    """This request can't be taken. `reason`: "model_gone", "too_long", "images", "tools", "paying", "bad".

    "paying": the program reported another way of paying than this account's (R34). `fits_tokens`: the prompt's
    largest size, where the provider said it.
    """

    def __init__(
        self,
        said: str = "",
        *,
        reason: str = "bad",
        fits_tokens: int | None = None,
        accepted: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(said, accepted=accepted, status=status)
        self.reason = reason
        self.fits_tokens = fits_tokens


class EngineFault(EngineError):
    """Anything else. `cut`: the stream ended before its terminal event (R30); what arrived is kept."""

    def __init__(self, said: str = "", *, cut: bool = False, accepted: bool = True, status: int | None = None) -> None:
        super().__init__(said, accepted=accepted, status=status)
        self.cut = cut


class Held(Exception):
    """A tool asks the person first: the reply ends here, and the turn rests until they have answered.

    An engine ends what its program was doing and lets it pass; what the program wrote so far is no answer.
    """


class Engine(Protocol):
    """A way to get a reply. Adding one: a module, a line in the registry, a test module (docs/adding-an-engine.md).

    Engines are async, stream only, keep no state but clients and processes, and never import models.
    """

    id: ClassVar[str]
    label: ClassVar[str]
    billing: ClassVar[Billing]
    shares_account: ClassVar[str]  # which account it is a way into; by default its own id (R1)
    meters: ClassVar[bool]  # whether its windows can be read ahead of a turn
    connect_by: ClassVar[ConnectBy]
    plan_name: ClassVar[str]  # "ChatGPT plan": for "In your ChatGPT plan."; "" for keys
    monogram: ClassVar[str]  # two letters for the badge
    official_base_url: ClassVar[str]
    # Best first, prefixes of ids; the default model at connecting (R12). None: the first that it lists.
    preferred_models: ClassVar[tuple[str, ...]]
    billing_page: ClassVar[str]  # where a person adds credit or sees usage; ""

    def reply(self, access: Access, request: Request) -> AsyncIterator[Event]:
        """Stream one answer; ends with Done, or raises an EngineError. Closing the iterator stops the provider."""
        ...

    async def read_room(self, access: Access) -> Room | None:
        """Read what is left, ahead of a turn; None where the engine can't know. Costs nothing (R29)."""
        ...

    async def identify(self, access: Access) -> Identity:
        """Say whose the account is. Raises SignedOut, Unreachable or EngineFault."""
        ...

    async def models(self, access: Access) -> Sequence[Model]:
        """List what the account can answer with. Asks for models or the key's facts, never for a reply.

        KnownModels where the provider gives no list and some are known all the same.
        """
        ...

    def prepare(self) -> None:
        """Load what the first turn would otherwise wait for (imports, TLS). Blocking; starts no process."""
        ...

    async def close(self) -> None:
        """End processes and connections."""
        ...
