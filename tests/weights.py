"""The tiny model's weights for the tests, kept in .venv between runs. `python -m tests.weights` fetches them."""

import fcntl
from functools import cache
from pathlib import Path

from conch.engines import local_models

FOLDER = Path(__file__).resolve().parent.parent / ".venv" / "weights"


@cache
def folder():
    """The folder of the weights, fetched first where they aren't there; test processes wait for each other."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        local_models.fetch_tiny(FOLDER)
    return FOLDER


def put_into(data):
    """Have a Conch of that data folder find them."""
    (Path(data) / "models").symlink_to(folder())


if __name__ == "__main__":
    folder()
