"""A chat to take along: Markdown to read, JSON with everything, what an edit replaced too."""

import json
from collections.abc import Iterator
from typing import Any

from conch.chat.shown import Names, names_of
from conch.copy import lines
from conch.copy.calls import in_short
from conch.copy.clock import Viewer
from conch.models import Conversation, Line, ToolCall, Turn
from conch.money import from_nano, plain
from conch.turns.calls import facts_of, seconds_of


def as_markdown(chat: Conversation, viewer: Viewer) -> str:
    """The chat as one reads it: messages, answers with who gave them, lines in italics."""
    names = names_of(chat.person_id)
    said: dict[int | None, list[str]] = {}
    for line in Line.objects.filter(conversation=chat).order_by("pk"):
        said.setdefault(line.turn_id, []).append(lines.text(line.kind, line.data, viewer))
    parts = [f"# {chat}"]
    calls = _calls(chat)
    for turn in Turn.objects.filter(conversation=chat, replaced_by=None).order_by("pk"):
        parts += [*_message(turn, said.get(turn.pk, []), calls.get(turn.pk, []), names)]
    return "\n\n".join(parts) + "\n"


def _calls(chat: Conversation) -> dict[int, list[ToolCall]]:
    """The calls of tools in the chat, by turn, in order."""
    calls: dict[int, list[ToolCall]] = {}
    for call in ToolCall.objects.filter(turn__conversation=chat).order_by("pk"):
        calls.setdefault(call.turn_id, []).append(call)
    return calls


def _message(turn: Turn, said: list[str], calls: list[ToolCall], names: Names) -> Iterator[str]:
    yield "## You"
    yield turn.text
    yield from (f"*{words}*" for words in said if words)
    for call in calls:
        if not call.forgotten:
            yield f"*{in_short(call.title, call.state, seconds_of(call))}*"
            yield _fenced(json.dumps(call.arguments, ensure_ascii=False))
            yield from [_fenced(call.outcome)] if call.outcome else []
    if turn.answer:
        by = names.by(turn.account, turn.model)
        yield f"## {' '.join(filter(None, (by.label, by.model)))}" if by else "## Answer"
        yield turn.answer


def _fenced(text: str) -> str:
    """Data in a fence that nothing in it closes."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def as_json(chat: Conversation, viewer: Viewer) -> str:
    """Everything about the chat, as data: times in UTC, money as decimal strings."""
    calls = _calls(chat)
    turns = [_turn(turn, calls.get(turn.pk, [])) for turn in Turn.objects.filter(conversation=chat).order_by("pk")]
    told = [
        {"turn": line.turn_id, "kind": line.kind, "text": lines.text(line.kind, line.data, viewer), "data": line.data}
        for line in Line.objects.filter(conversation=chat).order_by("pk")
    ]
    whole = {"id": chat.pk, "title": chat.title, "account": chat.account, "model": chat.model}
    return json.dumps(whole | {"turns": turns, "lines": told}, ensure_ascii=False, indent=1)


def _turn(turn: Turn, calls: list[ToolCall]) -> dict[str, Any]:
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
        "calls": [facts_of(call) for call in calls],
    }
