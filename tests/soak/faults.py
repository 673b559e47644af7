"""Ways to hurt a running Conch, each at a moment that chance chooses."""

import resource
import signal
import sqlite3
import time

# A stopped process keeps its lease for longer than this; a locked database is waited for by 20 s.
STALL_SECONDS = 1.5
LOCK_SECONDS = 1.5


def kill(process, _place):
    """The process is gone at once: kill -9."""
    process.kill()


def terminate(process, _place):
    """SIGTERM: what runs gets its time."""
    process.end()


def stall(process, _place):
    """The whole process stands still for a while, then goes on."""
    process.send(signal.SIGSTOP)
    time.sleep(STALL_SECONDS)
    process.send(signal.SIGCONT)


def lock(_process, place):
    """Somebody else keeps the database locked for a while."""
    with sqlite3.connect(place.folder / "data" / "conch.sqlite3", timeout=20, isolation_level=None) as held:
        held.execute("BEGIN IMMEDIATE")
        time.sleep(LOCK_SECONDS)
        held.execute("ROLLBACK")
    held.close()


def no_disk(process, place):
    """For a while no file of the process may grow: the disk is full, as far as it can tell."""
    size = (place.folder / "data" / "conch.sqlite3-wal").stat().st_size
    kept = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (min(size, 1 << 16), kept[1]))
    time.sleep(STALL_SECONDS)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, kept)


ENDING = {"kill -9": kill, "SIGTERM": terminate}
PASSING = {"standstill": stall, "locked database": lock, "full disk": no_disk}
