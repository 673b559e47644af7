"""Made-up sign-ins in the files that the real programs keep (clis.md 2.1 and 3.1)."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.simulator.keys import Key

FAR_AHEAD = 4102444800  # 2100-01-01, unix seconds


def jwt(claims: dict[str, Any]) -> str:
    """A token with these claims; its signature is never checked."""
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, claims)
    )
    return f"{head}.{body}.c2ln"


def codex_claims(key: Key, *, expires_at: int = FAR_AHEAD) -> dict[str, Any]:
    return {
        "email": key.email,
        "exp": expires_at,
        "https://api.openai.com/auth": {
            "chatgpt_plan_type": key.plan,
            "chatgpt_account_id": key.account_id,
            "chatgpt_user_id": key.user_id,
        },
    }


def write_codex_home(folder: Path, key: Key, *, refresh_token: str = "rt-simulated") -> Path:
    """`auth.json` of a ChatGPT sign-in, mode 0600, in a folder that is made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tokens = {
        "id_token": jwt(codex_claims(key)),
        "access_token": key.secret,
        "refresh_token": refresh_token,
        "account_id": key.account_id,
    }
    signed_in = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens}
    return _write(folder, "auth.json", signed_in | {"last_refresh": datetime.now(UTC).isoformat()[:19] + "Z"})


def write_claude_home(folder: Path, key: Key, *, scopes: tuple[str, ...] = ("user:inference",)) -> Path:
    """A claude.ai sign-in in this configuration folder; scope and refresh token are such that all stays on loopback.

    With the scope `user:profile` the program asks Anthropic's own host, whatever its address for replies (clis.md 3.1).
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    signed_in = {
        "accessToken": key.secret,
        "refreshToken": None,
        "expiresAt": FAR_AHEAD * 1000,
        "scopes": list(scopes),
        "subscriptionType": key.plan,
        "rateLimitTier": f"default_claude_{key.plan}",
    }
    account = {
        "accountUuid": key.user_id,
        "emailAddress": key.email,
        "organizationUuid": key.organization,
        "organizationName": key.label,
    }
    _write(folder, ".credentials.json", {"claudeAiOauth": signed_in})
    return _write(folder, ".claude.json", {"oauthAccount": account, "hasCompletedOnboarding": True})


def _write(folder: Path, name: str, data: dict[str, Any]) -> Path:
    path = folder / name
    path.touch(mode=0o600)
    path.write_text(json.dumps(data))
    return folder
