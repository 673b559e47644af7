"""Open sessions with servers: kept for a while after their last call, few at a time, ended with Conch.

A session lives in a task of its own, which opens and ends it: the client's scopes are entered and left there. Each
process has its own, and so its own program of a server.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from conch.tools.launches import Launch
from conch.tools.listed import Listed
from conch.tools.trouble import ToolTrouble

T = TypeVar("T")

MOST = 64  # open at a time, in one process
IDLE = 300.0  # seconds after the last call
OPENING = 30.0  # seconds to be ready: a package runner may have to fetch the server first
ENDING = 5.0  # seconds to say goodbye
WHY = 1.0  # seconds until a session that broke off has said why

_pools: MutableMapping[asyncio.AbstractEventLoop, dict[str, "Session"]] = WeakKeyDictionary()


class Session:
    """One session with a server, from its opening on."""

    def __init__(self, launch: Launch) -> None:
        loop = asyncio.get_running_loop()
        self.calls = 0
        self._asking = 0
        self.used_at = loop.time()
        self.listed = Listed()
        self._ready: asyncio.Future[Any] = loop.create_future()
        self._enough = asyncio.Event()
        self._idle: asyncio.TimerHandle | None = None
        self._retired = False
        self._trouble: ToolTrouble | None = None
        self._task = loop.create_task(self._live(launch), name="tool server", context=contextvars.Context())

    @property
    def over(self) -> bool:
        """Whether nothing can be asked in it any more."""
        return self._retired or self._enough.is_set() or self._task.done()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep it open between the questions of one call."""
        self._begin_call()
        try:
            yield
        finally:
            self._end_call(by_itself=False)

    async def use(self, asked: Callable[[Any], Awaitable[T]], seconds: float, *, by_itself: bool = False) -> T:
        """Ask something of the server within so many seconds, once the session is open. Raises ToolTrouble.

        `by_itself`: nobody called a tool, so the session stays open no longer for it.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        self._begin_call()
        self._asking += 1
        try:
            session = await self._opened(min(OPENING, seconds))
            async with asyncio.timeout_at(until):
                return await asked(session)
        except TimeoutError as error:
            self._retired = True  # it may never answer again
            raise ToolTrouble("silent", sent=True, seconds=round(seconds)) from error
        except ToolTrouble:
            raise
        except Exception as error:  # whatever the client raised becomes words
            raise await self._why(error) from error
        finally:
            self._asking -= 1
            self._end_call(by_itself=by_itself)

    def end(self) -> None:
        """End it; a goodbye that takes too long is cut short."""
        self._enough.set()
        if not self._ready.done():
            self._task.cancel()
        elif not self._task.done():
            asyncio.get_running_loop().call_later(ENDING, self._task.cancel)

    async def ended(self) -> None:
        """End it, and wait until nothing of it is left."""
        self.end()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({self._task}, timeout=2 * ENDING)

    async def _opened(self, within: float) -> Any:
        try:
            async with asyncio.timeout(within):
                return await asyncio.shield(self._ready)
        except TimeoutError as error:
            self.end()
            raise ToolTrouble("slow", seconds=round(within)) from error

    async def _why(self, error: Exception) -> ToolTrouble:
        """Why a call came to nothing: what the server answered, or what ended the whole session."""
        protocol = import_module("conch.tools.protocol")
        trouble: ToolTrouble = protocol.trouble_in(error)
        if trouble.code != "cut":
            return trouble
        await asyncio.wait({self._task}, timeout=WHY)
        self.end()
        return (self._trouble or trouble).anew()

    async def _live(self, launch: Launch) -> None:
        try:
            protocol = await asyncio.to_thread(import_module, "conch.tools.protocol")
            try:
                async with protocol.opened(launch, self.listed.changed) as session:
                    self._ready.set_result(session)
                    await self._enough.wait()
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001  told to whoever waits for it
                self._trouble = protocol.trouble_in(error)
                # What one met says nothing of those beside it: their calls may have run.
                self._trouble.sent = self._trouble.sent or self._asking > 1
        finally:
            self._enough.set()
            self.listed.close()
            if not self._ready.done():
                trouble = self._trouble or ToolTrouble("slow", seconds=round(OPENING))
                trouble.sent = False  # no call could go out yet
                self._ready.set_exception(trouble)
                self._ready.exception()  # seen: nobody may be waiting for it

    def _begin_call(self) -> None:
        self.calls += 1
        if self._idle is not None:
            self._idle.cancel()

    def _end_call(self, *, by_itself: bool) -> None:
        loop = asyncio.get_running_loop()
        self.calls -= 1
        if not by_itself:
            self.used_at = loop.time()
        if self._retired and not self.calls:
            self.end()
        elif not self.calls:
            self._idle = loop.call_at(self.used_at + IDLE, self.end)


def session_with(launch: Launch) -> Session:
    """The open session with that server, as it is set up now; else a new one. Raises ToolTrouble."""
    pool = _pools.setdefault(asyncio.get_running_loop(), {})
    known = pool.get(launch.key)
    if known is not None and not known.over:
        return known
    _make_room(pool)
    pool[launch.key] = made = Session(launch)
    return made


async def alone(launch: Launch, asked: Callable[[Any], Awaitable[T]], seconds: float) -> T:
    """Ask something in a session of its own, which ends with it. Raises ToolTrouble."""
    session = Session(launch)
    try:
        return await session.use(asked, seconds)
    finally:
        await session.ended()


async def end_all() -> None:
    """End every session of this loop; Conch goes."""
    sessions = list(_pools.pop(asyncio.get_running_loop(), {}).values())
    await asyncio.gather(*(session.ended() for session in sessions))


def _make_room(pool: dict[str, Session]) -> None:
    for key in [key for key, session in pool.items() if session.over]:
        del pool[key]
    if len(pool) < MOST:
        return
    idle = [(session.used_at, key) for key, session in pool.items() if not session.calls]
    if not idle:
        raise ToolTrouble("busy")
    pool.pop(min(idle)[1]).end()
