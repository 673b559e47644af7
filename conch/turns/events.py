"""The events of a turn's run, as they are told, kept and told again.

Every event but text is a row with its id. Ids grow by one an event and by its length for text, so the text between
two rows is as long as the gap between their ids. `discard` says that the text before it left the answer; telling a run
again leaves that text out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conch.models import Turn, TurnEvent

LAST = frozenset({"done", "failed", "stopped", "interrupted", "waiting", "capped"})
ENDS = frozenset({"done", "failed", "stopped", "interrupted"})


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `id` grows over all runs of its turn."""

    id: int
    kind: str
    data: dict[str, Any]


def told_again(turn: Turn, rows: list[TurnEvent], after: int) -> Iterator[Event]:
    """The events of a run whose id is beyond `after`, from its rows (in order) and its turn's answer."""
    discarded = max((number for number, row in enumerate(rows) if row.kind == "discard"), default=-1)
    taken = 0
    for number, row in enumerate(rows):
        if row.position > after:
            yield Event(row.position, row.kind, row.data)
        if number < discarded:
            continue
        following = rows[number + 1].position - 1 if number + 1 < len(rows) else None
        length = len(turn.answer) - taken if following is None else following - row.position
        yield from _text(turn.answer[taken : taken + length], row.position, after)
        taken += length


def _text(text: str, begins: int, after: int) -> Iterator[Event]:
    ends = begins + len(text)
    if ends > after and text:
        yield Event(ends, "delta", {"text": text[max(0, after - begins) :]})


def rows_of(turn: Turn) -> list[TurnEvent]:
    """The rows of the turn's latest run, in order; all of them, since the text is found between them."""
    return list(TurnEvent.objects.filter(turn_id=turn.pk, run=turn.run).order_by("position"))
