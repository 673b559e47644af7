"""Text and figures as they come from a provider and as they go to one: cleaned, bounded, never trusted.

A lone surrogate can't be written as UTF-8 and makes every later request of its chat fail (INP-01); PostgreSQL takes no
NUL. Both are replaced on the way in and on the way out.
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

REPLACEMENT = "\ufffd"
SAID_LENGTH = 500
DEEPEST = 100  # levels of JSON

_ODD = re.compile("[\ud800-\udfff\0]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
# Keys as providers write them, whole or shortened in the middle, and bearer tokens (JWTs).
_SECRETS = re.compile(
    r"(?:sk|rk|pk|sess|gsk|xai|key)-[\w*.\u2026-]{6,}|AIza[\w*.-]{8,}|eyJ[\w-]{8,}\.[\w.-]+|(?i:bearer)\s+[\w.~+/=*-]{6,}"
)


def clean(text: str) -> str:
    """The text without NUL, halves of a surrogate pair joined, lone ones replaced by U+FFFD."""
    if not _ODD.search(text):
        return text
    units = text.replace("\0", "").encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def clean_json(value: Any) -> Any:
    """A JSON value with every string and key in it cleaned; NaN and the infinities, which JSON hasn't, become null."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {clean(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return value


def too_deep(value: Any, most: int = DEEPEST) -> bool:
    """Whether lists and objects stand in each other deeper than what reads and writes them later can follow."""
    level = [value]
    for _ in range(most):
        level = [item for each in level for item in _within(each)]
        if not level:
            return False
    return True


def _within(value: Any) -> list[Any]:
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, Mapping | list | tuple)]


class Seam:
    """Cleans text that arrives in pieces: a surrogate pair cut between two pieces is joined, not replaced."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """The part of it that is whole now."""
        if not self._half and not _ODD.search(piece):
            return piece
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def end(self) -> str:
        """What was held back and never completed."""
        half, self._half = self._half, ""
        return REPLACEMENT if half else ""


def said(text: Any, *, secret: str = "") -> str:
    """A provider's own words for a person: one bounded text, no control characters, no secret (base.EngineError)."""
    if not isinstance(text, str):
        return ""
    short = _CONTROLS.sub(" ", clean(text[: SAID_LENGTH * 4])).strip()
    if len(secret) > 5:
        short = short.replace(secret, "\u2026")
    short = _SECRETS.sub("\u2026", short)
    return short if len(short) <= SAID_LENGTH else short[:SAID_LENGTH].rstrip() + "\u2026"


def model_label(model: str) -> str:
    """How people write the name of a model that its list gives no label: "gpt-5.5-mini" is "GPT-5.5 Mini"."""
    family, _, rest = model.partition("-")
    if family.lower() != "gpt" or not rest:
        return model
    version, *more = rest.split("-")
    return " ".join([f"GPT-{version}", *(word.capitalize() for word in more)])


def count(value: Any) -> int | None:
    """A number of tokens; None for anything that isn't one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return int(value)


def number(value: Any) -> float | None:
    """A finite number, also written as text ("34", "1.2"); None for anything else, NaN and infinities too (WIN-01)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def percent(value: Any, *, scale: float = 1.0) -> float | None:
    """How much of a window is used, in percent, by the scale of its source (providers.md 0.3); None says nothing.

    Below zero or beyond ten times the window is no figure (WIN-01: "1e307").
    """
    read = number(value)
    if read is None or not 0 <= read * scale <= 1000:
        return None
    return abs(read * scale)


def money(value: Any) -> Decimal | None:
    """An amount in USD, exact as written; None for anything that isn't a finite amount. May be negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        read = Decimal(str(value))
    except InvalidOperation:
        return None
    return read if read.is_finite() else None
