"""One writer thread a process: steps that change the database are queued and committed together.

A step is a plain function that only reads and writes the database: a group whose commit failed is run again, one step
at a time, so a step must have no other effect. Group commit keeps SQLite at one fsync for many steps and leaves no
second writer in this process to wait for; readers go their usual ways (measured in docs/performance.md).
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import connection, transaction

P = ParamSpec("P")
T = TypeVar("T")

MOST_IN_A_GROUP = 64
READERS = 4

_Job = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], "Future[Any]"]
_jobs: "queue.SimpleQueue[_Job]" = queue.SimpleQueue()
_readers = ThreadPoolExecutor(READERS, thread_name_prefix="conch-reader")
_starting = threading.Lock()
_thread: threading.Thread | None = None


async def step(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step on the writer thread and return its value after the commit.

    A caller that is cancelled while it waits doesn't undo the step.
    """
    return await asyncio.shield(asyncio.wrap_future(_put(function, args, kwargs)))


def step_now(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for code that isn't async (commands, sync views): wait until the step is committed."""
    future: Future[T] = _put(function, args, kwargs)
    return future.result()


async def look(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that only reads, on one of a few reading threads; it sees what is committed."""
    call = partial(_look, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_readers, call)


def _look(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    _refresh()
    return function(*args, **kwargs)


def _refresh() -> None:
    """Give a connection back that is to be given back: no request begins or ends on these threads to do it.

    One to SQLite is kept until something went wrong with it: opening it anew costs more than most of what is read.
    One to PostgreSQL goes back to its pool, which costs nothing.
    """
    if connection.vendor != "sqlite" or connection.errors_occurred:
        connection.close_if_unusable_or_obsolete()


def _put(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Future[T]":
    future: Future[T] = Future()
    _ensure_writer()
    _jobs.put((function, args, kwargs, future))
    return future


def _ensure_writer() -> None:
    global _thread
    with _starting:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(target=_write, name="conch-writer", daemon=True)
            _thread.start()


def _write() -> None:
    while True:
        group = [_jobs.get()]
        with contextlib.suppress(queue.Empty):
            while len(group) < MOST_IN_A_GROUP:
                group.append(_jobs.get_nowait())
        _refresh()
        if not _together(group):
            for job in group:
                _alone(job)


def _together(group: list[_Job]) -> bool:
    """Run the group in one transaction; False when any of it failed, and nothing of it is kept."""
    try:
        with transaction.atomic():
            values = [function(*args, **kwargs) for function, args, kwargs, _ in group]
    except Exception:  # noqa: BLE001  whatever failed is found again, and told to its caller, by running each alone
        return False
    for (_, _, _, future), value in zip(group, values, strict=True):
        future.set_result(value)
    return True


def _alone(job: _Job) -> None:
    function, args, kwargs, future = job
    try:
        with transaction.atomic():
            value = function(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  the caller, not the writer, decides what to do
        future.set_exception(error)
    else:
        future.set_result(value)
