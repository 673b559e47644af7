"""The whole of CONCH_DATA in one file, taken while Conch runs, and put back again.

The embedded database is copied by SQLite's own online backup: of one moment, however much is written meanwhile. Left
out is what can be made again: the collected static files. On PostgreSQL the file holds the folder (with the secret that
seals keys); the database is its own tools' business.
"""

import os
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from datetime import datetime
from pathlib import Path

DATABASE = "conch.sqlite3"
SIDE_FILES = {f"{DATABASE}{end}" for end in ("", "-wal", "-shm", "-journal")}
LEFT_OUT = SIDE_FILES | {"static"}
BEFORE = "before-restore-"


class CantRestore(Exception):
    """The file can't be put back; says why and what to do."""


def take(folder: Path, file: Path, *, embedded: bool) -> list[str]:
    """Write the folder into that file (gzipped tar, mode 0600), whole or not at all; the names of what it holds.

    `embedded`: the database is the one in the folder. Raises OSError.
    """
    descriptor, made = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out, tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar:
            names = _add(tar, folder, {file.absolute(), Path(made)}, embedded=embedded)
        Path(made).replace(file)
    except BaseException:  # also for Ctrl-C: half a backup must not be taken for one
        Path(made).unlink(missing_ok=True)
        raise
    return names


def _add(tar: tarfile.TarFile, folder: Path, files: set[Path], *, embedded: bool) -> list[str]:
    if embedded:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".backup-") as beside:
            copy = Path(beside) / DATABASE
            with closing(sqlite3.connect(folder / DATABASE, timeout=20)) as live, closing(sqlite3.connect(copy)) as to:
                live.backup(to)
            tar.add(copy, DATABASE)
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT or path.name.startswith((BEFORE, ".backup-")) or path.absolute() in files:
            continue
        _add_all(tar, path, path.name)
    return sorted({name.partition("/")[0] for name in tar.getnames()})


def _add_all(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """That file, or folder with all that is in it; programs may take away what is theirs meanwhile."""
    try:
        tar.add(path, name, recursive=False, filter=_kept)
        inside = sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
    except FileNotFoundError:
        return
    for each in inside:
        _add_all(tar, each, f"{name}/{each.name}")


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Files, folders and links among them; sockets, pipes and locks of running processes are nothing to keep."""
    if member.issym():
        return member if _without_ways_out(member, "/nowhere") else None
    return member if member.isfile() or member.isdir() or member.islnk() else None


def _without_ways_out(member: tarfile.TarInfo, to: str) -> tarfile.TarInfo | None:
    """None for a link out of the folder, by its whole path also within it: programs make such, and make them again."""
    try:
        return tarfile.data_filter(member, to)
    except (tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError):
        return None


def restore(file: Path, folder: Path, now: datetime) -> Path | None:
    """Put the file's content into the folder; what was there is kept in a folder inside it, which is returned.

    Raises CantRestore, having changed nothing.
    """
    users = _used_by(folder / DATABASE)
    if users:
        raise CantRestore(f"Conch runs on {folder} (process {users[0]}). Stop it first, then restore.")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".restore-") as beside:
        _unpack(file, Path(beside))
        _nobody_runs(Path(beside) / DATABASE)
        present = [path for path in folder.iterdir() if path.name != Path(beside).name]
        present = [path for path in present if not path.name.startswith(BEFORE)]
        kept = folder / f"{BEFORE}{now:%Y%m%d-%H%M%S}" if present else None
        if kept is not None:
            kept.mkdir(mode=0o700)
            for path in present:
                path.rename(kept / path.name)
        for path in list(Path(beside).iterdir()):
            path.rename(folder / path.name)
    return kept


def _nobody_runs(database: Path) -> None:
    """What ran when the backup was taken is run by nobody now: the next start ends it as interrupted, at once."""
    if database.exists():
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE conch_turn SET lease_until = NULL, owner = '' WHERE state = 'running'")


def _unpack(file: Path, to: Path) -> None:
    try:
        with tarfile.open(file, "r:gz") as tar:
            tar.extractall(to, filter=_without_ways_out)  # noqa: S202  the data filter, with less
    except (OSError, tarfile.TarError, EOFError) as error:
        raise CantRestore(f"{file} can't be read as a backup: {error}") from error
    if not (to / DATABASE).exists() and not (to / "secret_key").exists():
        raise CantRestore(f"{file} is no backup of Conch: it holds neither a database nor its secret.")
    for path in (to, *to.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else path.stat().st_mode & 0o700)
    if (to / DATABASE).exists():
        with closing(sqlite3.connect(to / DATABASE)) as database:
            found = database.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise CantRestore(f"The database in {file} is damaged: {found}")


def _used_by(database: Path) -> list[int]:
    """The processes that have the database open, where the system tells (/proc)."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            opened = link.readlink()
        except OSError:
            continue
        if opened == database.absolute() and int(link.parts[2]) != os.getpid():
            found.append(int(link.parts[2]))
    return sorted(set(found))
