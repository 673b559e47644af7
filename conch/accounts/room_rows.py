"""The statements of an account's room, by hand: a refusal in a turn is kept before the next account is asked."""

import json
from datetime import datetime

from conch import sql
from conch.models import Account, Refusal
from routing import facts

_REFUSED = "SELECT kind, at, until, retry_at FROM conch_refusal WHERE account_id = %s AND model = %s"
_FROM_THE_FUTURE = "SELECT id, at, retry_at, until FROM conch_refusal WHERE account_id = %s AND at > %s"
_KNOWN_WINDOWS = (
    "SELECT name, used_percent, resets_at, covers, length_minutes, read_at FROM conch_window WHERE account_id = %s"
    " ORDER BY id"
)
_KEEP_REFUSAL = (
    "INSERT INTO conch_refusal (account_id, model, kind, at, until, retry_at, reason, before)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (account_id, model) DO UPDATE SET kind = excluded.kind,"
    " at = excluded.at, until = excluded.until, retry_at = excluded.retry_at, reason = excluded.reason,"
    " before = excluded.before"
)
_TRIED = (
    "UPDATE conch_account SET attempt_allowed_at = NULL, clock_off_seconds = COALESCE(%s, clock_off_seconds)"
    " WHERE id = %s"
)


def windows(account_id: int) -> dict[str, facts.Window]:
    """The account's windows by their names, as last read."""
    found = sql.rows(_KNOWN_WINDOWS, account_id)
    return {
        name: facts.Window(name, used, resets_at, tuple(sql.structure(covers)), length, read_at)
        for name, used, resets_at, covers, length, read_at in found
    }


def refusals_from(account_id: int, after: datetime) -> list[sql.Row]:
    """Refusals that came after that: id, when, when it is asked again, until when."""
    return sql.rows(_FROM_THE_FUTURE, account_id, after)


def standing(account_id: int, model: str) -> Refusal | None:
    """What is known of that account refusing that model, or, for "", refusing at all."""
    found = sql.row(_REFUSED, account_id, model)
    if found is None:
        return None
    kind, at, until, retry_at = found
    return Refusal(account_id=account_id, model=model, kind=kind, at=at, until=until, retry_at=retry_at)


def engine_of(account_id: int) -> str:
    """The account's engine. Raises Account.DoesNotExist."""
    found = sql.row("SELECT engine FROM conch_account WHERE id = %s", account_id)
    if found is None:
        raise Account.DoesNotExist
    return str(found[0])


def keep(refusal: Refusal) -> None:
    """Write it down, over what was known of the same."""
    said = (refusal.account_id, refusal.model, str(refusal.kind), refusal.at, refusal.until, refusal.retry_at)
    sql.run(_KEEP_REFUSAL, *said, refusal.reason, json.dumps(refusal.before))


def tried(account_id: int, clock_off_seconds: int | None) -> None:
    """The attempt of *Check now* is used up; how far its server's clock is from ours, where that was said."""
    sql.run(_TRIED, clock_off_seconds, account_id)
