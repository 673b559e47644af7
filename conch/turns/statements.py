"""The statements on the way to every answer, by hand: building them anew each time costs more than running them.

Reads are querysets compiled once (routing.prepared); the few writes are written out here, beside the columns that they
speak of. Everything else in this part is plain ORM. Measured in docs/performance.md.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Case, F, QuerySet, TextField, When
from django.db.models.functions import Length, Substr

from conch.models import Account, Attachment, Conversation, Line, Person, ToolCall, Turn
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


def _history_rows(conversation_id: int, pk: int) -> "QuerySet[Turn, Any]":
    earlier = Turn.objects.filter(conversation_id=conversation_id, pk__lt=pk, replaced_by=None, state__in=Turn.ENDS)
    return earlier.order_by("pk").values_list(*HISTORY)


def _account_rows(person_id: int, slug: str) -> "QuerySet[Account, Any]":
    rows = Account.objects.filter(person_id=person_id, slug=slug, removed_at=None)
    return rows.values_list(*ACCOUNT, "person__is_owner")


def _line_rows(turn_id: int) -> "QuerySet[Line, Any]":
    return Line.objects.filter(turn_id=turn_id).order_by("pk").values_list("pk", "kind", "data", "at")


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
_history = Prepared(_history_rows, NUMBER, -719_003_002)
_accounts = Prepared(_account_rows, NUMBER, WORD)
_lines = Prepared(_line_rows, NUMBER)
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


def history(conversation_id: int, turn_id: int) -> list[tuple[Any, ...]]:
    """The chat's ended turns before that one that no edit replaced, oldest first, as HISTORY."""
    return _history.rows(conversation_id, turn_id)


def pictures(conversation_id: int) -> list[tuple[Any, ...]]:
    """The turn, width and height of every image in the chat."""
    return _pictures.rows(conversation_id)


def keep_counts(counted: Iterable[tuple[int, int, int]]) -> None:
    """Write down what messages come to in tokens: the message, its answer, its turn."""
    with connection.cursor() as cursor:
        cursor.executemany("UPDATE conch_turn SET text_tokens = %s, answer_tokens = %s WHERE id = %s", list(counted))


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


def _time(at: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(at)


def chat_is_named(person_id: int, conversation_id: int) -> bool | None:
    """Whether that chat of the person's has a title; None where there is no such chat."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT titled, title FROM conch_conversation WHERE id = %s AND person_id = %s AND deleted_at IS NULL",
            [conversation_id, person_id],
        )
        row = cursor.fetchone()
    return None if row is None else bool(row[0] or row[1])


def chat_moved(conversation_id: int, now: datetime, *, title: str = "", unread: bool = False) -> None:
    """Something happened in the chat: it is the latest now; it gets a title, or an unread mark, where one is given."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conch_conversation SET updated_at = %s, title = CASE WHEN %s <> '' THEN %s ELSE title END,"
            " unread = unread OR %s WHERE id = %s",
            [_time(now), title, title, unread, conversation_id],
        )


def next_queued(conversation_id: int) -> int | None:
    """The queued turn of that chat that may run now, if there is one (R35)."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id, state FROM conch_turn WHERE conversation_id = %s AND state IN {UNFINISHED} ORDER BY id",
            [conversation_id],
        )
        rows = cursor.fetchall()
    if not rows or rows[0][1] != "queued" or any(state == "running" for _, state in rows):
        return None
    return int(rows[0][0])


def end_attempt(attempt_id: int, state: str, columns: dict[str, Any], now: datetime) -> None:
    """Close an attempt's row; `columns` are those of the model, by name."""
    sets = "".join(f", {name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE conch_attempt SET state = %s, ended_at = %s{sets} WHERE id = %s",
            [state, _time(now), *(_time(v) if isinstance(v, datetime) else v for v in columns.values()), attempt_id],
        )


def end_turn(turn_id: int, run: int, columns: dict[str, Any], now: datetime) -> bool:
    """End a running turn; False where somebody else has. `columns` are those of the model, by name."""
    sets = "".join(f", {name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conch_turn SET ended_at = %s, lease_until = NULL, waits_for = '', until = NULL, wake_at = NULL"
            f"{sets} WHERE id = %s AND run = %s AND state = 'running'",
            [_time(now), *columns.values(), turn_id, run],
        )
        return bool(cursor.rowcount)


def costs_of(turn_id: int) -> list[int | None]:
    """What each ended attempt of the turn cost, in nanodollars."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT cost_nano FROM conch_attempt WHERE turn_id = %s AND ended_at IS NOT NULL", [turn_id])
        return [cost for (cost,) in cursor.fetchall()]


def claim_queued(turn_id: int, run: int, owner: str, lease_until: datetime, now: datetime) -> bool:
    """Claim a queued turn that nothing in its chat goes before (R35); False where that isn't so any more."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conch_turn SET state = 'running', owner = %s, lease_until = %s, started_at = %s, stop_asked = %s"
            " WHERE id = %s AND run = %s AND state = 'queued' AND NOT EXISTS"
            " (SELECT 1 FROM conch_turn AS other WHERE other.conversation_id = conch_turn.conversation_id"
            f" AND other.id <> conch_turn.id AND other.state IN {UNFINISHED}"
            " AND (other.id < conch_turn.id OR other.state = 'running'))",
            [owner, _time(lease_until), _time(now), False, turn_id, run],
        )
        return bool(cursor.rowcount)


def insert_attempt(turn_id: int, run: int, account: str, model: str, consent: str, now: datetime) -> int:
    """A new attempt; its id."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO conch_attempt (turn_id, run, account, model, state, refusal_kind, partial, consent, said,"
            " started_at) VALUES (%s, %s, %s, %s, 'running', '', '', %s, '', %s) RETURNING id",
            [turn_id, run, account, model, consent, _time(now)],
        )
        return int(cursor.fetchone()[0])


def now_answers(turn_id: int, run: int, account: str, model: str, position: int) -> None:
    """Who answers the turn, and how far its events have come."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conch_turn SET account = %s, model = %s, position = %s WHERE id = %s AND run = %s",
            [account, model, position, turn_id, run],
        )


def insert_events(told: Iterable[tuple[Event, int, int]]) -> None:
    """Write events down, each with its turn and run; one that is there already stays as it is."""
    rows = [(turn_id, run, event.id, event.kind, json.dumps(event.data)) for event, turn_id, run in told]
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO conch_turnevent (turn_id, run, position, kind, data) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                rows,
            )
