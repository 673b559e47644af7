"""Statements written by hand, for what every answer goes through, with little between them and the database.

Django's cursor looks its connection up for each of its calls and wraps them three times: 20 µs a statement, in which
SQLite works for 3. What it promises holds here too: errors are Django's, a transaction that broke takes nothing more,
and who listens to what is asked (tests that count it) hears everything. Placeholders are %s on every database.
"""

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.sqlite3 import base as _djangos  # noqa: F401  registers its own converter first

Row = tuple[Any, ...]

# What SQLite keeps of an instant, also for Django's own statements: its converters do the same, several calls deeper,
# for every value that is read.
sqlite3.register_converter("datetime", lambda kept: datetime.fromisoformat(kept.decode()).replace(tzinfo=UTC))


def rows(sql: str, *values: Any) -> list[Row]:
    """What it finds."""
    database = connections[DEFAULT_DB_ALIAS]
    with database.wrap_database_errors:
        found: list[Row] = _executed(database, sql, values).fetchall()
    return found


def row(sql: str, *values: Any) -> Row | None:
    """The first row of what it finds; None where that is nothing."""
    found = rows(sql, *values)
    return found[0] if found else None


def run(sql: str, *values: Any) -> int:
    """Change something; how many rows that was."""
    database = connections[DEFAULT_DB_ALIAS]
    with database.wrap_database_errors:
        return int(_executed(database, sql, values).rowcount)


def run_many(sql: str, many: Sequence[Sequence[Any]]) -> None:
    """The same change for each of several values."""
    database = connections[DEFAULT_DB_ALIAS]
    with database.wrap_database_errors:
        cursor, sql = _cursor(database, sql)
        cursor.executemany(sql, [_adapted(database, values) for values in many])


def instant(said: Any) -> datetime | None:
    """An instant as a row has it: where it isn't a column's own value, SQLite's is text."""
    if said is None or isinstance(said, datetime):
        return said
    return datetime.fromisoformat(said).replace(tzinfo=UTC)


def structure(said: Any) -> Any:
    """A column of JSON as it is meant; text that is none stays text."""
    try:
        return json.loads(said) if isinstance(said, str) else said
    except ValueError:
        return said


def _executed(database: Any, sql: str, values: Sequence[Any]) -> Any:
    cursor, sql = _cursor(database, sql)
    cursor.execute(sql, _adapted(database, values))
    return cursor


def _cursor(database: Any, sql: str) -> tuple[Any, str]:
    if database.queries_logged or database.execute_wrappers:
        return database.cursor(), sql
    if database.connection is None:
        database.ensure_connection()
    if database.needs_rollback:
        database.validate_no_broken_transaction()
    return database.connection.cursor(), _with_question_marks(sql) if database.vendor == "sqlite" else sql


def _adapted(database: Any, values: Sequence[Any]) -> Sequence[Any]:
    """Values as columns keep them: on SQLite an instant is text without its zone."""
    if database.vendor != "sqlite":
        return values
    return [
        str(value.astimezone(UTC).replace(tzinfo=None)) if isinstance(value, datetime) else value for value in values
    ]


@lru_cache(maxsize=512)
def _with_question_marks(sql: str) -> str:
    return sql.replace("%s", "?").replace("%%", "%")
