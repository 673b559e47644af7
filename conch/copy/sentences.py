"""What a line is made of: a sentence in parts, its colour, its icon, and the buttons that follow it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from conch.copy.clock import Viewer, at_moment, moment
from conch.money import shown

# Colour means attention needed: teal carried on, amber money or waiting, red stopped, grey the rest (copy.md 0.6).
CARRIED_ON, ATTENTION, STOPPED, CALM = "ok", "warn", "bad", "calm"


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of a sentence. `style`: "" plain, "b" a name in bold, "n" a name, "sub" less important."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Button:
    """What a person can do about it. `act` names the address; `account` and `amount` go with it."""

    label: str
    act: str
    account: str = ""
    amount: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A whole line."""

    parts: tuple[Part, ...]
    tone: str = CALM
    icon: str = "check"
    buttons: tuple[Button, ...] = ()

    @property
    def text(self) -> str:
        """The sentence alone, as the API gives it."""
        return "".join(part.text for part in self.parts)

    @property
    def spoken(self) -> str:
        """The same for a screen reader: an address follows its name after a comma."""
        return self.text.replace(" · ", ", ")


def said(*pieces: "str | Part | tuple[Part, ...]", tone: str, icon: str, buttons: tuple[Button, ...] = ()) -> Said:
    """A line of these pieces, in order; sentences are joined by what stands in them."""
    return Said(parts=tuple(_flat(pieces)), tone=tone, icon=icon, buttons=buttons)


def _flat(pieces: "tuple[str | Part | tuple[Part, ...], ...]") -> Iterator[Part]:
    for piece in pieces:
        if isinstance(piece, Part):
            yield piece
        elif isinstance(piece, str):
            yield Part(piece)
        else:
            yield from piece


def bold(label: str) -> tuple[Part, ...]:
    """A name that carries the sentence; whose it is ("· ada@work.example") stays in plain type."""
    name, dot, whose = label.partition(" · ")
    return (Part(name, "b"), Part(f"{dot}{whose}", "n")) if dot else (Part(name, "b"),)


def name(label: str) -> Part:
    """A name within a quiet sentence, kept apart from the direction of the text around it."""
    return Part(label, "n")


def sub(*pieces: "str | Part") -> tuple[Part, ...]:
    """A sentence that adds to the one before, after a space."""
    return (Part(" "), *(Part(piece, "sub") if isinstance(piece, str) else Part(piece.text, "sub") for piece in pieces))


def listed(labels: list[str]) -> tuple[Part, ...]:
    """Names in bold: "A and B", "A, B and C"."""
    parts: list[Part] = []
    for place, label in enumerate(labels):
        if place:
            parts.append(Part(" and " if place == len(labels) - 1 else ", "))
        parts.extend(bold(label))
    return tuple(parts)


def instant(value: Any) -> datetime | None:
    """A time of a line's data (ISO 8601), or none."""
    return datetime.fromisoformat(value) if value else None


def until(value: Any, viewer: Viewer) -> str:
    """What follows "its limit": " until 6:00 PM", or nothing where no reset is known."""
    given = instant(value)
    return f" until {moment(given, viewer)}" if given else ""


def at(value: Any, viewer: Viewer) -> str:
    """What follows a verb: "at 6:00 PM", "tomorrow 9:00 AM", "on Dec 3"; nothing where there is no time."""
    given = instant(value)
    return at_moment(given, viewer) if given else ""


def dollars(value: Any) -> str:
    """An amount of a line's data as people read it."""
    return shown(Decimal(str(value)))


def a_reply(per_reply: Any) -> str:
    """What a reply of a key costs, within a button or after "could answer": "about $0.02", or "pay per use"."""
    return f"about {dollars(per_reply)}" if per_reply is not None else "pay per use"


def answer_with(offer: Mapping[str, Any], *, now: bool = False) -> Button:
    """[Answer with B]; a key's names its price (copy.md 4)."""
    price = f", {a_reply(offer.get('per_reply'))}" if offer.get("billing") == "key" else ""
    return Button(f"Answer with {offer['label']}{' now' if now else ''}{price}", "answer_with", offer["slug"])


CANCEL = Button("Cancel", "cancel")
RETRY = Button("Try again", "retry")
CHANGE_BUDGET = Button("Change the budget", "budget")
SET_BUDGET = Button("Set a budget", "budget")
CONNECT_ANOTHER = Button("Connect another", "connect")
