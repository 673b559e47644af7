"""What a server lists, as it is kept: bounded, cleaned, one of each name. Whatever a server says of its tools is data.

A tool that can't be kept (no name, an endless schema) is left out and counted.
"""

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any

from conch.engines.wire_text import clean, clean_json, too_deep
from conch.tools import sessions
from conch.tools.launches import Launch

WITHIN = 45.0  # seconds for opening a session and listing
NAME = 128  # characters
TITLE = 100
DESCRIPTION = 4_000
SCHEMA = 20_000  # characters of JSON
ALL = 2_000_000  # characters of JSON of one server


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools to keep, in the server's order, and how many were seen that aren't kept."""

    tools: tuple[dict[str, Any], ...]
    left_out: int = 0


async def listing_of(launch: Launch) -> Listing:
    """Ask a server for its tools, in a session of its own. Raises ToolTrouble."""

    async def asked(session: Any) -> Any:
        return await import_module("conch.tools.protocol").listed(session)

    tools, whole = await sessions.alone(launch, asked, WITHIN)
    return kept_of(tools, whole=whole)


def kept_of(tools: Iterable[Any], *, whole: bool = True) -> Listing:
    """The tools that can be kept; not `whole`: the server listed others. Of several by one name the first counts."""
    kept: dict[str, dict[str, Any]] = {}
    size, left_out = 0, 0 if whole else 1
    for tool in tools:
        one = _kept(tool)
        size += len(json.dumps(one)) if one else 0
        if one is None or one["name"] in kept or size > ALL:
            left_out += 1
        else:
            kept[one["name"]] = one
    return Listing(tuple(kept.values()), left_out)


def _kept(tool: Any) -> dict[str, Any] | None:
    name = tool.name
    if not name or len(name) > NAME or clean(name) != name:
        return None
    try:
        schema = _schema(tool.input_schema)
    except (ValueError, RecursionError, TypeError):
        return None
    of_annotations = tool.annotations.title if tool.annotations else None
    title = plain(tool.title or of_annotations or "", TITLE)
    described = clean(tool.description or "").strip()[:DESCRIPTION]
    told = json.dumps([title, described, schema], sort_keys=True)
    digest = sha256(told.encode()).hexdigest()
    return {"name": name, "title": title, "description": described, "schema": schema, "digest": digest}


def _schema(given: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object, as providers take it: one of anything else would have them refuse every message.

    Raises ValueError where it is too long, or too deep.
    """
    if too_deep(given):
        raise ValueError("too deep")
    schema: dict[str, Any] = {**clean_json(given), "type": "object"}
    if len(json.dumps(schema)) > SCHEMA:
        raise ValueError("too long")
    return schema


def plain(text: str, most: int) -> str:
    """A text for one line of a page: no controls, nothing that turns or hides what stands beside it."""
    shown = "".join(" " if char.isspace() else char for char in clean(text) if not _hidden(char))
    return " ".join(shown.split())[:most]


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Co", "Cn"} and not char.isspace()
