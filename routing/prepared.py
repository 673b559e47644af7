"""Querysets compiled once, for reads on the way to every answer: the ORM's own SQL without building it each time."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import BooleanField, DateTimeField, JSONField, QuerySet
from django.db.models.expressions import Col

from conch import sql

# Stand-ins while a queryset is compiled: found again among its parameters, wherever it puts them.
NUMBER, OTHER_NUMBER, WORD = -719_003_001, -719_003_002, "\x01conch\x01"
MOMENT = datetime(1871, 3, 1, 2, 3, 4, tzinfo=UTC)


class Prepared:
    """A queryset of plain values with places for arguments.

    `build` is called once a kind of database with stand-ins, each at most once (NUMBER and OTHER_NUMBER for ids,
    MOMENT for a time, WORD for a string), and returns the queryset; `rows` is called with arguments of the same kinds,
    in the same order. Values are converted as the ORM would.
    """

    def __init__(self, build: Callable[..., "QuerySet[Any, Any]"], *stand_ins: Any) -> None:
        self._build = build
        self._stand_ins = stand_ins
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, *arguments: Any) -> list[tuple[Any, ...]]:
        """The rows for those arguments, as tuples."""
        vendor = connection.vendor
        compiled = self._compiled.get(vendor)
        if compiled is None:
            compiled = self._compiled[vendor] = _Compiled(self._build(*self._stand_ins), self._stand_ins)
        return compiled.rows(arguments)

    def row(self, *arguments: Any) -> tuple[Any, ...] | None:
        """The first row, or None."""
        rows = self.rows(*arguments)
        return rows[0] if rows else None


class _Compiled:
    """The SQL of one kind of database, where its arguments go, and how its values are converted."""

    def __init__(self, queryset: "QuerySet[Any, Any]", stand_ins: Sequence[Any]) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self.sql, self.parameters = compiler.as_sql()
        known = [_adapted(stand_in) for stand_in in stand_ins]
        self.places = [known.index(value) if value in known else None for value in self.parameters]
        assert {place for place in self.places if place is not None} == set(range(len(known))), "every argument is used"
        expressions = [expression for expression, _, _ in compiler.select]
        found = compiler.get_converters(expressions).items()
        self.converters = [
            (place, converter)
            for place, (converters, expression) in found
            if (converter := _converter(expression, converters)) is not None
        ]

    def rows(self, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run it."""
        parameters = [
            value if place is None else arguments[place]
            for value, place in zip(self.parameters, self.places, strict=True)
        ]
        found = sql.rows(self.sql, *parameters)
        return [self._converted(row) for row in found] if self.converters else found

    def _converted(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for place, convert in self.converters:
            if values[place] is not None:
                values[place] = convert(values[place])
        return tuple(values)


def _converter(expression: Any, converters: Sequence[Any]) -> Callable[[Any], Any] | None:
    """From a value of the database's to one of ours; None where it is one already."""
    column = type(expression.target) if isinstance(expression, Col) else None
    if column in {DateTimeField, BooleanField}:
        return None  # come as they are to be (conch.sql)
    if column is JSONField and expression.target.decoder is None:
        return sql.structure

    def convert(value: Any) -> Any:
        for one in converters:
            value = one(value, expression, connection)
        return value

    return convert


def _adapted(argument: Any) -> Any:
    return connection.ops.adapt_datetimefield_value(argument) if isinstance(argument, datetime) else argument
