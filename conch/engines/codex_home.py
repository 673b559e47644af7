"""A ChatGPT sign-in as the Codex program keeps it: `auth.json` in its home, read and never written (providers.md 3.5).

The API key that may lie beside the sign-in is never looked at: a plan's account pays by the plan (R34, CON-02).
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from conch.engines import resets
from conch.engines.base import Identity, SignedOut

AUTH_FILE = "auth.json"
LARGEST_FILE = 1024 * 1024
_OPENAI = "https://api.openai.com/auth"
_PROFILE = "https://api.openai.com/profile"


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a request carries, whose it is, and when it ends (None: not said)."""

    access_token: str = field(repr=False)
    account_id: str
    identity: Identity
    expires_at: datetime | None = None


def folder_of(home: str) -> Path:
    """The home of an account: its own, else the person's."""
    return Path(home or "~/.codex").expanduser()


def pays_by_key(folder: Path) -> bool:
    """Whether the program would pay by an API key there: its own rule, by the mode, else by a key that is there."""
    kept = _kept(folder)
    mode = str(kept.get("auth_mode") or "").lower() if isinstance(kept, Mapping) else ""
    return isinstance(kept, Mapping) and (mode == "apikey" or (not mode and bool(kept.get("OPENAI_API_KEY"))))


def _kept(folder: Path) -> Any:
    try:
        with (folder / AUTH_FILE).open("rb") as file:
            return json.loads(file.read(LARGEST_FILE))
    except FileNotFoundError:
        raise SignedOut(f"there is no ChatGPT sign-in in {folder}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SignedOut(f"the sign-in in {folder} can't be read") from error


# The sign-ins as last read, each with what its file was then.
_known: dict[Path, tuple[tuple[int, ...], Tokens]] = {}


def known_tokens(folder: Path) -> Tokens | None:
    """The sign-in in that home where its file is as it was when it was last read; None: it is to be read."""
    known = _known.get(folder)
    return known[1] if known is not None and known[0] == _state(folder) else None


def _state(folder: Path) -> tuple[int, ...]:
    try:
        found = (folder / AUTH_FILE).stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def read_tokens(folder: Path) -> Tokens:
    """The sign-in in that home. Raises SignedOut, saying why. Blocking, but for a small file."""
    state = _state(folder)
    tokens = _read_tokens(folder)
    if state:
        _known[folder] = (state, tokens)
    return tokens


def _read_tokens(folder: Path) -> Tokens:
    kept = _kept(folder)
    tokens = kept.get("tokens") if isinstance(kept, Mapping) else None
    if not isinstance(tokens, Mapping) or not isinstance(tokens.get("access_token"), str) or not tokens["access_token"]:
        raise SignedOut(f"the sign-in in {folder} is not by ChatGPT")
    claims = claims_of(tokens.get("id_token"))
    whose = identity_of(claims, str(tokens.get("account_id") or ""))
    account_id = str(tokens.get("account_id") or "") or whose.identity.partition(":")[0]
    expires = claims_of(tokens["access_token"]).get("exp")
    return Tokens(tokens["access_token"], account_id, whose, resets.instant(expires))


def signed_in_at(home: str) -> Identity | None:
    """Whose ChatGPT sign-in lies in that home; None where there is none, or a key would pay there. Asks nobody."""
    folder = folder_of(home)
    try:
        return None if pays_by_key(folder) else read_tokens(folder).identity
    except SignedOut:
        return None


def claims_of(token: Any) -> Mapping[str, Any]:
    """What a JWT says; nothing where it is none. Its signature is for its issuer to check."""
    parts = token.split(".") if isinstance(token, str) else []
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return {}
    return claims if isinstance(claims, Mapping) else {}


def identity_of(claims: Mapping[str, Any], account_id: str) -> Identity:
    """Account and user together: members of a team share the account, and one person may have several (ACC-01)."""
    facts = claims.get(_OPENAI)
    facts = facts if isinstance(facts, Mapping) else {}
    profile = claims.get(_PROFILE)
    email = claims.get("email") or (profile.get("email") if isinstance(profile, Mapping) else "")
    account = str(facts.get("chatgpt_account_id") or account_id or "")
    user = str(facts.get("chatgpt_user_id") or facts.get("user_id") or "")
    return Identity(
        identity=f"{account}:{user}" if account and user else "",
        whose=str(email or ""),
        plan=str(facts.get("chatgpt_plan_type") or ""),
        organization=_organization(facts),
    )


def _organization(facts: Mapping[str, Any]) -> str:
    listed = facts.get("organizations")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and one.get("is_default") and one.get("title"):
            return str(one["title"])
    return ""
