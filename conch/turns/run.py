"""Running one turn: ask the route, stream the one that answers, write down, and ask again at a limit (R17).

A run is a task of the process, not of a request. All that it knows of the database goes through the steps of begin.py
and record.py; no transaction is open while a provider is asked.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from dataclasses import replace
from time import monotonic
from typing import Any

from django.db import InterfaceError, OperationalError

from conch.db import step
from conch.engines.base import (
    EngineError,
    EngineFault,
    Held,
    LimitReached,
    Rejected,
    SignedOut,
    Unreachable,
)
from conch.log import about
from conch.turns import failures, offline
from conch.turns.asking import wait_for_word
from conch.turns.begin import after_allowed, after_refusal, after_unable, begin
from conch.turns.clock import SYSTEM, Clock
from conch.turns.ending import End, Ended, finish
from conch.turns.errors import Stopped
from conch.turns.events import Event as Told
from conch.turns.gathering import Allowed, Begun, Halted, RunSoFar
from conch.turns.holding import TooDear
from conch.turns.live import Live, live_of, open_live
from conch.turns.process import this_process
from conch.turns.record import Growth, Tried
from conch.turns.rounds import after_too_dear
from conch.turns.streaming import Stream
from conch.turns.toolbox import Toolbox

logger = logging.getLogger("conch.turns")

LEAST_AFFORDABLE = 1_000  # output tokens (R34)
DATABASE_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds; together shorter than a lease

# What a step of the route led to: the next to be asked, a stop, or the turn that goes next in the chat.
Going = Begun | Halted | int | None

_tasks: set[asyncio.Task[None]] = set()
_runners: dict[int, "Runner"] = {}
_closing = False


def start(turn_id: int, *, waking: bool = False, carry_on: str = "", clock: Clock = SYSTEM) -> None:
    """Run that turn in this process, as a task of nobody's request; nothing happens where it can't be claimed.

    The task starts in an empty context: one that inherits a request's would keep its thread and connection for good.
    """
    import contextvars

    live = None if _closing else open_live(turn_id)
    if live is None:
        return
    runner = Runner(live, clock, waking=waking)
    runner.so_far = RunSoFar(carry_on=carry_on)
    task = asyncio.get_running_loop().create_task(runner.run(), name=f"turn {turn_id}", context=contextvars.Context())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def begin_no_more() -> None:
    """The process ends: queued turns are left to whoever comes next (recovery.py)."""
    global _closing
    _closing = True


def running() -> list["Runner"]:
    """The runs under way in this process."""
    return list(_runners.values())


async def all_ended() -> None:
    """Wait until no run is under way in this process."""
    while _tasks:
        await asyncio.wait(set(_tasks))


class Runner:
    """One run of one turn: what has arrived of the answer, and what was tried."""

    def __init__(self, live: Live, clock: Clock, *, waking: bool) -> None:
        self.live = live
        self.clock = clock
        self.waking = waking
        self.so_far = RunSoFar()
        self.run_number = 0
        self.parts: list[str] = []
        self.arrived = 0
        self.unkept: list[Told] = []
        self.dirty = False
        self.closing = False  # the process ends: `interrupted`, not `stopped`
        self.began = monotonic()
        self.toolbox = Toolbox(self)
        self.goes_on = False  # it rests, and what it rested for is there already

    @property
    def answer(self) -> str:
        """What has arrived of the answer."""
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""

    def growth(self) -> Growth:
        """What is to be written down since the last time."""
        events, self.unkept = tuple(self.unkept), []
        self.dirty = False
        return Growth(self.live.turn_id, self.run_number, self.answer, self.live.position, events)

    async def run(self) -> None:
        """Run the turn to an end, or until it waits."""
        following = None
        about(turn=self.live.turn_id)
        try:
            _runners[self.live.turn_id] = self
            following = await self._run()
        except (
            OperationalError,
            InterfaceError,
        ) as error:  # nothing more can be written now: whoever finds the turn later ends it
            logger.error("turn %s could not go on: the database: %s", self.live.turn_id, error)  # noqa: TRY400  no trace
        except Exception:  # the top of the run: a fault of ours ends the turn, said as such, never lost
            logger.exception("turn %s broke", self.live.turn_id)
            following = await self._end(End("failed", failure=failures.ours()), None) if self.run_number else None
        finally:
            _runners.pop(self.live.turn_id, None)
            self.live.close()
        if following is not None and not self.closing:
            start(following, clock=self.clock)
        if self.goes_on and not self.closing:
            start(self.live.turn_id, waking=True, clock=self.clock)

    async def _run(self) -> int | None:
        begun: Allowed | Going = await step(
            begin, self.live.turn_id, this_process(), self.so_far, self.clock.now(), waking=self.waking
        )
        while isinstance(begun, Begun | Allowed):
            self.run_number = begun.run
            self.live.tell_all(begun.events)
            if isinstance(begun, Allowed):
                begun = await self._run_allowed(begun)
            elif begun.asked is None:
                return begun.following
            else:
                begun = await self._ask(begun)
        return await self._end(self._stopped(""), None) if isinstance(begun, Halted) else begun

    async def _run_allowed(self, claimed: Allowed) -> Going:
        """Run the calls that the person said yes to; then the route is asked, with what they gave."""
        try:
            await self._until_stopped(self.toolbox.allowed(claimed.calls))
        except Stopped:
            return await self._end(self._stopped(""), None)
        if self.toolbox.held:
            return await self._rest(None)
        return await step(after_allowed, self.growth(), self.so_far, self.clock.now())

    async def _ask(self, begun: Begun) -> Going:
        """Ask the one that the route chose; the next Begun where the route was asked again, else the turn has ended."""
        stream = Stream(self, begun)
        about(account=stream.tried.account)
        try:
            await self._until_stopped(stream.consume())
        except Stopped:
            return await self._end(self._stopped(stream.model, begun), stream.tried_now())
        except Held:
            return await self._rest(stream)
        except (TooDear, EngineError) as error:
            return await self._couldnt(stream, error)
        return await self._end(End("done", stream.model, stream.ending), stream.tried_now())

    async def _couldnt(self, stream: Stream, error: TooDear | EngineError) -> Going:
        if isinstance(error, TooDear):
            return await self._too_dear(stream, error)
        if isinstance(error, LimitReached):
            return await self._refused(stream, error)
        if isinstance(error, SignedOut | Rejected):
            return await self._unable(stream, error)
        return await self._failed(stream, error)

    def _stopped(self, model: str, begun: Begun | None = None) -> End:
        """The person stopped it, or the process ends."""
        return End("interrupted", model, failure=failures.interrupted(begun)) if self.closing else End("stopped", model)

    async def _rest(self, stream: Stream | None) -> int | None:
        """A tool asks the person: what else runs comes to its end, then the turn rests until they have answered.

        Without a stream nobody was asked in this run: a call that the person had said yes to asks anew.
        """
        await self.toolbox.all_ended()
        growth = self.growth()
        tried, label = (stream.tried_now(), stream.asked.label) if stream is not None else (None, "")
        said = await step(wait_for_word, tried, growth, label, self.clock.now())
        if said.stopped:
            return await self._end(self._stopped(stream.model if stream is not None else ""), None)
        self.live.tell_all(said.events)
        self.goes_on = said.answered
        return None

    async def _too_dear(self, stream: Stream, error: TooDear) -> Going:
        """The next round doesn't fit: as a limit reached in the turn, or the chat's own cap holds it (R26)."""
        tried = stream.tried_now()
        if not error.capped:
            self.so_far = self.so_far.refused(tried.account, LimitReached(scope="money"))
            self.discard()
        begun = await step(after_too_dear, tried, error, self.growth(), self.so_far, self.clock.now())
        if isinstance(begun, Begun) and begun.asked is not None and self.parts:
            # Somebody who costs nothing can answer by now: what was written so far isn't part of their answer.
            self.live.tell_all(begun.events)
            self.discard()
            begun = replace(begun, events=[])
        return begun

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        if self.live.stop.is_set():  # before it was begun: nothing of it goes out
            work.close()
            raise Stopped
        doing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.live.stop.wait())
        try:
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                doing.cancel()
                with contextlib.suppress(asyncio.CancelledError, EngineError):
                    await doing
                raise Stopped
            doing.result()
        finally:
            stopping.cancel()
            if not doing.done():
                doing.cancel()

    async def _refused(self, stream: Stream, error: LimitReached) -> Going:
        """A refusal in the turn: marked, what streamed leaves the answer, and the route is asked again (R17)."""
        await self.toolbox.all_ended()
        tried = stream.tried_now(free=not error.accepted and not stream.begun_to_speak)
        marks = not self._can_pay_less(tried.account, error)
        if marks:
            self.so_far = self.so_far.refused(tried.account, error)
        self.discard()
        return await step(after_refusal, tried, error, self.growth(), self.so_far, self.clock.now(), marks=marks)

    def _can_pay_less(self, account: str, error: LimitReached) -> bool:
        """A key that says how many output tokens it can pay for is asked once more with that (R34)."""
        affordable = error.affordable_output or 0
        if affordable < LEAST_AFFORDABLE or account in self.so_far.affordable:
            return False
        affordable -= affordable // 20
        self.so_far = replace(self.so_far, affordable=self.so_far.affordable | {account: affordable})
        return True

    async def _unable(self, stream: Stream, error: EngineError) -> Going:
        """Unable for a reason that surely cost nothing: one that carries on is passed over; the chat's own fails."""
        asked = stream.asked
        if error.accepted or stream.started:
            return await self._failed(stream, error)
        if isinstance(error, Rejected) and self._once_more(stream, error):
            return await step(after_unable, stream.tried_now(), error, self.growth(), self.so_far, self.clock.now())
        if asked.own:
            return await self._failed(stream, error)
        self.so_far = self.so_far.unable(asked.tried.account, error)
        return await step(after_unable, stream.tried_now(), error, self.growth(), self.so_far, self.clock.now())

    def _once_more(self, stream: Stream, error: Rejected) -> bool:
        """Whether the same account is asked once more: shortened or without older images (R31), or with its default
        model (R17).
        """  # noqa: D205  one sentence
        account, asked = stream.tried.account, stream.asked
        if error.reason == "too_long" and account not in self.so_far.fits:
            fits = stream.tried.fits(error.fits_tokens)
            self.so_far = replace(self.so_far, fits=self.so_far.fits | {account: fits})
            return True
        if error.reason == "images" and account not in self.so_far.blind and not asked.request.messages[-1].images:
            self.so_far = replace(self.so_far, blind=self.so_far.blind | {account})
            return True
        if error.reason == "model_gone" and not asked.own and asked.default_model not in {"", asked.request.model}:
            if account in self.so_far.default_model:
                return False
            self.so_far = replace(self.so_far, default_model=self.so_far.default_model | {account})
            return True
        return False

    def discard(self) -> None:
        """What has streamed so far leaves the answer."""
        if self.parts:
            self.unkept.append(self.live.tell("discard", {}))
        self.parts = []

    async def _failed(self, stream: Stream, error: EngineError) -> Going:
        if isinstance(error, Unreachable) and not self.so_far.offline and await offline.nobody_answers(stream.begun):
            self.so_far = replace(self.so_far, offline=True)
            return await step(after_unable, stream.tried_now(), error, self.growth(), self.so_far, self.clock.now())
        ending = "cut" if isinstance(error, EngineFault) and error.cut and self.answer else ""
        end = End("failed", stream.model, ending, failures.of(error, stream.begun))
        free = not error.accepted and not stream.begun_to_speak
        return await self._end(end, stream.tried_now(free=free), error=error)

    async def _end(self, end: End, tried: Tried | None, *, error: EngineError | None = None) -> int | None:
        await self.toolbox.close()
        ended = await self._finished(tried, end, error)
        said = {"state": end.state, "code": end.failure.get("code", ""), "seconds": round(monotonic() - self.began, 3)}
        logger.info("a turn ended", extra={"facts": said})
        if ended.last is not None:
            self.live.tell_all([ended.last])
        return ended.following

    async def _finished(self, tried: Tried | None, end: End, error: EngineError | None) -> Ended:
        """Write the end down; a database that is away for a while is waited for, as long as the lease lasts.

        Written twice, where only the answer to the first was lost, it is one end and one settlement.
        """
        growth = self.growth()
        for pause in DATABASE_PAUSES:
            try:
                return await step(finish, tried, growth, end, self.clock.now(), error=error)
            except (OperationalError, InterfaceError):
                logger.warning("the end of turn %s can't be written down yet", self.live.turn_id)
                await self.clock.sleep(pause)
        return await step(finish, tried, growth, end, self.clock.now(), error=error)


def stop_here(turn_id: int) -> bool:
    """Stop that turn's run if it is under way in this process."""
    live = live_of(turn_id)
    if live is None:
        return False
    live.stop.set()
    return True


def interrupt_all() -> None:
    """The process ends: what runs is ended as interrupted, with what had arrived."""
    for runner in running():
        runner.closing = True
        runner.live.stop.set()
