"""Signing in to a server with the sign-in that it has itself (OAuth): begun, come back from, ended.

The person goes to the server's own page and comes back to Conch, maybe to another process, so what is under way is a
row: found by the `state` that only they were given, in the session in which they began, once, within ten minutes.
"""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from conch.db import look, step
from conch.models import Person, ToolServer, ToolSignIn
from conch.tools import grants, renewal
from conch.tools.grants import Grant, opened_facts, opened_grant
from conch.tools.launches import Launch, launch_of, sealed
from conch.tools.listing import listing_of
from conch.tools.trouble import ToolTrouble

WITHIN = timedelta(minutes=10)
SAYS_NOTHING = {"sign_in_unreachable", "too_much"}
WANTS = {"signed_out", "sign_in"}  # trouble behind which there may be a sign-in


@dataclass(frozen=True, slots=True)
class Door:
    """Where people come back to, and where Conch says who it is, "" where nobody else could read that."""

    back: str
    document: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """What the person was given where they registered Conch by hand."""

    client_id: str
    secret: str = ""


class Unfinished(Exception):
    """A sign-in that the person came back from came to nothing: of which server, and why."""

    def __init__(self, server: ToolServer, trouble: ToolTrouble) -> None:
        super().__init__(trouble.code)
        self.server, self.trouble = server, trouble


async def wanted(launch: Launch, trouble: ToolTrouble) -> ToolTrouble:
    """What it comes to that a server refused: where it says how to sign in, it wants that. Raises ToolTrouble."""
    refused_for_a_token = trouble.code in WANTS and trouble.facts.get("status", 401) == 401
    if launch.shows_own or not refused_for_a_token:
        return trouble
    try:
        found = await _discovery().place_of(launch.url, trouble.challenge, owner=not launch.public_only)
    except ToolTrouble as other:
        if trouble.code == "signed_out" and other.code in SAYS_NOTHING:
            return trouble  # it hadn't said a word of a sign-in
        raise
    if found is not None:
        return ToolTrouble("sign_in")
    return ToolTrouble("no_sign_in") if trouble.code == "sign_in" else trouble


async def begin(server: ToolServer, door: Door, session: str, now: datetime, client: Client | None = None) -> None:
    """Begin one, in place of any before; `server.person` must be loaded. Raises ToolTrouble.

    "sign_in_stranger" without a reason: the person must register Conch there by hand, and give the `client`.
    """
    launch = launch_of(server)
    kept = launch.grant
    oauth, asking = _oauth(), _asking(launch)
    place = await _discovery().place_of(launch.url, await _challenge(launch), owner=asking.owner)
    if place is None:
        raise ToolTrouble("no_sign_in")
    own = client or _own_of(kept, str(place.metadata.issuer))
    if own is not None:
        shown = oauth.own_client(place, own.client_id, own.secret)
    else:
        shown = await oauth.client_for(asking, place, door.back, door.document)
    if shown is None:
        raise ToolTrouble("sign_in_stranger")
    scope = _scope(place.scope, kept, server.trouble)
    one = oauth.begun(place, shown, door.back, scope, own=own is not None)
    await step(_keep_begun, server.pk, one, session, now)


def address_of(server: ToolServer, session: str, now: datetime) -> str:
    """Where a person who has begun is to go; "" where nothing is under way in that session."""
    row = ToolSignIn.objects.filter(server=server, session=_digest(session), expires_at__gt=now).first()
    try:
        return str(opened_facts(row.sealed)["address"]) if row is not None else ""
    except ToolTrouble:
        return ""


def by_own_client(server: ToolServer) -> bool:
    """Whether the client that is kept is one that the person registered by hand, and may want to change."""
    try:
        grant = opened_grant(server.sealed_sign_in)
    except ToolTrouble:
        return False
    return grant is not None and grant.own_client


async def finish(person: Person, session: str, answer: Mapping[str, str], now: datetime) -> ToolServer | None:
    """Take the person in who comes back; the server, or None where nothing of theirs is under way.

    Whatever the answer, that sign-in is no longer under way. Raises Unfinished.
    """
    taken = await step(_taken, person.pk, answer.get("state", ""), session, now)
    if taken is None:
        return None
    server, sealed_one = taken
    oauth = _oauth()
    try:
        launch = launch_of(server)
        facts = opened_facts(sealed_one)
        one = oauth.Begun(**facts | {"state": "", "grant": Grant(**facts["grant"])})
        grant = await oauth.exchanged(_asking(launch), one, answer, now)
    except ToolTrouble as trouble:
        raise Unfinished(server, trouble) from trouble
    if not await step(grants.keep, server.pk, grant):
        await renewal.revoked(launch, grant)
        return None
    server.sealed_sign_in, server.trouble = grants.sealed_grant(grant), {}
    return server


async def sign_out(server: ToolServer, now: datetime) -> None:
    """Forget the tokens, then have the server forget them too, where it listens; `server.person` must be loaded."""
    try:
        launch = launch_of(server)
    except ToolTrouble:  # it can't be opened any more: nobody can tell the server
        await step(grants.forget, server.pk)
        return
    if launch.grant is None:
        return
    kept = await look(grants.grant_of, server.pk)
    await step(grants.end, server.pk, launch.grant.name, now)
    await renewal.revoked(launch, kept or launch.grant)


async def sign_out_everywhere(person: Person, now: datetime) -> None:
    """The same for all servers of somebody who goes."""
    theirs = ToolServer.objects.filter(person=person, removed_at=None).exclude(sealed_sign_in="")
    servers = await look(lambda: list(theirs.select_related("person")))
    await asyncio.gather(*(sign_out(server, now) for server in servers))


def host_of(server: ToolServer) -> str:
    """The host that a server's sign-in is at, while the person is signed in; else ""."""
    try:
        grant = opened_grant(server.sealed_sign_in)
    except ToolTrouble:
        return ""
    return host_in(str(grant.place["issuer"])) if grant is not None and grant.signed_in else ""


def host_in(address: str) -> str:
    """The host and port of an address, as they are shown."""
    return urlsplit(address).netloc


def is_here(address: str) -> bool:
    """Whether an address is plainly on this computer."""
    return bool(import_module("conch.tools.endpoints").is_loopback(urlsplit(address).hostname or ""))


async def _challenge(launch: Launch) -> str:
    """What the server asks for of somebody who hasn't signed in; "" where it asks for nothing. Raises ToolTrouble."""
    try:
        await listing_of(replace(launch, grant=None))
    except ToolTrouble as trouble:
        if trouble.code not in WANTS:
            raise
        return trouble.challenge
    return ""


def _own_of(kept: Grant | None, issuer: str) -> Client | None:
    """The client that the person registered by hand, where it was at that authorization server."""
    if kept is None or not kept.own_client or kept.place["issuer"] != issuer:
        return None
    return Client(kept.client["client_id"], kept.client.get("client_secret", ""))


def _scope(asked: str, kept: Grant | None, trouble: Mapping[str, Any]) -> str:
    """What the server asks for, and, where that wasn't enough before, what was given then and what was missing."""
    if trouble.get("code") != "sign_in_scope":
        return asked
    words = [*asked.split(), *(kept.scope.split() if kept else ()), *str(trouble.get("scope", "")).split()]
    return " ".join(dict.fromkeys(words))


def _discovery() -> Any:
    return import_module("conch.tools.discovery")


def _oauth() -> Any:
    return import_module("conch.tools.oauth")


def _asking(launch: Launch) -> Any:
    return _oauth().Asking(launch.url, not launch.public_only)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


# Steps: database work only.


def _keep_begun(server_id: int, one: Any, session: str, now: datetime) -> None:
    ToolSignIn.objects.filter(expires_at__lte=now).delete()
    facts = asdict(one)
    state = facts.pop("state")
    kept = {
        "digest": _digest(state),
        "session": _digest(session),
        "sealed": sealed(facts),
        "expires_at": now + WITHIN,
    }
    ToolSignIn.objects.update_or_create(server_id=server_id, defaults=kept)


def _taken(person_id: int, state: str, session: str, now: datetime) -> tuple[ToolServer, str] | None:
    """What was begun with that state, by that person, in that session: taken away, so that it is there once."""
    mine = ToolSignIn.objects.filter(server__person_id=person_id, server__removed_at=None, expires_at__gt=now)
    row = mine.filter(digest=_digest(state)).select_related("server__person").first()
    if row is None or not hmac.compare_digest(row.session, _digest(session)):
        return None
    # The deletion decides: of two who come at once, one gets on.
    return (row.server, row.sealed) if ToolSignIn.objects.filter(pk=row.pk).delete()[0] else None
