"""Calls of tools as a page shows them, folded: what was asked for and what came of it, as data, with its time."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from conch.chat import markdown
from conch.chat.pressing import Press
from conch.copy import calls as copy
from conch.copy.sentences import Said
from conch.models import ToolCall
from conch.turns.calls import seconds_of

LONGEST = 20_000  # characters of what a page shows of arguments, and of an outcome; the exports have all of it


@dataclass(frozen=True, slots=True)
class Asks:
    """The line of a call that asks, with where each of its answers goes."""

    id: str
    said: Said
    presses: tuple[Press, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call; `said` is all of it in short. One that asks is unfolded by the page, so its id is another's."""

    id: str
    said: str
    arguments: SafeString
    outcome: SafeString
    asks: Asks | None = None


def shown_calls(rows: Iterable[ToolCall], label: str) -> tuple[ShownCall, ...]:
    """Those calls, in order; `label`: who asked for them."""
    return tuple(_shown(row, label) for row in rows)


def _shown(row: ToolCall, label: str) -> ShownCall:
    asking = asks(row, label) if row.state == ToolCall.State.ASKED else None
    return ShownCall(
        id=f"asking-{row.pk}" if asking else f"call-{row.pk}",
        said=copy.in_short(row.title, row.state, seconds_of(row)),
        arguments=_data(json.dumps(row.arguments, ensure_ascii=False, indent=1)),
        outcome=_data(row.outcome),
        asks=asking,
    )


def asks(row: ToolCall, label: str) -> Asks:
    """The question of a call that asks."""
    said = copy.asks(label, row.title, changed=row.changed)
    url = reverse("allow", args=[row.turn_id, row.pk])
    presses = tuple(Press(button.label, url, (("allow", button.amount),)) for button in said.buttons)
    return Asks(f"asks-{row.pk}", said, presses)


def _data(text: str) -> SafeString:
    """Text as text, bounded: whatever stands in it, nothing of it is markup, and what turns its direction is shown."""
    more = len(text) - LONGEST
    rest = f"\n[… {more:,} characters more]" if more > 0 else ""
    return mark_safe(markdown.visible(text[:LONGEST] + rest))  # noqa: S308  visible() escapes
