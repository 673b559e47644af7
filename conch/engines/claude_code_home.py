"""A Claude sign-in as the Claude Code program keeps it: whose it is, and how the program is told where (clis.md 3.1).

Tokens are the program's: Conch reads no credentials, only the account's name beside them. Nothing is written here.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conch.engines.base import Identity

LARGEST_FILE = 16 * 1024 * 1024
ACCOUNT_FILE = ".claude.json"


def home_variables(home: str) -> dict[str, str]:
    """What tells the program its home; nothing for the person's own, whose files lie in two places."""
    if not home or Path(home).expanduser().absolute() == _usual():
        return {}
    return {"CLAUDE_CONFIG_DIR": str(Path(home).expanduser().absolute())}


def account_in(home: str) -> Identity:
    """Whose sign-in that home holds, as far as it is written down; empty where it isn't."""
    account = _kept(home).get("oauthAccount")
    if isinstance(account, Mapping):
        return identity_of(account.get("organizationUuid"), account.get("emailAddress"))
    return Identity()


def windows_fetched_at(home: str) -> datetime | None:
    """When the program last fetched the plan's windows, as it notes in that home; None where it doesn't say."""
    cached = _kept(home).get("cachedUsageUtilization")
    at = cached.get("fetchedAtMs") if isinstance(cached, Mapping) else None
    with suppress(OverflowError, OSError, ValueError):
        if isinstance(at, int | float):
            return datetime.fromtimestamp(at / 1000, UTC)
    return None


def _kept(home: str) -> Mapping[str, Any]:
    folder = Path(home).expanduser() if home_variables(home) else Path.home()
    with suppress(OSError, ValueError, RecursionError):
        with (folder / ACCOUNT_FILE).open("rb") as file:
            kept = json.loads(file.read(LARGEST_FILE))
        return kept if isinstance(kept, Mapping) else {}
    return {}


def credentials_age(home: str) -> int:
    """When that home's sign-in was last written, in nanoseconds; 0 where it is kept elsewhere."""
    folder = Path(home).expanduser() if home_variables(home) else _usual()
    with suppress(OSError):
        return (folder / ".credentials.json").stat().st_mtime_ns
    return 0


def identity_of(organization_id: Any, email: Any, *, plan: Any = "", organization: Any = "") -> Identity:
    """Organisation and e-mail together: one address may hold a plan of its own and a seat of a team (R1)."""
    whose = str(email or "")
    identity = f"{organization_id}:{whose.lower()}" if organization_id and whose else ""
    return Identity(identity, whose, str(plan or ""), str(organization or ""))


def _usual() -> Path:
    return (Path.home() / ".claude").absolute()
