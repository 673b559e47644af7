"""The process that runs a model file: llama.cpp's own server, OpenAI-compatible, on a free port of loopback.

`python -m conch.engines.local_server MODEL CONTEXT FOLDER`, started by `local_process`. One for all processes of Conch
that use the folder; being a process of its own, it takes nobody down when the native code crashes. Three files in the
folder say how things stand, by locks that the system lets go of whatever ends a process:

    server.lock   held alone by the server while it lives
    users.lock    shared by every process that uses it; nobody there: the server ends
    server.json   where it listens and the key that it wants, readable by its owner only
"""

import contextlib
import fcntl
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

SERVER_LOCK = "server.lock"
USERS_LOCK = "users.lock"
ADDRESS = "server.json"
LOG = "server.log"
MODEL_ALIAS = "local"
LOOK_EVERY = 0.5  # seconds between looks for users
LOOKS = 200  # at the server's own lock, a hundredth of a second apart

# Exit statuses that `local_process` puts into words.
COULD_NOT_LOAD = 3
NO_RUNTIME = 4
ANOTHER_SERVES = 5


def threads() -> int:
    """All cores but one: with as many threads as cores, one other busy process slows llama.cpp tenfold (measured)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return max(1, cores - 1)


def load(model: str, context: int, key: str) -> Any:
    """Load the model and listen. Raises RuntimeError for a file that can't be loaded, ImportError without xllamacpp."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias, params.api_keys = model, {MODEL_ALIAS}, [key]
    params.n_ctx, params.n_parallel = context, 1  # one slot: others wait their turn
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    # By default it would serve a page of its own, show its slots, take calls from any page and keep 8 GiB of prompts.
    params.cache_ram_mib, params.ui, params.endpoint_slots = 0, False, False
    params.cors_origins = "http://127.0.0.1"
    params.verbosity = 1  # errors only
    return xllamacpp.Server(params)


@contextlib.contextmanager
def held(path: Path, how: int) -> Iterator[IO[str] | None]:
    """The lock at that path, or None when somebody else has it and `how` says not to wait (fcntl.LOCK_NB)."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, how)
        except BlockingIOError:
            yield None
        else:
            yield file


def write_privately(path: Path, text: str) -> None:
    """Put the text there whole, readable by its owner only."""
    making = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    making.replace(path)


def until_unused(folder: Path) -> IO[str]:
    """The users' lock, once no process uses the server: while it is held, who comes now waits for our end."""
    users = (folder / USERS_LOCK).open("a")
    while not taken(users):
        time.sleep(LOOK_EVERY)
    return users


def taken(file: IO[str]) -> bool:
    """Whether this file's lock is ours alone now, without waiting for it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def alone_in(folder: Path) -> IO[str] | None:
    """The server's lock, or None when another one serves. Who looks whether one does has it for an instant, too."""
    lock = (folder / SERVER_LOCK).open("a")
    for _ in range(LOOKS):
        if taken(lock):
            return lock
        time.sleep(0.01)
    return None


def serve(model: str, context: int, folder: Path) -> int:
    """Serve until nobody is there any more; the exit status."""
    lock = alone_in(folder)
    if lock is None:
        return ANOTHER_SERVES
    key = secrets.token_hex(16)
    try:
        server = load(model, context, key)
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return NO_RUNTIME
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return COULD_NOT_LOAD
    address = {"url": f"{server.listening_address}/v1", "key": key, "pid": os.getpid()}
    write_privately(folder / ADDRESS, json.dumps(address))
    with until_unused(folder):
        (folder / ADDRESS).unlink(missing_ok=True)
        lock.close()  # before the users' lock: whoever waits for that must find no server
        sys.stderr.flush()
        os._exit(0)  # the native destructors have nothing to save


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
