"""What the environment and `.env` say, checked once at the start.

A value that can't work raises ImproperlyConfigured with one line that names the variable (doors.md).
"""

import contextlib
import os
import re
import secrets
import tempfile
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent

HOST = re.compile(r"\.?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\]")

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")


def data_folder() -> Path:
    """CONCH_DATA: the one folder in which everything is kept, made with mode 0700."""
    folder = Path(env.str("CONCH_DATA", default="~/.local/share/conch")).expanduser()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"CONCH_DATA: {folder} can't be made: {error.strerror}") from error
    return folder


def flag(name: str, *, default: bool) -> bool:
    """A switch: on, true, yes, 1 or off, false, no, 0, in any case; anything else stops the start."""
    raw = env.str(name, default="").strip().lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}: {raw!r} is neither on nor off")


def one_of(name: str, values: tuple[str, ...]) -> str:
    """One of those values, the first where it is unset; anything else stops the start."""
    raw: str = env.str(name, default=values[0]).strip().lower()
    if raw not in values:
        raise ImproperlyConfigured(f"{name}: {raw!r} is none of {', '.join(values)}")
    return raw


def port(name: str, *, default: int) -> int:
    """A TCP port from 1 to 65535."""
    raw = env.str(name, default=str(default))
    if not (raw.isascii() and raw.isdigit()) or not 0 < int(raw) < 65536:
        raise ImproperlyConfigured(f"{name}: {raw!r} is not a port (1 to 65535)")
    return int(raw)


def http_url(name: str) -> str:
    """An http or https address without a trailing slash, or nothing."""
    raw: str = env.str(name, default="").strip().rstrip("/")
    if raw and not _is_http(raw):
        raise ImproperlyConfigured(f"{name}: {raw!r} is not an http or https address")
    return raw


def _is_http(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket left open, a port that is no number
        return False


def bearer(name: str) -> str:
    """A key as it can stand in a header: printable ASCII without spaces, or nothing. The value is never repeated."""
    raw: str = env.str(name, default="").strip()
    if raw and (not raw.isascii() or not raw.isprintable() or " " in raw):
        raise ImproperlyConfigured(f"{name}: has spaces or characters that no key has")
    return raw


def host_names(name: str, *, default: list[str]) -> list[str]:
    """Names or addresses separated by commas, as a Host header says them without the port; "*" and ".domain" too."""
    found = [host.strip() for host in env.list(name, default=default)]
    wrong = next((host for host in found if host != "*" and not HOST.fullmatch(host)), None)
    if wrong is not None:
        raise ImproperlyConfigured(f"{name}: {wrong!r} is not a name or address of a host")
    if not found:
        raise ImproperlyConfigured(f"{name}: at least one name is needed")
    return found


def secret_key(folder: Path) -> str:
    """CONCH_SECRET_KEY, or the one made at the first start and kept in CONCH_DATA with mode 0600."""
    given: str = env.str("CONCH_SECRET_KEY", default="")
    if given:
        if len(given) < 32:
            raise ImproperlyConfigured("CONCH_SECRET_KEY: too short, 32 characters or more are needed")
        return given
    return kept_secret(folder / "secret_key")


def kept_secret(path: Path) -> str:
    """The secret in that file, made there on first use; only its owner can read it.

    Written whole under another name and linked into place, so that two processes starting at once agree on one.
    """
    try:
        if not path.exists():
            descriptor, made = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(50))
            with contextlib.suppress(FileExistsError):
                os.link(made, path)
            Path(made).unlink()
        return path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"CONCH_DATA: {path} can't be used: {error.strerror}") from error


def database(folder: Path) -> dict[str, object]:
    """DATABASE_URL as Django's settings; SQLite in CONCH_DATA where unset.

    SQLite runs in WAL mode with IMMEDIATE transactions and a busy timeout, so that a transaction that reads and then
    writes never meets "database is locked" half way. PostgreSQL gets psycopg's pool.
    """
    try:
        address = env.str("DATABASE_URL", default="") or f"sqlite:///{folder / 'conch.sqlite3'}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an address it doesn't know; the line below says it
            settings: dict[str, object] = dict(env.db_url_config(address))
    except Exception as error:  # environ raises several kinds for an address it can't read
        raise ImproperlyConfigured(f"DATABASE_URL: can't be read: {error}") from error
    engine = str(settings.get("ENGINE", ""))
    if engine.endswith("sqlite3"):
        settings["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;",
        }
    elif engine.endswith("postgresql"):
        settings["OPTIONS"] = {"pool": {"min_size": 0, "max_size": 8, "timeout": 10}}
        settings["CONN_HEALTH_CHECKS"] = True
    else:
        raise ImproperlyConfigured("DATABASE_URL: only sqlite and postgres are supported")
    return settings
