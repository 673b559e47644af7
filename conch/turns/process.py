"""Which process runs a turn, and whether that process still lives.

An owner is "host/pid/start time": a process id alone is given again. A process of this host that is gone is known at
once; of another host's only the lease tells (design.md, A turn).
"""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def _host() -> str:
    return socket.gethostname()


def _start_of(pid: int) -> str:
    """When that process started, in the system's own ticks; "" where there is none or it can't be known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _start_without_proc(pid)
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _start_without_proc(pid: int) -> str:
    """Without /proc (macOS): "running" for a process that takes signals, else ""."""
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"


def this_process() -> str:
    """The owner's name of this process."""
    return f"{_host()}/{os.getpid()}/{_start_of(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether that owner was a process of this host and lives no more. False where it can't be known."""
    parts = owner.rsplit("/", 2)
    if len(parts) != 3 or parts[0] != _host() or not parts[1].isdigit():
        return False
    return _start_of(int(parts[1])) != parts[2]
