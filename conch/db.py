"""One writer thread a process: steps that change the database are queued and committed together.

A step is a plain function that only reads and writes the database: a group whose commit failed is run again, one step
at a time, so a step must have no other effect. Group commit keeps SQLite at one fsync for many steps and leaves no
second writer in this process to wait for; readers go their usual ways (measured in docs/performance.md).

On PostgreSQL other processes have writers of their own, and two groups can each wait for a row that the other has. So
a group waits for a row only for a moment; one that can't have it is undone, and its steps are run one at a time while
no other writer is at work, where there is nothing left to wait for.

The threads answer their callers' event loops directly: an executor's future, chained to one of asyncio's, costs more
than most of what is asked for here.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connection, transaction

P = ParamSpec("P")
T = TypeVar("T")

MOST_IN_A_GROUP = 64
# The lock that all writers on one PostgreSQL share, or one has to itself; its number is nobody else's.
TURNS = 0x636F6E6368
_BESIDE_OTHERS = "SELECT set_config('lock_timeout', '250ms', true), pg_advisory_xact_lock_shared(%s)"
_ALONE = "SELECT pg_advisory_xact_lock(%s)"
READERS = 4

# What is to be called, and who is told its value or its error.
_Job = tuple[Callable[[], Any], Callable[[Any, BaseException | None], Any]]
_steps: "queue.SimpleQueue[_Job]" = queue.SimpleQueue()
_looks: "queue.SimpleQueue[_Job]" = queue.SimpleQueue()
_starting = threading.Lock()
_threads: list[threading.Thread] = []


async def step(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step on the writer thread and return its value after the commit.

    A caller that is cancelled while it waits doesn't undo the step.
    """
    return await _answer_of(_steps, partial(function, *args, **kwargs))


def step_now(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for code that isn't async (commands, sync views): wait until the step is committed."""
    future: Future[T] = Future()
    _ensure_threads()
    _steps.put((partial(function, *args, **kwargs), partial(_resolve, future)))
    return future.result()


async def look(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that only reads, on one of a few reading threads; it sees what is committed."""
    return await _answer_of(_looks, partial(function, *args, **kwargs))


async def _answer_of(jobs: "queue.SimpleQueue[_Job]", call: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(value: Any, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, future, value, error)

    _ensure_threads()
    jobs.put((call, tell))
    return await future


def _resolve(future: "asyncio.Future[Any] | Future[Any]", value: Any, error: BaseException | None) -> None:
    if future.done():  # its caller was cancelled meanwhile
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _refresh() -> None:
    """Give a connection back that is to be given back: no request begins or ends on these threads to do it.

    One to SQLite is kept until something went wrong with it: opening it anew costs more than most of what is read.
    One to PostgreSQL goes back to its pool, which costs nothing.
    """
    if connection.vendor != "sqlite" or connection.errors_occurred:
        connection.close_if_unusable_or_obsolete()


def _ensure_threads() -> None:
    if _threads and _threads[0].is_alive():
        return
    with _starting:
        if _threads and _threads[0].is_alive():
            return
        _threads[:] = [threading.Thread(target=_write, name="conch-writer", daemon=True)]
        _threads.extend(threading.Thread(target=_read, name="conch-reader", daemon=True) for _ in range(READERS))
        for thread in _threads:
            thread.start()


def _read() -> None:
    while True:
        call, tell = _looks.get()
        try:
            _refresh()
            value = call()
        except BaseException as error:  # noqa: BLE001  the caller, not the reader, decides what to do
            tell(None, error)
        else:
            tell(value, None)
            del value  # kept no longer than its caller keeps it
        del call, tell


def _write() -> None:
    while True:
        group = [_steps.get()]
        with contextlib.suppress(queue.Empty):
            while len(group) < MOST_IN_A_GROUP:
                group.append(_steps.get_nowait())
        if not _together(group):
            for job in group:
                _alone(*job)


def _together(group: list[_Job]) -> bool:
    """Run the group in one transaction; False when any of it failed, and nothing of it is kept."""
    try:
        _refresh()
        with transaction.atomic():
            _take_turns(_BESIDE_OTHERS)
            values = [call() for call, _ in group]
    except Exception:  # noqa: BLE001  whatever failed is found again, and told to its caller, by running each alone
        return False
    for (_, tell), value in zip(group, values, strict=True):
        tell(value, None)
    return True


def _take_turns(how: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(how, [TURNS])


def _alone(call: Callable[[], Any], tell: Callable[[Any, BaseException | None], Any]) -> None:
    try:
        with transaction.atomic():
            _take_turns(_ALONE)
            value = call()
    except BaseException as error:  # noqa: BLE001  the caller, not the writer, decides what to do
        tell(None, error)
    else:
        tell(value, None)
