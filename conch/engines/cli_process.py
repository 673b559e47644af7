"""One running program of a provider's: JSON lines in, JSON lines out, and an end in every case.

It runs in an empty folder of its own, with a scrubbed environment, in its own process group. It is ended with its turn,
by `end`; with Conch, at the exit; and by the system where Conch is killed (cli_process_leash). Memory is bounded by the
longest line; a program that says nothing for a long while, or rubbish without end, is given up (STR-09: bytes are
decoded a whole line at a time).
"""

import asyncio
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, ClassVar, Self

from conch.engines import cli_process_leash
from conch.engines.base import EngineFault
from conch.engines.cli_process_pipes import Pipes

LONGEST_LINE = 32 * 1024 * 1024  # bytes; a program may say back the pictures that it was given
MOST_RUBBISH = 1000  # lines that are no JSON objects, in one process
SILENCE = 300.0  # seconds without a line while an answer is awaited
GRACE = 2.0  # seconds to end by itself, so that a sign-in being renewed is written down
STDERR_KEPT = 2000  # bytes of its last words, for a fault

_OURS = re.compile(r"conch-(\d+)-\w+")
# A child ends with the thread that started it: one that lives as long as Conch does.
_starter = ThreadPoolExecutor(1, "conch-programs")
_enders = ThreadPoolExecutor(4, "conch-programs-end")
_living: set["subprocess.Popen[bytes]"] = set()
_guard = threading.Lock()


class Folder:
    """An empty folder for one process, with an empty `work` in it; gone when the process is."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"conch-{os.getpid()}-"))
        self.work = self.path / "work"
        self.work.mkdir()

    def remove(self) -> None:
        """Take it away, whatever the program left in it."""
        shutil.rmtree(self.path, ignore_errors=True)


def sweep(place: Path) -> None:
    """Take away what a Conch that was killed has left there."""
    for path in place.glob("conch-*"):
        named = _OURS.fullmatch(path.name)
        if named and path.stat().st_uid == os.getuid() and not _lives(int(named[1])):
            shutil.rmtree(path, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's: it lives
    return True


@cache
def _swept() -> None:
    with suppress(OSError, KeyError, RuntimeError):
        sweep(Path(tempfile.gettempdir()))


class CliProcess:
    """A program that was started. `lines` come one by one from `next_line`; what it is sent goes out whole."""

    longest_line: ClassVar[int] = LONGEST_LINE

    def __init__(self, popen: "subprocess.Popen[bytes]", folder: Folder) -> None:
        self.popen = popen
        self.folder = folder
        self._waiting: deque[bytes] = deque()
        self._part = bytearray()
        self._rubbish = 0
        self._ended: Future[None] | None = None
        assert popen.stdin is not None
        assert popen.stdout is not None
        self._pipes = Pipes(popen.stdin, popen.stdout)
        popen.stdin = popen.stdout = None  # theirs to close

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str], folder: Folder) -> Self:
        """Start it in the folder's empty `work`. Raises EngineFault where it doesn't start."""
        starting = _starter.submit(_popen, command, environment, folder)
        try:
            popen = await asyncio.wrap_future(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(partial(_abandoned, folder))
            raise
        except OSError as error:
            folder.remove()
            raise EngineFault(f"{command[0]} doesn't start: {error.strerror}", accepted=False) from error
        return cls(popen, folder)

    @property
    def runs(self) -> bool:
        """Whether it hasn't ended."""
        return self._ended is None and self.popen.poll() is None

    async def send(self, message: Mapping[str, Any]) -> None:
        """One line of JSON. A program that has ended takes nothing: the next line that isn't there will say so."""
        with suppress(BrokenPipeError):
            await self._pipes.write(json.dumps(message, ensure_ascii=True).encode() + b"\n")

    async def next_line(self, within: float | None = None) -> dict[str, Any] | None:
        """The next JSON object that it says; None once it has ended. Raises EngineFault for silence and rubbish."""
        within = SILENCE if within is None else within
        try:
            async with asyncio.timeout(within):
                return await self._next()
        except TimeoutError as error:
            raise EngineFault(f"the program said nothing for {within:.0f} seconds", cut=True) from error

    async def _next(self) -> dict[str, Any] | None:
        while True:
            while self._waiting:
                line = self._waiting.popleft()
                said = _object(line)
                if said is not None:
                    return said
                self._rubbish += bool(line.strip())
                if self._rubbish > MOST_RUBBISH:
                    raise EngineFault("the program says what nobody can read")
            if not await self._read():
                return None

    async def _read(self) -> bool:
        chunk = await self._pipes.read()
        if not chunk:
            return False
        first, *rest = chunk.split(b"\n")
        self._part += first
        if len(self._part) > self.longest_line:
            raise EngineFault("the program's line never ends")
        if rest:
            self._waiting.append(bytes(self._part))
            self._waiting.extend(rest[:-1])
            self._part = bytearray(rest[-1])
        return True

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, for a fault's text."""
        with suppress(OSError, ValueError):
            assert self.popen.stderr is not None
            size = self.popen.stderr.seek(0, os.SEEK_END)
            self.popen.stderr.seek(max(0, size - STDERR_KEPT))
            return self.popen.stderr.read().decode("utf-8", "replace").strip()
        return ""

    def end(self, *, gently: bool = True) -> "Future[None]":
        """End it, from wherever: at once where not `gently`, else after a moment to put things in order."""
        if self._ended is None:
            # Before its pipes close: what it would do then, it can't any more.
            if self.popen.returncode is None:
                _signal(self.popen, signal.SIGTERM if gently else signal.SIGKILL)
            self._pipes.close()
            self._ended = _enders.submit(_end, self.popen, self.folder, GRACE if gently else 0.0)
        return self._ended

    async def ended(self) -> None:
        """Wait until nothing of it is left."""
        await asyncio.wrap_future(self.end())


def start_watched(
    command: Sequence[str], environment: Mapping[str, str], folder: Folder, output: Path
) -> "subprocess.Popen[bytes]":
    """Start a program that speaks to a person: all that it says goes into that file. Raises OSError. Blocking."""
    with output.open("ab") as said:
        return _starter.submit(_popen, command, environment, folder, said).result()


def end_watched(popen: "subprocess.Popen[bytes]", folder: Folder) -> "Future[None]":
    """End it, whether it runs or has ended; its folder goes with it."""
    return _enders.submit(_end, popen, folder, GRACE)


def _popen(
    command: Sequence[str], environment: Mapping[str, str], folder: Folder, output: IO[bytes] | None = None
) -> "subprocess.Popen[bytes]":
    _swept()
    leash = [sys.executable, "-I", "-S", cli_process_leash.__file__, str(os.getpid())]
    errors: IO[bytes] = output or tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    popen = subprocess.Popen(  # noqa: S603 - the program that the person installed, without a shell
        [*leash, *command],
        stdin=subprocess.PIPE,
        stdout=output or subprocess.PIPE,
        stderr=errors,
        bufsize=0,
        cwd=folder.work,
        env=dict(environment),
        start_new_session=True,
    )
    popen.stderr = errors
    with _guard:
        _living.add(popen)
    return popen


def _abandoned(folder: Folder, starting: "Future[subprocess.Popen[bytes]]") -> None:
    """Nobody waits for it any more."""
    if starting.cancelled() or starting.exception() is not None:
        folder.remove()
    else:
        _enders.submit(_end, starting.result(), folder, 0.0)


def _end(popen: "subprocess.Popen[bytes]", folder: Folder, grace: float) -> None:
    for pipe in (popen.stdin, popen.stdout):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    if grace:
        _signal(popen, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            popen.wait(grace)
    _signal(popen, signal.SIGKILL)  # also what it left behind in its group
    popen.wait()
    with suppress(OSError):
        if popen.stderr is not None:
            popen.stderr.close()
    folder.remove()
    with _guard:
        _living.discard(popen)


def _signal(popen: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, number)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


@atexit.register
def end_all() -> None:
    """Kill what still runs; nothing outlives Conch."""
    with _guard:
        left = list(_living)
    for popen in left:
        _signal(popen, signal.SIGKILL)
