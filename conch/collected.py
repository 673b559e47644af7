"""The static files under their hashed names, in CONCH_DATA/static: collected when what they are made from changed."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

MARK = ".collected-from"


def collect_static() -> bool:
    """Bring CONCH_DATA/static up to date; False when it was. Several processes may start at once: one collects.

    Files of an older version stay, so that a page which is open over an update keeps its sheet.
    """
    folder = Path(settings.STATIC_ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder.parent / "static.lock"):
        mark, wanted = folder / MARK, fingerprint()
        if mark.is_file() and mark.read_text() == wanted:
            return False
        for name in (name for name, _ in _sources()):
            with contextlib.suppress(FileNotFoundError):
                os.utime(folder / name, (0, 0))  # collectstatic leaves a copy alone that is no older than its source
        call_command("collectstatic", interactive=False, verbosity=0)
        mark.write_text(wanted)
        return True


def fingerprint() -> str:
    """Changes with any of the files, by path, size and time, and with the way that they are stored."""
    sources = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for path in sorted(path for _, path in _sources()):
        facts = Path(path).stat()
        sources.update(f"{path} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return sources.hexdigest()


def _sources() -> Iterator[tuple[str, str]]:
    """Every file, by its name under the folder and its path."""
    for finder in get_finders():
        storage: Any
        for name, storage in finder.list([]):
            yield str(Path(getattr(storage, "prefix", None) or "", name)), storage.path(name)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
