"""One running model server for every process of Conch: found, or started, on first use.

Blocking; call it in a thread. Safe at once from any number of threads and processes.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from conch.configuration import BASE_DIR
from conch.engines import local_server
from conch.engines.local_server import held

START_LOCK = "start.lock"
LOAD_WITHIN = 120.0  # seconds; the tiny model takes one, a big file on a slow disk a minute
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")


class CouldNotStart(RuntimeError):
    """The model's process didn't come up; says why, and where its own words are."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, with /v1, and the key that it wants."""

    url: str
    key: str = field(repr=False)


@dataclass(slots=True)
class ModelProcess:
    """The server of one model file and context size, kept in a folder of its own under `folder`."""

    model: Path
    context: int
    folder: Path
    _using: IO[str] | None = field(default=None, init=False)
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def place(self) -> Path:
        """The folder of this server: another file or size is another server."""
        told_apart = hashlib.sha256(f"{self.model.resolve()} {self.context}".encode()).hexdigest()[:8]
        return self.folder / f"{self.model.stem[:40]}-{told_apart}"

    def address(self) -> Address:
        """Where it listens, started first where it doesn't run. Raises CouldNotStart."""
        place = self.place
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(place / START_LOCK, fcntl.LOCK_EX):
            self._use()
            if not self.runs():
                self._start()
            self._until_it_listens()
            return self._written()

    def runs(self) -> bool:
        """Whether a server lives: it holds its lock for as long as it does, however it ends."""
        path = self.place / local_server.SERVER_LOCK
        if not path.exists():
            return False
        with held(path, fcntl.LOCK_SH | fcntl.LOCK_NB) as free:
            return free is None

    def has_ended(self, within: float) -> bool:
        """Whether it has ended, or does within so many seconds: its connections break a moment before its lock."""
        give_up = time.monotonic() + within
        while self.runs():
            if time.monotonic() > give_up:
                return False
            time.sleep(0.02)
        return True

    def how_it_ended(self) -> str:
        """In words, once it doesn't run any more."""
        status = None
        if self._child:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = self._child.wait(timeout=1)  # its lock is let go of a moment before it can be reaped
        return in_words(status, self.place / local_server.LOG)

    def leave(self) -> None:
        """Use it no longer: it ends by itself when nobody does."""
        if self._using:
            self._using.close()
            self._using = None
        if self._child:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=0)

    def _use(self) -> None:
        """Be one of its users; waits where a server is about to end for want of any."""
        if self._using is None:
            using = (self.place / local_server.USERS_LOCK).open("a")
            fcntl.flock(using, fcntl.LOCK_SH)
            self._using = using

    def _start(self) -> None:
        place = self.place.resolve()
        (place / local_server.ADDRESS).unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            local_server.__name__,
            str(self.model.resolve()),
            str(self.context),
            str(place),
        ]
        log = os.open(place / local_server.LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # S603: our own module. In a session of its own: Ctrl-C in the terminal is for Conch, which answers on.
            self._child = subprocess.Popen(  # noqa: S603
                command,
                cwd=BASE_DIR,
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)

    def _until_it_listens(self) -> None:
        """Wait while it loads, started by us or by a process that has gone meanwhile."""
        give_up = time.monotonic() + LOAD_WITHIN
        while not (self.place / local_server.ADDRESS).exists():
            if not (self._child is not None and self._child.poll() is None) and not self.runs():
                raise CouldNotStart(self.how_it_ended())
            if time.monotonic() > give_up:
                if self._child:
                    self._child.kill()
                raise CouldNotStart(f"The model wasn't loaded within {LOAD_WITHIN:.0f} seconds.")
            time.sleep(0.02)

    def _written(self) -> Address:
        try:
            written = json.loads((self.place / local_server.ADDRESS).read_text())
            return Address(url=written["url"], key=written["key"])
        except (OSError, ValueError, KeyError) as error:
            raise CouldNotStart(f"{self.place / local_server.ADDRESS} can't be read: {error}") from error


def in_words(status: int | None, log: Path) -> str:
    """How a server ended, from its exit status (None: not known, another process started it) and its log."""
    if status == local_server.NO_RUNTIME:
        return f"xllamacpp, which runs model files, can't be imported: {_last_words(log)}"
    if status == local_server.COULD_NOT_LOAD:
        return f"The model couldn't be loaded: {_last_words(log)}"
    if status is not None and status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        likely = {
            "SIGILL": " The processor probably lacks AVX2: use a server of your own (CONCH_LOCAL_URL).",
            "SIGKILL": " The machine may be out of memory.",
        }.get(name, "")
        return f"The model's process was ended by {name}.{likely}"
    return "The model's process ended." if status is None else f"The model's process ended with status {status}."


def _last_words(log: Path) -> str:
    """llama.cpp's first error of the load, which is the telling one, else the last thing written."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        telling = [line.partition("error loading model: ")[2] for line in lines if "error loading model: " in line]
        if telling or lines:
            return (telling or lines[-1:])[0]
    return f"see {log}"
