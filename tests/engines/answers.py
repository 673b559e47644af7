"""Refusals as tests write and compare them."""

from datetime import UTC, datetime
from typing import Any

from conch.engines.base import EngineError
from conch.engines.refusals import Answer, Speaks, refusal
from tests.engines.conftest import NOW
from tests.engines.provider import payload

MONTH = datetime(2026, 11, 1, tzinfo=UTC)
SIX = datetime(2026, 10, 9, 18, tzinfo=UTC)


def meant(speaks: Speaks, name: str, *, now: datetime = NOW, model: str = "m-1") -> EngineError:
    recorded = payload(name)
    headers = {key.lower(): value for key, value in recorded.get("headers", {}).items()}
    return refusal(speaks, Answer(recorded["status"], headers, recorded["body"], model), now)


def said(status: int, body: Any, *, speaks=Speaks.COMPATIBLE, now=NOW, model="", **more: Any) -> EngineError:
    headers = {key.lower(): value for key, value in more.pop("headers", {}).items()}
    return refusal(speaks, Answer(status, headers, body, model, **more), now)


def facts(error: EngineError) -> dict[str, Any]:
    """What a test compares: the kind and what it carries, without the words."""
    shown: dict[str, Any] = {"kind": type(error).__name__}
    for name in ("until", "scope", "model", "affordable_output", "retry_after", "reason", "fits_tokens"):
        value = getattr(error, name, None)
        if value not in (None, ""):
            shown[name] = value
    return shown


def limit(until=None, scope="limit", **more):
    return {"kind": "LimitReached", "scope": scope} | ({"until": until} if until else {}) | more


def throttled(seconds):
    return {"kind": "Throttled", "retry_after": seconds}


def rejected(reason, **more):
    return {"kind": "Rejected", "reason": reason} | more
