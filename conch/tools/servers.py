"""Connecting servers and what becomes of them: listed again, renamed, told other secrets, removed.

A server is a program or an address. A program is the owner's alone to connect: it runs on their machine as they do.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.text import slugify

from conch import reread
from conch.accounts import addresses
from conch.db import look, step
from conch.models import Agent, Conversation, Person, ToolPermission, ToolServer, ToolSignIn
from conch.tools import signing_in
from conch.tools.launches import Launch, launch_of, sealed
from conch.tools.listing import Listing, listing_of
from conch.tools.offers import ALWAYS, permission_now, permit
from conch.tools.trouble import ToolTrouble

MOST = 30  # servers of one person
SLUG = 24  # characters
TAKEN = ("connect",)  # of Settings' own addresses

Kind = ToolServer.Kind


class CantConnect(Exception):
    """The server can't be connected; says why. `about`: the field that it is about, if any."""

    def __init__(self, said: str, about: str = "") -> None:
        super().__init__(said)
        self.about = about


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person says of a server: a command's words or an address, and its environment or headers."""

    name: str
    kind: Kind
    command: tuple[str, ...] = ()
    url: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def words_of(command: str) -> tuple[str, ...]:
    """The words of a command line, read as a shell would, which isn't asked. Raises CantConnect."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise CantConnect("A quotation mark has no end.", "command") from error
    if not words or not words[0] or "\0" in command:
        raise CantConnect("Write the program and its words, as in: uvx mcp-server-time", "command")
    return words


async def connect(person: Person, wish: Wish, now: datetime) -> ToolServer:
    """Connect a server: ask it for its tools and keep it. Raises CantConnect, ToolTrouble.

    One that wants the person to sign in is kept as well, without tools, and its trouble says so.
    """
    if wish.kind is Kind.STDIO and not person.is_owner:
        raise CantConnect("Only the owner of this machine may connect programs.")
    url = await _checked(person, wish.url) if wish.kind is Kind.HTTP else ""
    await look(_refuse_known, person, wish, url)
    facts = _facts(wish, url)
    try:
        found = await _listed(launch_of(ToolServer(person=person, **facts)))
    except ToolTrouble as trouble:
        if trouble.code != "sign_in":
            raise
        found, facts = Listing(()), facts | {"trouble": trouble.as_kept()}
    return await step(_keep, person, facts, found, now)


async def check(server: ToolServer, now: datetime) -> bool:
    """Ask a server for its tools anew; False, and what is known stays, where it can't be asked.

    `server.person` must be loaded.
    """
    try:
        found = await _listed(launch_of(server))
    except ToolTrouble as trouble:
        await step(keep_trouble, server.pk, trouble.as_kept(), now)
        return False
    await step(keep_listing, server.pk, found, now)
    return True


async def _listed(launch: Launch) -> Listing:
    """What it lists. Raises ToolTrouble, which says whether the person is to sign in."""
    try:
        return await listing_of(launch)
    except ToolTrouble as trouble:
        raise await signing_in.wanted(launch, trouble) from trouble


def keep_trouble(server_id: int, trouble: dict[str, Any], now: datetime) -> None:
    """Why the server couldn't be reached, or nothing where it could. A step."""
    ToolServer.objects.filter(pk=server_id, removed_at=None).update(trouble=trouble, tried_at=now)


def rename(server: ToolServer, name: str) -> None:
    """Another name for people; the slug stays."""
    ToolServer.objects.filter(pk=server.pk).update(name=name)


def tell(server: ToolServer, secrets: Mapping[str, str]) -> None:
    """Another environment, or other headers, in place of all that it had."""
    which = "sealed_environment" if server.kind == Kind.STDIO else "sealed_headers"
    ToolServer.objects.filter(pk=server.pk).update(**{which: sealed(secrets)})


def permit_all(server: ToolServer, said: Mapping[str, str], seen: Mapping[str, str]) -> bool:
    """What the person said of some of its tools; those that weren't listed aren't there.

    `seen`: the digest of each as they saw it. An "always" to a tool that says something else of itself by now isn't
    kept: False then.
    """
    whole = True
    kept = {row.tool: row for row in server.permissions.all()}
    listed = {tool["name"]: tool for tool in server.tools}
    for tool, permission in said.items():
        before = permission_now(listed[tool], kept.get(tool)) if tool in listed else permission
        if permission not in ToolPermission.Permission.values or permission == before:
            continue
        if permission == ALWAYS and listed[tool]["digest"] != seen.get(tool):
            whole = False
        else:
            permit(server, tool, permission)
    return whole


def remove(server: ToolServer, now: datetime) -> None:
    """Turn it off everywhere, forget its secrets, its tools and what was allowed; the slug stays its own."""
    for kept in (Conversation, Agent):
        for pk, tools in kept.objects.filter(person_id=server.person_id).exclude(tools=[]).values_list("pk", "tools"):
            if server.slug in tools:
                kept.objects.filter(pk=pk).update(tools=[slug for slug in tools if slug != server.slug])
    server.permissions.all().delete()
    ToolSignIn.objects.filter(server=server).delete()
    secrets = dict.fromkeys(("sealed_environment", "sealed_headers", "sealed_sign_in"), "")
    forgotten = secrets | {"tools": [], "trouble": {}, "left_out": 0}
    ToolServer.objects.filter(pk=server.pk).update(removed_at=now, **forgotten)


async def _checked(person: Person, url: str) -> str:
    try:
        return await addresses.checked(url, owner=person.is_owner, what="address")
    except addresses.BadAddress as error:
        raise CantConnect(str(error), "url") from error


def _facts(wish: Wish, url: str) -> dict[str, Any]:
    which = "sealed_environment" if wish.kind is Kind.STDIO else "sealed_headers"
    told = {"command": list(wish.command), "url": url, which: sealed(wish.secrets)}
    return {"name": wish.name, "kind": wish.kind.value, **told}


# Steps: database work only.


def _refuse_known(person: Person, wish: Wish, url: str) -> None:
    mine = ToolServer.objects.filter(person=person, removed_at=None)
    if mine.count() >= MOST:
        raise CantConnect(f"There are {MOST} servers already. Remove one that isn’t needed.")
    known = mine.filter(kind=wish.kind, command=list(wish.command), url=url).first()
    if known is not None:
        raise CantConnect(f"This server is connected already, as {known.name}.")


def _keep(person: Person, facts: dict[str, Any], found: Listing, now: datetime) -> ToolServer:
    """Write it down: the row that this very server had, else a new one with a slug of its own."""
    mine = ToolServer.objects.filter(person=person)
    known = mine.filter(kind=facts["kind"], command=facts["command"], url=facts["url"]).first()
    facts |= {"tools": list(found.tools), "left_out": found.left_out, "tried_at": now, **reread.read(now)}
    if facts.get("trouble"):  # nothing was listed, and nothing will be before the person has signed in
        facts |= {"listed_at": None, "list_pause_until": now + reread.LONGEST_PAUSE}
    if known is None:
        slug = _free_slug(facts["name"], {*mine.values_list("slug", flat=True), *TAKEN})
        return ToolServer.objects.create(person=person, slug=slug, created_at=now, **facts)
    if known.removed_at is None:
        raise CantConnect(f"This server is connected already, as {known.name}.")
    mine.filter(pk=known.pk).update(removed_at=None, created_at=now, **facts)
    return ToolServer.objects.get(pk=known.pk)


def keep_listing(server_id: int, found: Listing, now: datetime) -> None:
    """What the server lists now. A step."""
    facts = {"tools": list(found.tools), "left_out": found.left_out, "tried_at": now, **reread.read(now)}
    # One that was removed while it was asked stays without its tools.
    ToolServer.objects.filter(pk=server_id, removed_at=None).update(trouble={}, **facts)


def _free_slug(name: str, used: set[str]) -> str:
    base = slugify(name)[:SLUG].strip("-_").replace("_", "-") or "tools"
    numbered = (f"{base[: SLUG - 3].rstrip('-')}-{number}" for number in range(2, 1000))
    return next(slug for slug in (base, *numbered) if slug not in used)
