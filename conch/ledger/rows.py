"""The ledger's own SQL, written by hand, the same on SQLite and PostgreSQL; each statement runs inside a step.

It runs before and after every paid request, and building it anew each time costs ten times what running it does.
"""

import json
from datetime import datetime
from typing import Any, NamedTuple

from conch import sql

# Adds to totals, beginning those that aren't there. Several rows are taken in the order given.
_ADD = (
    "INSERT INTO conch_monthtotal (person_id, month, account, spent_nano, held_nano, unpriced) VALUES {rows}"
    " ON CONFLICT (person_id, month, account) DO UPDATE SET spent_nano = conch_monthtotal.spent_nano"
    " + excluded.spent_nano, held_nano = conch_monthtotal.held_nano + excluded.held_nano,"
    " unpriced = conch_monthtotal.unpriced + excluded.unpriced"
)
_ROW = "(%s, %s, %s, %s, %s, %s)"
_ADD_ONE, _ADD_TWO = _ADD.format(rows=_ROW), _ADD.format(rows=f"{_ROW}, {_ROW}")
# The test and the change are one statement, also for a row that somebody else begins at the same moment.
_ADD_WITHIN = _ADD_ONE + (" WHERE conch_monthtotal.spent_nano + conch_monthtotal.held_nano + excluded.held_nano <= %s")
_HELD_ENTRY = (
    "INSERT INTO conch_entry (person_id, account, engine, model, conversation, turn, attempt, month, state, hold_nano,"
    " input_tokens, consent, at, priced_by, estimated, extra)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'held', %s, %s, %s, %s, 'none', %s, %s) RETURNING id"
)
_ENTRY = (
    "SELECT person_id, account, engine, model, conversation, month, state, hold_nano, input_tokens, cost_nano, at"
    " FROM conch_entry WHERE id = %s"
)
_SETTLE = (
    "UPDATE conch_entry SET state = 'settled', input_tokens = %s, cached_input_tokens = %s, output_tokens = %s,"
    " cost_nano = %s, priced_by = %s, estimated = %s, settled_at = %s WHERE id = %s AND state = 'held'"
)
_RELEASE = "DELETE FROM conch_entry WHERE id = %s AND state = 'held'"
_CHAT = "UPDATE conch_conversation SET held_nano = held_nano + %s, spent_nano = spent_nano + %s WHERE id = %s"
_KNOWN = "SELECT known_models FROM conch_account WHERE person_id = %s AND slug = %s"
_LEFT = (
    "UPDATE conch_account SET"
    " key_left_nano = CASE WHEN key_resets_at <= %s AND key_cap_nano IS NOT NULL THEN key_cap_nano"
    " ELSE key_left_nano END - %s,"
    " key_resets_at = CASE WHEN key_resets_at <= %s AND key_cap_nano IS NOT NULL THEN NULL ELSE key_resets_at END"
    " WHERE person_id = %s AND slug = %s AND key_left_nano IS NOT NULL"
)


class Held(NamedTuple):
    """An entry, by what settling it takes."""

    person_id: int
    account: str
    engine: str
    model: str
    conversation: int | None
    month: str
    state: str
    hold_nano: int | None
    input_tokens: int | None
    cost_nano: int | None
    at: datetime


def add_held(person_id: int, month: str, account: str, amount: int, limit: int | None) -> bool:
    """Add to what a total holds, if what it has spent and holds stays within the limit; False where it wouldn't."""
    row = (person_id, month, account, 0, amount, 0)
    if limit is None:
        return bool(sql.run(_ADD_ONE, *row))
    # A row that isn't there yet has nothing in it, so the hold itself is all that must fit.
    return amount <= limit and bool(sql.run(_ADD_WITHIN, *row, limit))


def add(person_id: int, month: str, account: str, *, held: int, spent: int, unpriced: int) -> None:
    """Add to the person's total and to the account's, in one statement and that order."""
    figures = (spent, held, unpriced)
    sql.run(_ADD_TWO, person_id, month, "", *figures, person_id, month, account, *figures)


def give_back(person_id: int, month: str, account: str, amount: int) -> None:
    """Take a hold out of one total again."""
    sql.run(_ADD_ONE, person_id, month, account, 0, -amount, 0)


def add_to_chat(conversation_id: int | None, *, held: int = 0, spent: int = 0) -> None:
    """Add to a chat's own sums (R18)."""
    if conversation_id is not None and (held or spent):
        sql.run(_CHAT, held, spent, conversation_id)


def insert_held(
    person_id: int,
    account: str,
    engine: str,
    model: str,
    places: tuple[int | None, int | None, int | None],
    month: str,
    hold_nano: int | None,
    input_tokens: int | None,
    consent: str,
    at: datetime,
) -> int:
    """A new entry; `places` are its conversation, turn and attempt."""
    whose = (person_id, account, engine, model, *places, month)
    found = sql.row(_HELD_ENTRY, *whose, hold_nano, input_tokens, consent, at, False, False)
    assert found is not None
    return int(found[0])


def entry(entry_id: int) -> Held | None:
    """The entry of that id; None where there is none."""
    found = sql.row(_ENTRY, entry_id)
    if found is None:
        return None
    *facts, at = found
    return Held._make((*facts, sql.instant(at)))


def settle(entry_id: int, tokens: tuple[int | None, int | None, int | None], *said: Any, at: datetime) -> bool:
    """Settle a held entry: input, cached and output tokens, then cost, by whom priced, whether estimated."""
    return bool(sql.run(_SETTLE, *tokens, *said, at, entry_id))


def release(entry_id: int) -> bool:
    """Delete a held entry; False where it isn't held."""
    return bool(sql.run(_RELEASE, entry_id))


def known_models(person_id: int, account: str) -> list[dict[str, Any]]:
    """What the account's own list says of its models; empty where it says no price of any."""
    found = sql.row(_KNOWN, person_id, account)
    said = found[0] if found else None
    if isinstance(said, str):
        said = json.loads(said) if '"input_price"' in said else None
    return said if isinstance(said, list) else []


def lower_left(person_id: int, account: str, cost_nano: int, now: datetime) -> None:
    """Take a cost from what the provider's cap of the key had left; a cap whose reset has passed begins anew."""
    sql.run(_LEFT, now, cost_nano, now, person_id, account)
