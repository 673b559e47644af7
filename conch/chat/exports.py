"""A chat to take along: Markdown to read, JSON with everything, what an edit replaced too."""

import json
from collections.abc import Iterator
from typing import Any

from conch.chat.shown import Names, names_of
from conch.copy import lines
from conch.copy.clock import Viewer
from conch.models import Conversation, Line, Turn
from conch.money import from_nano, plain


def as_markdown(chat: Conversation, viewer: Viewer) -> str:
    """The chat as one reads it: messages, answers with who gave them, lines in italics."""
    names = names_of(chat.person_id)
    said: dict[int | None, list[str]] = {}
    for line in Line.objects.filter(conversation=chat).order_by("pk"):
        said.setdefault(line.turn_id, []).append(lines.text(line.kind, line.data, viewer))
    parts = [f"# {chat}"]
    for turn in Turn.objects.filter(conversation=chat, replaced_by=None).order_by("pk"):
        parts += [*_message(turn, said.get(turn.pk, []), names)]
    return "\n\n".join(parts) + "\n"


def _message(turn: Turn, said: list[str], names: Names) -> Iterator[str]:
    yield "## You"
    yield turn.text
    yield from (f"*{words}*" for words in said if words)
    if turn.answer:
        by = names.by(turn.account, turn.model)
        yield f"## {' '.join(filter(None, (by.label, by.model)))}" if by else "## Answer"
        yield turn.answer


def as_json(chat: Conversation, viewer: Viewer) -> str:
    """Everything about the chat, as data: times in UTC, money as decimal strings."""
    turns = [_turn(turn) for turn in Turn.objects.filter(conversation=chat).order_by("pk")]
    told = [
        {"turn": line.turn_id, "kind": line.kind, "text": lines.text(line.kind, line.data, viewer), "data": line.data}
        for line in Line.objects.filter(conversation=chat).order_by("pk")
    ]
    whole = {"id": chat.pk, "title": chat.title, "account": chat.account, "model": chat.model}
    return json.dumps(whole | {"turns": turns, "lines": told}, ensure_ascii=False, indent=1)


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.pk,
        "state": turn.state,
        "text": turn.text,
        "answer": turn.answer,
        "account": turn.account or None,
        "model": turn.model or None,
        "cost": None if turn.cost_nano is None else plain(from_nano(turn.cost_nano)),
        "created_at": turn.created_at.isoformat(),
        "ended_at": turn.ended_at.isoformat() if turn.ended_at else None,
        "replaced_by": turn.replaced_by_id,
    }
