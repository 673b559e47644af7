"""The tools of one run: whoever asks for a call, it runs once, at most so many run, and the person is asked first.

The loop for engines with an API (streaming.py) and the programs that call tools themselves (`Request.run_tool`) both
come here, so permissions and "never twice" (R17) hold for all of them.
"""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from conch import tools
from conch.db import step
from conch.engines.base import Held, ToolCall, ToolOutcome
from conch.engines.wire_text import clean, clean_json, too_deep
from conch.models import ToolCall as Row
from conch.turns import calls
from conch.turns.errors import Unending

if TYPE_CHECKING:
    from conch.turns.run import Runner

MOST_ROUNDS = 20
MOST_CALLS = 100
MOST_TIME = timedelta(minutes=30)
AT_ONCE = 8
MOST_REFUSED = 100  # a program that asks on and on in spite of being told is ended
SECONDS_A_CALL = 60
LONGEST_ARGUMENTS = 200_000  # characters

NO_MORE = (
    "Conch runs no more tools for this message: it has had as many as one message may have. Answer with what there is."
)
TOO_LONG = "The arguments of this call are too long, or too deep in each other. It was not run."


class Toolbox:
    """The calls of one run. `held`: one of them asks the person; the turn rests once the others have ended."""

    def __init__(self, runner: "Runner") -> None:
        self.held = False
        self._account = ""
        self._runner = runner
        self._rounds = 0
        self._made = 0
        self._refused = 0
        self._began: datetime | None = None
        self._doing: dict[tuple[str, str], asyncio.Task[tuple[str, bool]]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    @property
    def used(self) -> bool:
        """Whether any call was taken in during this run."""
        return bool(self._doing)

    def open(self, account: str) -> None:
        """Another account asks for tools from here on."""
        self._account, self.held = account, False

    async def round(self, asked: Sequence[ToolCall]) -> list[ToolOutcome]:
        """Run the calls of one round together. Raises Held where one of them asks, once the others have ended."""
        self._rounds += 1
        if self._rounds > MOST_ROUNDS + 1:
            raise Unending
        found = await asyncio.gather(*(self.run(call) for call in asked), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, Held):
                raise each
        if self.held:
            raise Held
        return [each for each in found if isinstance(each, ToolOutcome)]

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Run one call, or give the outcome that it already had. Raises Held where the person is to be asked first."""
        if self._is_over():
            self._refused += 1
            if self._refused > MOST_REFUSED:
                raise Unending
            return ToolOutcome(call.id, NO_MORE, failed=True)
        self._made += 1
        if too_deep(call.arguments) or len(json.dumps(clean_json(call.arguments))) > LONGEST_ARGUMENTS:
            return ToolOutcome(call.id, TOO_LONG, failed=True)
        call = replace(call, name=clean(call.name))
        key = (call.name, calls.digest_of(clean_json(call.arguments)))
        doing = self._doing.get(key)
        if doing is None:
            doing = self._doing[key] = asyncio.get_running_loop().create_task(self._once(call))
        try:
            outcome, failed = await asyncio.shield(doing)
        except Held:
            self.held = True
            raise
        return ToolOutcome(call.id, outcome, failed)

    def _is_over(self) -> bool:
        now = self._runner.clock.now()
        self._began = self._began or now
        return self._rounds > MOST_ROUNDS or self._made >= MOST_CALLS or now - self._began > MOST_TIME

    async def allowed(self, rows: Sequence[Row]) -> None:
        """Run what the person said yes to; what comes of it is kept with the rows."""
        asked = [self.run(ToolCall("", row.name, row.arguments)) for row in rows]
        for each in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(each, BaseException) and not isinstance(each, Held):
                raise each

    async def _once(self, call: ToolCall) -> tuple[str, bool]:
        runner = self._runner
        turn_id, now = runner.live.turn_id, runner.clock.now()
        taken = await step(calls.take, turn_id, runner.run_number, self._account, call.name, call.arguments, now)
        if taken.row is None:
            return taken.outcome
        if taken.asks:
            self._tell(taken.row)
            raise Held
        if taken.offered is None:
            return taken.outcome
        self._tell(taken.row)
        async with self._slots:
            came = await tools.call(taken.person_id, taken.offered, taken.row.arguments, seconds=SECONDS_A_CALL)
        if came.changed:
            return await self._not_as_asked(taken.row)
        row = await step(calls.end, taken.row, came.text, runner.clock.now(), failed=came.failed)
        self._tell(row)
        return row.outcome, came.failed

    async def _not_as_asked(self, row: Row) -> tuple[str, bool]:
        """The tool isn't what it was, so nothing ran. Raises Held where the call asks anew."""
        row = await step(calls.not_as_asked, row, self._runner.clock.now())
        self._tell(row)
        if row.state == Row.State.ASKED:
            raise Held
        return row.outcome, True

    def _tell(self, row: Row) -> None:
        self._runner.unkept.append(self._runner.live.tell("tool", calls.told(row)))

    async def all_ended(self) -> None:
        """Wait until no call is under way; each is bounded in time."""
        if self._doing:
            await asyncio.wait(self._doing.values())

    async def close(self) -> None:
        """The turn ends: nobody waits for what is under way, so it isn't known what comes of it; nothing asks on."""
        under_way = [task for task in self._doing.values() if not task.done()]
        for task in under_way:
            task.cancel()
        for task in under_way:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        if self.used:
            await step(calls.close, self._runner.live.turn_id, self._runner.clock.now())
