"""Become another program that the system ends with its parent: `python -I -S cli_process_leash.py PID PROGRAM WORD…`.

On Linux the kernel kills it when the thread that started it ends, however that ends (PR_SET_PDEATHSIG, which outlives
the exec). Elsewhere the end of its standard input is what tells a program. Stands alone: it is run as a file.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def hold_on(parent: int) -> None:
    """Ask to be killed with the parent; one that is gone already ends us at once."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    hold_on(int(sys.argv[1]))
    try:
        os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - the program that Conch chose, without a shell
    except OSError as error:
        sys.exit(f"{sys.argv[2]} doesn't start: {error.strerror}")
