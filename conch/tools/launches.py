"""From a connected server's row to what it takes to speak to it, its secrets opened."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from conch.accounts import seal
from conch.models import ToolPermission, ToolServer
from conch.tools.grants import Grant, opened_facts, opened_grant
from conch.tools.trouble import ToolTrouble


@dataclass(frozen=True, slots=True)
class Launch:
    """One server as it is spoken to. `secrets`: what goes into its environment, or its headers; never in a repr.

    `key` tells whether an open session is of this very server, as it is set up now. `public_only`: only addresses of
    the internet may be connected to. `troubled`: it couldn't be reached at the last try.
    `server`: the row's id, 0 before it has one. `grant`: what is kept of a sign-in to it, maybe one that has ended.
    """

    key: str
    server: int
    kind: str
    command: tuple[str, ...] = ()
    url: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    public_only: bool = True
    troubled: bool = False
    grant: Grant | None = None

    @property
    def shows_own(self) -> bool:
        """Whether the person gave it a header that says who asks: then no sign-in of ours is sent, or looked for."""
        return any(name.lower() == "authorization" for name in self.secrets)


def launch_of(server: ToolServer) -> Launch:
    """What it takes to speak to it; `server.person` must be loaded. Raises ToolTrouble.

    A program is started for the owner of the machine alone, whatever a row says.
    """
    stdio = server.kind == ToolServer.Kind.STDIO
    if stdio and not server.person.is_owner:
        raise ToolTrouble("owner_only")
    sealed = server.sealed_environment if stdio else server.sealed_headers
    grant = opened_grant(server.sealed_sign_in)
    told = json.dumps([server.pk, server.kind, server.command, server.url, sealed, _name(grant)])
    return Launch(
        key=sha256(told.encode()).hexdigest(),
        server=server.pk or 0,
        kind=server.kind,
        command=tuple(server.command),
        url=server.url,
        secrets=opened(sealed),
        public_only=not server.person.is_owner,
        troubled=bool(server.trouble),
        grant=grant,
    )


def _name(grant: Grant | None) -> str:
    """Tells one sign-in from another, not its tokens: a session goes on when they are renewed."""
    return grant.name if grant is not None and grant.signed_in else ""


def launch_for_call(person_id: int, slug: str, tool: str) -> Launch:
    """The same for a call that is about to run: the server is still there, and the tool isn't never to be used."""
    server = ToolServer.objects.select_related("person").filter(person_id=person_id, slug=slug, removed_at=None).first()
    if server is None:
        raise ToolTrouble("gone")
    never = ToolPermission.Permission.NEVER
    if ToolPermission.objects.filter(server=server, tool=tool, permission=never).exists():
        raise ToolTrouble("never")
    return launch_of(server)


def names_told(server: ToolServer) -> list[str]:
    """The names, never the values, of what a server was told in secret; nothing where it can't be opened any more."""
    try:
        return list(opened(server.sealed_environment or server.sealed_headers))
    except ToolTrouble:
        return []


def sealed(secrets: Mapping[str, str]) -> str:
    """Names with their values as they may be written down."""
    return seal.seal(json.dumps(dict(secrets))) if secrets else ""


def opened(kept: str) -> dict[str, str]:
    """Names with their values again. Raises ToolTrouble."""
    return opened_facts(kept)
