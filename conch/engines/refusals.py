"""What a provider's "no" means: (status, headers, body) → one EngineError. Pure; `now` is given.

By the tables of providers.md 0.4, 2.2, 4, 5.3, 6, 7 and 10. Only signals of a limit are one (R30): typed codes first,
then the message of the provider's own error object where there is no code. A rule is a function that knows one
provider's ways and returns None for what isn't its own; the first that knows decides, then the status does.
"""

from datetime import datetime

from conch.engines import resets
from conch.engines.base import EngineError, EngineFault, Overloaded, Rejected, SignedOut, Throttled
from conch.engines.refusals_rules import RULES
from conch.engines.refusals_told import Answer, Speaks, Told, by_time, default_pause, tell

__all__ = ["Answer", "Speaks", "reading_failure", "refusal"]


def refusal(speaks: Speaks, answer: Answer, now: datetime) -> EngineError:
    """What that answer means for the account that was asked."""
    told = tell(answer)
    for rule in RULES[speaks]:
        found = rule(told, now)
        if found is not None:
            return found
    return by_status(told, now)


def reading_failure(speaks: Speaks, answer: Answer, now: datetime) -> EngineError:
    """What a failed reading means: signed out, come again later, or nothing. Never a limit of the account (LIM-20)."""
    told = tell(answer)
    if told.status == 429:
        wait = resets.pause(told.headers, now) or default_pause(told)
        return Throttled(told.words, retry_after=wait, status=429)
    meant = refusal(speaks, answer, now)
    if isinstance(meant, SignedOut | Overloaded | Rejected):
        return meant
    return EngineFault(told.words, accepted=False, status=told.status)


def by_status(told: Told, now: datetime) -> EngineError:
    """What the bare status says, where no rule knew better."""
    status = told.status
    if status == 401:
        return SignedOut(told.words, status=status)
    if status == 402:
        return told.limit(now, scope="money")
    if status == 429:
        return by_time(told, now)
    if status in {503, 529}:
        return Overloaded(told.words, accepted=told.answer.accepted, status=status)
    if 400 <= status < 500 and status not in {408, 425} and (told.structured or status != 403):
        return told.rejected("too_long" if status == 413 else "bad")
    # A redirect or a wall before the provider (403 as a page) answered nothing; anything else may have been paid for.
    return EngineFault(told.words, accepted=told.answer.accepted or status >= 500 or status == 408, status=status)
