"""What is done beside the serving: turns that wait are woken, those left behind are run, those of the dead are ended.

Runs in every serving process that `up` starts, and alone as `manage.py worker`; any number at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from django.db import DatabaseError

from conch import ledger
from conch.accounts import lists, meters
from conch.db import look, step
from conch.engines import local_models, local_told
from conch.models import Account
from conch.tools import following
from conch.turns import recovery, temporary, waiting
from conch.turns.clock import SYSTEM, Clock
from conch.turns.live import live_of
from conch.turns.run import start

logger = logging.getLogger("conch.worker")

LOOK_SECONDS = 1.0
SWEEP_SECONDS = 10.0
METER_SECONDS = 20.0
LIST_SECONDS = 60.0
# A clock that went on by so much more or less than time did has jumped: set anew, or the machine slept. Whoever lives
# renews its leases within the second figure; before that nobody is taken for dead by them.
JUMP_SECONDS, RENEWED_SECONDS = 5.0, 6.0

_woken: dict[asyncio.AbstractEventLoop, asyncio.Event] = {}


def wake() -> None:
    """Look at once: something has changed. Without a worker in this process another one looks within a second."""
    event = _woken.get(asyncio.get_running_loop())
    if event is not None:
        event.set()


async def work(
    stop: asyncio.Event, clock: Clock = SYSTEM, *, also: Sequence[Callable[[Clock], Awaitable[None]]] = ()
) -> None:
    """Work until `stop` is set. A database that is away is waited for. `also`: rounds of other parts, at every look."""
    loop = asyncio.get_running_loop()
    event = _woken[loop] = asyncio.Event()
    beside = [
        loop.create_task(_keep(read_meters, METER_SECONDS, clock), name="meters"),
        loop.create_task(_keep(read_tools, LIST_SECONDS, clock), name="tool lists"),
        loop.create_task(_keep_lists(clock), name="lists"),
    ]
    swept, even = 0.0, Even(clock, loop.time)
    try:
        while not stop.is_set():
            event.clear()
            if even.jumped() and swept:
                swept = loop.time() - SWEEP_SECONDS + RENEWED_SECONDS
            if loop.time() - swept >= SWEEP_SECONDS or not swept:
                swept = loop.time()
                await _round(sweep, clock)
            for what in (*also, look_round):
                await _round(what, clock)
            await _either(event, stop)
    finally:
        _woken.pop(loop, None)
        for task in beside:
            task.cancel()


class Even:
    """Whether the clock goes on as time does, from one look to the next. `steady`: seconds that nobody sets."""

    def __init__(self, clock: Clock, steady: Callable[[], float]) -> None:
        self._clock, self._steady = clock, steady
        self._ahead = self._difference()

    def _difference(self) -> float:
        return self._clock.now().timestamp() - self._steady()

    def jumped(self) -> bool:
        """Whether the clock was set, or the machine slept, since the last look."""
        before, self._ahead = self._ahead, self._difference()
        jump = self._ahead - before
        if abs(jump) < JUMP_SECONDS:
            return False
        logger.warning("the clock of this machine jumped by %.0f seconds", jump)
        return True


async def _round(what: Callable[[Clock], Awaitable[None]], clock: Clock) -> None:
    try:
        await what(clock)
    except DatabaseError as error:
        logger.warning("the database can't be used; trying again in a second: %s", error)


async def _either(event: asyncio.Event, stop: asyncio.Event) -> None:
    waits = {asyncio.ensure_future(event.wait()), asyncio.ensure_future(stop.wait())}
    await asyncio.wait(waits, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()


async def look_round(clock: Clock = SYSTEM) -> None:
    """One look: wake the turns that are due, run those that nobody has begun."""
    for turn_id in await look(waiting.due, clock.now()):
        start(turn_id, waking=True, clock=clock)
    for turn_id in await look(waiting.left_behind, clock.now()):
        start(turn_id, clock=clock)


async def sweep(clock: Clock = SYSTEM) -> None:
    """End the turns whose process is gone, run what waited behind them, settle what they held; forget what is over."""
    await step(waiting.mend_clock, clock.now())
    for turn_id in await look(recovery.lapsed, clock.now()):
        if live_of(turn_id) is not None:
            continue  # it runs here: this process stood still, or its clock didn't
        following = await step(recovery.interrupt, turn_id, clock.now())
        if following is not None:
            start(following, clock=clock)
    await step(ledger.orphans, clock.now())
    for chat_id in await look(temporary.expired, clock.now()):
        await step(temporary.forget, chat_id, clock.now())


async def _keep(what: Callable[[Clock], Awaitable[None]], seconds: float, clock: Clock) -> None:
    """Do it again and again beside the rest: a slow provider or server keeps nobody waiting."""
    while True:
        await asyncio.sleep(seconds)
        await _round(what, clock)


async def read_meters(clock: Clock = SYSTEM) -> None:
    """Read the meters that are due; who may answer again is asked at once (R16, R29)."""
    for account_id in await look(meters.due, clock.now()):
        if await meters.read(account_id, clock.now()):
            await _asks_again(account_id, clock)


async def _keep_lists(clock: Clock) -> None:
    """Read lists beside the rest: those that are due every minute, those that a page shows at once."""
    loop = asyncio.get_running_loop()
    looked = loop.time()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        people = lists.looking()
        if loop.time() - looked >= LIST_SECONDS:
            looked = loop.time()
            await _round(partial(ask_local, shown=bool(people)), clock)
            await _round(read_lists, clock)
        elif people:
            await _round(partial(ask_local, shown=True), clock)
            await _round(partial(read_lists, people=people), clock)


async def read_lists(clock: Clock = SYSTEM, people: Collection[int] | None = None) -> None:
    """Read the lists of models that are due, of these people's accounts or of all; what is new may let somebody answer
    who couldn't (R16).
    """  # noqa: D205  one sentence
    for account_id in await look(lists.due, clock.now(), people):
        if await lists.read_if_due(account_id, clock.now()):
            await _asks_again(account_id, clock)


async def ask_local(clock: Clock = SYSTEM, *, shown: bool = False) -> None:
    """Ask the server on this computer what its model takes; what is new may let it answer (R16). `shown`: by a page."""
    given = local_models.setup()
    if not given.url:
        return
    server = local_told.Server(given.url, given.model, given.key)
    fresh = local_told.FRESH_ON_A_PAGE if shown else local_told.FRESH
    if await asyncio.to_thread(local_told.ask_if_due, given.folder, server, clock.now(), fresh):
        for person in await look(waiting.people):
            await step(waiting.ask_again, person, clock.now())
        wake()


async def read_tools(clock: Clock = SYSTEM) -> None:
    """Ask the tool servers whose list is due; no tool is called."""
    await following.read_due(clock.now())


async def _asks_again(account_id: int, clock: Clock) -> None:
    """Have the turns that wait for its person ask their route at once."""
    person = await look(Account.objects.values_list("person_id", flat=True).get, pk=account_id)
    await step(waiting.ask_again, person, clock.now())
    wake()
