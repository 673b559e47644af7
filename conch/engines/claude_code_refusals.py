"""What Claude Code's "no" means: its typed words → one EngineError. Pure (providers.md 1.4, clis.md 3.4).

Wording is the program's own and changes; it decides only where no code does. Seen with 2.1.332: a throttle comes with a
`rejected` event too, one that names neither a window nor a reset.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

from conch.engines import claude_code_room as rooms
from conch.engines.base import (
    EngineError,
    EngineFault,
    LimitReached,
    Overloaded,
    Rejected,
    Room,
    SignedOut,
    Throttled,
    Unreachable,
)
from conch.engines.limit_sentences import limit_sentence
from conch.engines.refusals import Answer, Speaks
from conch.engines.refusals import refusal as api_refusal
from conch.engines.wire_text import said

SIGNED_OUT = {"authentication_failed", "oauth_org_not_allowed", "account_on_hold", "verification_required"}
# A plan has no balance: where one is too low, a key pays.
REJECTED = {"billing_error": "paying", "model_not_found": "model_gone"}
TOO_LONG = {"long_context_credits_required", "prompt_too_long"}
# Nothing was sent: nobody there, no such name, no way to it.
NOT_SENT = re.compile(r"\((?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ENETDOWN|EHOSTDOWN)\)")
_PREFIX = re.compile(r"^(?:Failed to authenticate\. )?API Error: (?:\d{3} )?")


@dataclass(frozen=True, slots=True)
class Told:
    """A failed turn as it was told. `limit`: the windows' own word; `begun`: the provider had started to answer."""

    text: str
    error: str = ""
    code: str = ""
    kind: str = ""
    status: int = 0
    ending: str = ""
    limit: Mapping[str, Any] = field(default_factory=dict)
    room: Room | None = None
    model: str = ""
    begun: bool = False
    shown: bool = False

    @property
    def words(self) -> str:
        """The program's own words, fit to be shown."""
        return said(self.text)

    @property
    def is_limit(self) -> bool:
        """Whether a window of the plan refuses, by its type, its reset or the typed code."""
        typed = bool(self.limit.get("rateLimitType") or self.limit.get("resetsAt"))
        if self.limit.get("status") == "rejected" and typed and not rooms.pays_extra(self.limit):
            return True
        return self.code == "usage_limit_reached" or self.ending == "blocking_limit"


def refusal(told: Told, now: datetime, zone: tzinfo) -> EngineError:
    """What the failed turn means for the account."""
    if told.is_limit:
        return _limit(told, now)
    return _typed(told) or _by_words(told, now, zone) or _by_status(told, now)


def _limit(told: Told, now: datetime) -> LimitReached:
    return LimitReached(
        told.words,
        until=rooms.rejected_until(told.limit, now),
        model=told.model if rooms.one_model(told.limit) else "",
        room=told.room,
        accepted=told.begun,
        status=told.status or 429,
    )


def _typed(told: Told) -> EngineError | None:
    if told.code == "connection_failed":
        return _connection(told)
    reason = "too_long" if {told.code, told.ending} & TOO_LONG else REJECTED.get(told.error)
    if reason:
        return Rejected(told.words, reason=reason, accepted=told.begun, status=told.status or None)
    if told.code == "model_requires_usage_credits":
        return LimitReached(told.words, scope="not_entitled", model=told.model, accepted=told.begun)
    if told.error in SIGNED_OUT:
        return SignedOut(told.words, status=told.status or None)
    return Overloaded(told.words, accepted=told.begun, status=told.status) if told.error == "overloaded" else None


def _connection(told: Told) -> EngineError:
    if not told.begun and NOT_SENT.search(told.text):
        return Unreachable(told.words)
    return EngineFault(told.words, cut=told.shown, accepted=True)


def _by_words(told: Told, now: datetime, zone: tzinfo) -> EngineError | None:
    """The last resort: older versions say a limit in words only (RST-01, LIM-13)."""
    sentence = None if told.shown else limit_sentence(told.text, now, zone)
    if sentence is None:
        return None
    model = told.model if sentence.model else ""
    return LimitReached(told.words, until=sentence.until, model=model, room=told.room, status=told.status or None)


def _by_status(told: Told, now: datetime) -> EngineError:
    if told.status == 429 or told.error == "rate_limit":
        return Throttled(told.words, accepted=told.begun, status=429)
    if told.status < 400:
        return EngineFault(told.words, cut=told.shown, accepted=True)
    body = {"error": {"type": told.kind, "message": _PREFIX.sub("", told.text)}}
    return api_refusal(Speaks.ANTHROPIC, Answer(told.status, {}, body, told.model, accepted=told.begun), now)
