"""Programs that stand ready for a message: few, not for long, and none that has heard of another chat.

Two kinds. A *spare* was started and asked nothing yet: it may serve any chat of the same way of starting it (home,
model, instructions). A *kept* one has answered in one chat and serves the next message of that same chat alone, while
what it was told is how that chat begins: an edit, or another's words put in its place, ends it. What the chat has
gained meanwhile is handed over. A kept one answers in a twentieth of a second, where a start takes one or two.

Memory is bounded by `MOST` of both together for an engine, each 140 MB for Codex and 200 MB for Claude Code (clis.md),
by `AGE` idle and by `LIFE` in all; `AT_ONCE` bounds those that answer. Each belongs to the event loop that started it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from conch.engines.base import EngineError, Message
from conch.engines.cli_process import CliProcess

WAITS = "waiting for others to be answered"
MOST = 3
SPARES = 1  # for each way of starting one
AT_ONCE = 8
AGE = 600.0  # seconds without a message
LIFE = 3600.0  # seconds since its first message

P = TypeVar("P", bound=CliProcess)
Start = Callable[[], Awaitable[P]]
Said = tuple[bytes, ...]


@dataclass(slots=True)
class _Idle(Generic[P]):
    """`chat` is "" for a spare; `said` is what it was told, a digest a message; `until`: its last use may begin."""

    process: P
    key: Hashable
    chat: str
    asked_as: Hashable
    said: Said
    until: float
    loop: asyncio.AbstractEventLoop
    timer: asyncio.TimerHandle


@dataclass(frozen=True, slots=True)
class Taken(Generic[P]):
    """A process for one message: the first `told` messages of the chat are known to it."""

    process: P
    key: Hashable
    chat: str
    asked_as: Hashable
    start: Start[P]
    told: int
    until: float


class Ready(Generic[P]):
    """The processes of one engine that wait, oldest first."""

    def __init__(self) -> None:
        self._idle: list[_Idle[P]] = []
        self._starting: dict[Hashable, asyncio.Task[None]] = {}
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @property
    def place(self) -> asyncio.Semaphore:
        """The `AT_ONCE` places to answer in; `locked` while there is none, and the next waits for its turn."""
        return self._places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))

    async def take(
        self, key: Hashable, chat: str, history: Sequence[Message], start: Start[P], asked_as: Hashable = None
    ) -> Taken[P]:
        """The one that was kept for this chat, else a spare, else a new one; it is the caller's to end or `keep`.

        `key`: how it is started; `asked_as`: what else holds from a chat's first message on. `chat` "" keeps none.
        """
        kept = next((one for one in self._idle if chat and one.chat == chat), None)
        if kept is not None:
            self._out(kept)
            same = (kept.key, kept.asked_as) == (key, asked_as)
            if same and digests(history)[: len(kept.said)] == kept.said and _usable(kept):
                return Taken(kept.process, key, chat, asked_as, start, len(kept.said), kept.until)
            kept.process.end()
        spare = next((one for one in self._idle if not one.chat and one.key == key), None)
        if spare is not None:
            self._out(spare)
            if _usable(spare):
                return Taken(spare.process, key, chat, asked_as, start, 0, spare.until)
            spare.process.end()
        return Taken(await start(), key, chat, asked_as, start, 0, monotonic() + LIFE)

    def keep(self, taken: Taken[P], said: Sequence[Message]) -> None:
        """Have it wait for the next message of its chat, of which it knows these; and have a spare for other chats."""
        if not taken.chat or not taken.process.runs or monotonic() > taken.until:
            taken.process.end()
        else:
            self._put(taken.process, taken.key, (taken.chat, taken.asked_as), digests(said), taken.until)
        if not taken.told:
            self.prepare(taken.key, taken.start)

    def prepare(self, key: Hashable, start: Start[P]) -> None:
        """Have a spare ready soon. Failing to says nothing: the turn that needs it will find out."""
        if key in self._starting or sum(one.key == key and not one.chat for one in self._idle) >= SPARES:
            return
        task = asyncio.get_running_loop().create_task(self._fill(key, start), context=Context())
        self._starting[key] = task
        task.add_done_callback(lambda _: self._starting.pop(key, None))

    async def _fill(self, key: Hashable, start: Start[P]) -> None:
        with suppress(EngineError, OSError):
            self._put(await start(), key, ("", None), (), monotonic() + LIFE)

    def _put(self, process: P, key: Hashable, chat: tuple[str, Hashable], said: Said, until: float) -> None:
        while len(self._idle) >= MOST:
            self._drop(self._idle[0])
        loop = asyncio.get_running_loop()
        timer = loop.call_later(AGE, self._too_old, process)
        self._idle.append(_Idle(process, key, *chat, said, until, loop, timer))

    def _out(self, idle: _Idle[P]) -> None:
        idle.timer.cancel()
        self._idle.remove(idle)

    def _too_old(self, process: P) -> None:
        for idle in [idle for idle in self._idle if idle.process is process]:
            self._drop(idle)

    def _drop(self, idle: _Idle[P]) -> None:
        if idle in self._idle:
            self._out(idle)
            idle.process.end()

    async def close(self) -> None:
        """End them all."""
        for task in list(self._starting.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        ending = [idle.process for idle in self._idle]
        for idle in list(self._idle):
            self._drop(idle)
        await asyncio.gather(*(process.ended() for process in ending))


def digests(messages: Sequence[Message]) -> Said:
    """What tells one message from another, pictures included, in a few bytes each."""
    found = []
    for message in messages:
        digest = sha256(f"{message.role}\0{message.text}".encode("utf-8", "replace"))
        for image in message.images:
            digest.update(f"\0{image.media_type}\0{len(image.data)}\0".encode())
            digest.update(image.data)
        found.append(digest.digest())
    return tuple(found)


def _usable(idle: _Idle[P]) -> bool:
    return idle.loop is asyncio.get_running_loop() and idle.process.runs and monotonic() < idle.until
