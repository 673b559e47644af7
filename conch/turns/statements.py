"""The statements on the way to every answer, by hand: building them anew each time costs more than running them.

Reads are querysets compiled once (routing.prepared); the writes are written out here, beside the columns that they
speak of. What isn't on the way to every answer is plain ORM. Measured in docs/performance.md.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Case, F, QuerySet, TextField, When
from django.db.models.functions import Length, Substr

from conch import sql
from conch.models import Account, Attachment, Conversation, Line, Person, Preferences, ToolCall, Turn
from conch.turns.events import Event
from routing.prepared import NUMBER, OTHER_NUMBER, WORD, Prepared

TURN = [field.attname for field in Turn._meta.concrete_fields]
CHAT = [field.attname for field in Conversation._meta.concrete_fields]
ACCOUNT = [field.attname for field in Account._meta.concrete_fields]
HISTORY = ("pk", "text", "answer", "account", "state", "ending", "text_tokens", "answer_tokens")
# Characters of what a tool gave in an earlier turn that go to the model again.
OLDER_OUTCOME = 4_000
UNFINISHED = "('queued', 'running', 'waiting', 'capped')"


def _turn_rows(pk: int) -> "QuerySet[Turn, Any]":
    return Turn.objects.filter(pk=pk).values_list(*TURN, *[f"conversation__{name}" for name in CHAT])


def _whose_rows(pk: int) -> "QuerySet[Turn, Any]":
    return Turn.objects.filter(pk=pk).values_list("conversation__person_id", "conversation_id", "model")


def _history_rows(conversation_id: int, pk: int) -> "QuerySet[Turn, Any]":
    earlier = Turn.objects.filter(conversation_id=conversation_id, pk__lt=pk, replaced_by=None, state__in=Turn.ENDS)
    return earlier.order_by("pk").values_list(*HISTORY)


def _account_rows(person_id: int, slug: str) -> "QuerySet[Account, Any]":
    rows = Account.objects.filter(person_id=person_id, slug=slug, removed_at=None)
    return rows.values_list(*ACCOUNT, "person__is_owner")


def _line_rows(turn_id: int) -> "QuerySet[Line, Any]":
    return Line.objects.filter(turn_id=turn_id).order_by("pk").values_list("pk", "kind", "data", "at")


def _reader_rows(person_id: int) -> "QuerySet[Preferences, Any]":
    return Preferences.objects.filter(pk=person_id).values_list("time_zone", "hour_cycle")


def _picture_rows(conversation_id: int) -> "QuerySet[Attachment, Any]":
    rows = Attachment.objects.filter(turn__conversation_id=conversation_id)
    return rows.values_list("turn_id", "picture__width", "picture__height")


def _call_rows(conversation_id: int, pk: int) -> "QuerySet[ToolCall, Any]":
    rows = ToolCall.objects.filter(
        turn__conversation_id=conversation_id, turn__replaced_by=None, forgotten=False, state__in=ToolCall.ENDS
    )
    beginning = Substr("outcome", 1, OLDER_OUTCOME, output_field=TextField())
    whole = Case(When(turn_id=pk, then=F("outcome")), default=beginning, output_field=TextField())
    return rows.order_by("pk").values_list("turn_id", "name", "arguments", "state", whole, Length("outcome"))


_turns = Prepared(_turn_rows, NUMBER)
_whose = Prepared(_whose_rows, NUMBER)
_history = Prepared(_history_rows, NUMBER, -719_003_002)
_accounts = Prepared(_account_rows, NUMBER, WORD)
_lines = Prepared(_line_rows, NUMBER)
_readers = Prepared(_reader_rows, NUMBER)
_pictures = Prepared(_picture_rows, NUMBER)
_calls = Prepared(_call_rows, NUMBER, OTHER_NUMBER)


def turn_with_chat(turn_id: int) -> Turn | None:
    """The turn, its conversation loaded."""
    row = _turns.row(turn_id)
    if row is None:
        return None
    turn = Turn.from_db(connection.alias, TURN, row[: len(TURN)])
    turn.conversation = Conversation.from_db(connection.alias, CHAT, row[len(TURN) :])
    return turn


class Whose(NamedTuple):
    """A turn by whose it is, in which chat, and the model that answers it."""

    person_id: int
    conversation_id: int
    model: str


def whose(turn_id: int) -> Whose | None:
    """The turn in short."""
    row = _whose.row(turn_id)
    return None if row is None else Whose(*row)


def history(conversation_id: int, turn_id: int) -> list[tuple[Any, ...]]:
    """The chat's ended turns before that one that no edit replaced, oldest first, as HISTORY."""
    return _history.rows(conversation_id, turn_id)


def pictures(conversation_id: int) -> list[tuple[Any, ...]]:
    """The turn, width and height of every image in the chat."""
    return _pictures.rows(conversation_id)


def keep_counts(counted: Iterable[tuple[int, int, int]]) -> None:
    """Write down what messages come to in tokens: the message, its answer, its turn."""
    sql.run_many("UPDATE conch_turn SET text_tokens = %s, answer_tokens = %s WHERE id = %s", list(counted))


def calls(conversation_id: int, turn_id: int) -> list[tuple[Any, ...]]:
    """What tools gave in the chat: turn, tool, arguments, state, outcome, the outcome's length in characters.

    The outcomes of that turn are whole, those of earlier ones their beginnings.
    """
    return _calls.rows(conversation_id, turn_id)


def account(person_id: int, slug: str) -> Account | None:
    """The person's connected account of that slug, with whether its person is the owner."""
    row = _accounts.row(person_id, slug)
    if row is None:
        return None
    found = Account.from_db(connection.alias, ACCOUNT, row[:-1])
    found.person = Person(pk=person_id, is_owner=row[-1])
    return found


def lines_of(turn_id: int) -> list[Line]:
    """The turn's own lines, in order."""
    return [Line(pk=pk, turn_id=turn_id, kind=kind, data=data, at=at) for pk, kind, data, at in _lines.rows(turn_id)]


def reader(person_id: int) -> tuple[str, str]:
    """How that person reads times: their zone and their hour cycle, each "" where it isn't set."""
    row = _readers.row(person_id)
    return ("", "") if row is None else (row[0], row[1])


def chat_is_named(person_id: int, conversation_id: int) -> bool | None:
    """Whether that chat of the person's has a title; None where there is no such chat."""
    found = sql.row(
        "SELECT titled, title FROM conch_conversation WHERE id = %s AND person_id = %s AND deleted_at IS NULL",
        conversation_id,
        person_id,
    )
    return None if found is None else bool(found[0] or found[1])


def chat_moved(conversation_id: int, now: datetime, *, title: str = "", unread: bool = False) -> None:
    """Something happened in the chat: it is the latest now; it gets a title, or an unread mark, where one is given."""
    sql.run(
        "UPDATE conch_conversation SET updated_at = %s, title = CASE WHEN %s <> '' THEN %s ELSE title END,"
        " unread = unread OR %s WHERE id = %s",
        *(now, title, title, unread, conversation_id),
    )


def chat_has_model(conversation_id: int, model: str) -> None:
    """The chat's first answer says with which model it goes on (R12)."""
    sql.run("UPDATE conch_conversation SET model = %s WHERE id = %s", model, conversation_id)


def insert_turn(**given: Any) -> int:
    """A new turn; its id. What isn't given is as the model says."""
    columns = _of_a_new_turn() | given
    names, places = ", ".join(columns), ", ".join(["%s"] * len(columns))
    found = sql.row(f"INSERT INTO conch_turn ({names}) VALUES ({places}) RETURNING id", *columns.values())
    assert found is not None
    return int(found[0])


@cache
def _of_a_new_turn() -> dict[str, Any]:
    fields = [field for field in Turn._meta.concrete_fields if not field.primary_key]
    defaults = {str(field.column): field.get_default() for field in fields}
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in defaults.items()}


def insert_line(conversation_id: int, turn_id: int, kind: str, data: dict[str, Any], now: datetime) -> Line:
    """A new line."""
    found = sql.row(
        "INSERT INTO conch_line (conversation_id, turn_id, kind, data, at) VALUES (%s, %s, %s, %s, %s) RETURNING id",
        *(conversation_id, turn_id, kind, json.dumps(data), now),
    )
    assert found is not None
    return Line(pk=found[0], conversation_id=conversation_id, turn_id=turn_id, kind=kind, data=data, at=now)


def next_queued(conversation_id: int) -> int | None:
    """The queued turn of that chat that may run now, if there is one (R35)."""
    found = sql.rows(
        f"SELECT id, state FROM conch_turn WHERE conversation_id = %s AND state IN {UNFINISHED} ORDER BY id",
        conversation_id,
    )
    if not found or found[0][1] != "queued" or any(state == "running" for _, state in found):
        return None
    return int(found[0][0])


def end_attempt(attempt_id: int, state: str, columns: dict[str, Any], now: datetime) -> None:
    """Close an attempt's row; `columns` are those of the model, by name."""
    sets = "".join(f", {name} = %s" for name in columns)
    changed = f"UPDATE conch_attempt SET state = %s, ended_at = %s{sets} WHERE id = %s"
    sql.run(changed, state, now, *columns.values(), attempt_id)


def end_turn(turn_id: int, run: int, columns: dict[str, Any], now: datetime) -> bool:
    """End a running turn; False where somebody else has. `columns` are those of the model, by name."""
    sets = "".join(f", {name} = %s" for name in columns)
    ended = sql.run(
        "UPDATE conch_turn SET ended_at = %s, lease_until = NULL, waits_for = '', until = NULL, wake_at = NULL"
        f"{sets} WHERE id = %s AND run = %s AND state = 'running'",
        *(now, *columns.values(), turn_id, run),
    )
    return bool(ended)


def asked_to_stop(turn_ids: list[int]) -> set[int]:
    """Those of them whose stop was asked."""
    places = ", ".join(["%s"] * len(turn_ids))
    return {pk for (pk,) in sql.rows(f"SELECT id FROM conch_turn WHERE stop_asked AND id IN ({places})", *turn_ids)}


def costs_of(turn_id: int) -> list[int | None]:
    """What each ended attempt of the turn cost, in nanodollars."""
    asked = "SELECT cost_nano FROM conch_attempt WHERE turn_id = %s AND ended_at IS NOT NULL"
    return [cost for (cost,) in sql.rows(asked, turn_id)]


def claim_queued(turn_id: int, run: int, owner: str, lease_until: datetime, now: datetime) -> bool:
    """Claim a queued turn that nothing in its chat goes before (R35); False where that isn't so any more."""
    claimed = sql.run(
        "UPDATE conch_turn SET state = 'running', owner = %s, lease_until = %s, started_at = %s, stop_asked = %s"
        " WHERE id = %s AND run = %s AND state = 'queued' AND NOT EXISTS"
        " (SELECT 1 FROM conch_turn AS other WHERE other.conversation_id = conch_turn.conversation_id"
        f" AND other.id <> conch_turn.id AND other.state IN {UNFINISHED}"
        " AND (other.id < conch_turn.id OR other.state = 'running'))",
        *(owner, lease_until, now, False, turn_id, run),
    )
    return bool(claimed)


def insert_attempt(turn_id: int, run: int, account: str, model: str, consent: str, now: datetime) -> int:
    """A new attempt; its id."""
    found = sql.row(
        "INSERT INTO conch_attempt (turn_id, run, account, model, state, refusal_kind, partial, consent, said,"
        " started_at) VALUES (%s, %s, %s, %s, 'running', '', '', %s, '', %s) RETURNING id",
        *(turn_id, run, account, model, consent, now),
    )
    assert found is not None
    return int(found[0])


def now_answers(turn_id: int, run: int, account: str, model: str, position: int) -> None:
    """Who answers the turn, and how far its events have come."""
    sql.run(
        "UPDATE conch_turn SET account = %s, model = %s, position = %s WHERE id = %s AND run = %s",
        *(account, model, position, turn_id, run),
    )


def insert_events(told: Iterable[tuple[Event, int, int]]) -> None:
    """Write events down, each with its turn and run; one that is there already stays as it is."""
    events = [(turn_id, run, event.id, event.kind, json.dumps(event.data)) for event, turn_id, run in told]
    if events:
        sql.run_many(
            "INSERT INTO conch_turnevent (turn_id, run, position, kind, data) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            events,
        )
