"""Which tools a chat may use now: from what its servers listed last and what the person said of each. Rows only."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from conch.models import ToolPermission, ToolServer
from conch.tools.listing import plain

ASK, ALWAYS, NEVER = (str(value) for value in ToolPermission.Permission.values)
LONGEST_NAME = 64  # characters that every provider takes
MOST_OFFERED = 128  # tools that every provider takes in one request

_ODD = re.compile(r"[^a-zA-Z0-9_-]+")
_MARK = 7  # "_" and six hexadecimal digits


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool that a chat may use now. `name` is what the model sees; `title` is for people.

    `permission`: "ask" or "always"; those that are never to be used aren't offered to the model at all.
    """

    name: str
    server: str
    tool: str
    title: str
    description: str
    schema: Mapping[str, Any] = field(repr=False)
    permission: str
    digest: str  # of how the tool describes itself: a yes is for that


def offered(person_id: int, names: Sequence[str]) -> tuple[Offered, ...]:
    """The tools of the servers turned on for a chat, in the order of `names` (slugs); two queries, nobody is asked.

    At most MOST_OFFERED: the first ones. Slugs that are gone offer nothing.
    """
    if not names:
        return ()
    rows = ToolServer.objects.filter(person_id=person_id, slug__in=list(names), removed_at=None)
    servers = {server.slug: server for server in rows}
    said = permissions_of(server.pk for server in servers.values())
    all_of_them = (
        tool
        for slug in dict.fromkeys(names)
        if slug in servers
        for tool in _of(servers[slug], said.get(servers[slug].pk, {}))
    )
    once = {tool.name: tool for tool in reversed(tuple(all_of_them))}
    return tuple(reversed(once.values()))[:MOST_OFFERED]


def connected(person_id: int) -> list[ToolServer]:
    """The person's servers by name, without what they list, which may be long."""
    mine = ToolServer.objects.filter(person_id=person_id, removed_at=None)
    return sorted(mine.only("slug", "name", "trouble"), key=lambda server: (server.name.casefold(), server.pk))


def known(person_id: int, names: Iterable[str]) -> list[str]:
    """Those of these slugs that are servers of the person's, each once, in their order."""
    there = set(ToolServer.objects.filter(person_id=person_id, removed_at=None).values_list("slug", flat=True))
    return [slug for slug in dict.fromkeys(names) if slug in there]


def allow_always(person_id: int, server: str, tool: str) -> None:
    """The person's *Always*: this tool, as it is now, runs without asking from now on."""
    row = ToolServer.objects.filter(person_id=person_id, slug=server, removed_at=None).first()
    if row is not None:
        permit(row, tool, ALWAYS)


def permit(server: ToolServer, tool: str, permission: str) -> None:
    """Keep what the person said of one listed tool; "ask" is what holds without a word."""
    digest = next((listed["digest"] for listed in server.tools if listed["name"] == tool), None)
    if digest is None:
        return
    kept = {"permission": permission, "digest": digest}
    ToolPermission.objects.update_or_create(server=server, tool=tool, defaults=kept)


def permissions_of(server_ids: Iterable[int]) -> dict[int, dict[str, ToolPermission]]:
    """What was said of the tools of these servers, by server and tool; one query."""
    said: dict[int, dict[str, ToolPermission]] = {}
    for row in ToolPermission.objects.filter(server_id__in=list(server_ids)):
        said.setdefault(row.server_id, {})[row.tool] = row
    return said


def permission_now(listed: Mapping[str, Any], said: ToolPermission | None) -> str:
    """What holds for a tool as it is listed now: an "always" for what it said then isn't one for what it says now."""
    if said is None:
        return ASK
    if said.permission == ALWAYS and said.digest != listed["digest"]:
        return ASK
    return said.permission


def name_for(slug: str, tool: str) -> str:
    """What the model sees: the server's slug and the tool's name; one with odd characters, or too long, gets a mark."""
    whole = f"{slug}__{tool}"
    plain = _ODD.sub("_", whole)
    if plain == whole and len(whole) <= LONGEST_NAME:
        return whole
    return f"{plain[: LONGEST_NAME - _MARK]}_{sha256(whole.encode()).hexdigest()[: _MARK - 1]}"


def _of(server: ToolServer, said: Mapping[str, ToolPermission]) -> Iterator[Offered]:
    for listed in server.tools:
        permission = permission_now(listed, said.get(listed["name"]))
        if permission != NEVER:
            yield Offered(
                name=name_for(server.slug, listed["name"]),
                server=server.slug,
                tool=listed["name"],
                title=f"{listed['title'] or plain(listed['name'], 128) or '?'} in {server.name}",
                description=listed["description"],
                schema=listed["schema"],
                permission=permission,
                digest=listed["digest"],
            )
