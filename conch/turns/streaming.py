"""One attempt while it streams: what it said of itself besides the text, and its rounds of tools."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from conch.db import look, step
from conch.engines.base import (
    Billing,
    CallTool,
    Discard,
    Done,
    EngineError,
    EngineFault,
    Event,
    Held,
    Progress,
    Room,
    Text,
    ToolCall,
    Unreachable,
    Usage,
)
from conch.engines.registry import engine
from conch.turns import offline, pace, pauses, rounds
from conch.turns.errors import Stopped
from conch.turns.gathering import Asking, Begun
from conch.turns.holding import OUTPUT_CAP, TooDear
from conch.turns.record import Tried

if TYPE_CHECKING:
    from conch.turns.run import Runner

MOST_CHARACTERS = 2_000_000
# Signs of life alone (pings, comments) keep a connection, not a turn; models that think say so well within it.
WORDLESS_SECONDS = 1_800.0
BETWEEN_ROUNDS = "\n\n"


class Stream:
    """One attempt: asked, and asked again with what its tools gave, until it has said all.

    `rounds`: how many have ended before the one under way. `begun_to_speak` is of the one under way.
    """

    def __init__(self, runner: "Runner", begun: Begun) -> None:
        assert begun.asked is not None
        self.runner = runner
        self.begun = begun
        self.asked: Asking = begun.asked
        self.tried: Tried = begun.asked.tried
        self.usage: Usage | None = None
        self.rooms: list[Room] = []
        self.model = begun.asked.tried.model
        self.ending = ""
        self.begun_to_speak = False
        self.rounds = 0
        self.request = begun.asked.request
        if self.request.tools:
            runner.toolbox.open(self.tried.account)
            self.request = replace(self.request, run_tool=runner.toolbox.run)
        self._calls: list[ToolCall] = []
        self._said: list[str] = []  # of the round under way
        self._sent = False  # whether any of it may have reached the provider

    @property
    def started(self) -> bool:
        """Whether anything came of it that may have been paid for."""
        return self.begun_to_speak or self.rounds > 0

    async def consume(self) -> None:
        """Ask, run the tools that are asked for, and ask again, until the answer is whole."""
        await self._ask()
        while self._calls:
            await self._next_round()
            await self._ask()
        if self.runner.toolbox.held:
            raise Held  # the program went on without what it had asked for

    async def _next_round(self) -> None:
        """Settle the round that has ended, run its calls, and hold what the next may cost (R26)."""
        runner, asked = self.runner, self._calls
        ended = self.tried_now()
        # A plan's rounds are paid for by nobody, so there is nothing to write down.
        paid = ended.entry_id is not None
        self.tried = (
            await step(rounds.settle, ended, runner.clock.now()) if paid else rounds.settle(ended, runner.clock.now())
        )
        self.rounds += 1
        self.usage, self.begun_to_speak, self._sent = None, False, False
        said, self._said, self._calls = "".join(self._said), [], []
        outcomes = await runner.toolbox.round(asked)
        # `reads` is in tokens as counted here already (routing.known).
        self.request, counted = await rounds.next_request(self.request, said, asked, outcomes, self.asked.reads)
        self.tried = replace(self.tried, counted=counted)
        if self.asked.billing == Billing.KEY:
            await self._hold(counted)
        else:
            await look(rounds.check, self.tried)

    async def _hold(self, counted: int) -> None:
        """Hold what the next round can cost. A stop meanwhile waits for it: only what is known is settled."""
        runner = self.runner
        most = runner.so_far.affordable.get(self.tried.account, OUTPUT_CAP)
        held = step(rounds.hold_next, self.asked, self.tried, counted, most, runner.clock.now())
        holding = asyncio.ensure_future(held)
        try:
            await asyncio.wait({holding})
        except asyncio.CancelledError:
            with contextlib.suppress(TooDear, EngineError, Stopped):
                _, self.tried = await holding
            raise
        cap, self.tried = holding.result()
        self.request = replace(self.request, max_output_tokens=cap)

    async def _ask(self) -> None:
        """Ask, and ask again where nothing can have been accepted (R8), until the round is whole."""
        patience = pauses.Patience(self.runner.clock)
        while True:
            try:
                await self._once()
            except EngineError as error:
                wait = None if self.begun_to_speak or error.accepted else patience.after(error)
                if wait is None or (isinstance(error, Unreachable) and await offline.nobody_answers(self.begun)):
                    raise
                self._sent = False  # and refused before anything of it could be charged
                self._progress(pauses.words(error, self.asked.label, wait))
                await self.runner.clock.sleep(wait)
            else:
                return

    async def _once(self) -> None:
        whole, self._sent, self._calls = False, True, []
        events = engine(self.asked.engine).reply(self.asked.access, self.request)
        now, renewed = asyncio.get_running_loop().time, 0.0
        try:
            async with asyncio.timeout(WORDLESS_SECONDS) as patience:
                async for event in events:
                    if now() - renewed > WORDLESS_SECONDS / 10:  # each renewal costs as much as a word
                        renewed = now()
                        patience.reschedule(renewed + WORDLESS_SECONDS)
                    silent = not self.started
                    whole = self._take(event) or whole
                    if silent and self.started:
                        await asyncio.sleep(0)  # the first words go out before what came with them is looked at
        except TimeoutError as error:
            raise EngineFault("nothing was said for too long", cut=True) from error
        finally:
            await _close(events)
        if not whole:
            raise EngineFault("the stream ended without its last event", cut=True)
        if not self.runner.answer and not self._calls and not self.runner.toolbox.held:
            raise EngineFault("the answer was empty")

    def _take(self, event: Event) -> bool:
        """Take one event in; True for the terminal one."""
        if isinstance(event, Text):
            self._text(event.text)
        elif isinstance(event, Discard):
            self._said = []
            self.runner.discard()
        elif isinstance(event, CallTool):
            self._calls.append(event.call)
        elif isinstance(event, Usage):
            self.usage = event
        elif isinstance(event, Room):
            self.rooms.append(event)
        elif isinstance(event, Progress):
            self._progress(event.text)
        elif isinstance(event, Done):
            self.ending, self.model = event.ending, event.model or self.model
            return True
        return False

    def _progress(self, text: str) -> None:
        self.runner.unkept.append(self.runner.live.tell("progress", {"text": text}))

    def _text(self, text: str) -> None:
        if not text:
            return
        runner = self.runner
        if not self.started:
            pace.first_words(monotonic() - runner.began)
        self.begun_to_speak = True
        self._said.append(text)
        if len(self._said) == 1 and self.rounds and runner.answer:
            text = BETWEEN_ROUNDS + text
        runner.parts.append(text)
        runner.arrived += len(text)
        runner.dirty = True
        runner.live.tell("delta", {"text": text})
        if runner.arrived > MOST_CHARACTERS:
            raise EngineFault("the answer grew beyond what a message may have", cut=True)

    def tried_now(self, *, free: bool = False) -> Tried:
        """The attempt with what it is known to have used; `free`: surely nothing was charged."""
        return replace(
            self.tried,
            usage=self.usage,
            rooms=tuple(self.rooms),
            text=self.runner.answer,
            latest="".join(self._said) if self.rounds else None,
            free=free or not self._sent,
        )


async def _close(events: AsyncIterator[Event]) -> None:
    closing = getattr(events, "aclose", None)
    if closing is not None:
        await closing()
