"""What is kept of a sign-in to a server, sealed as a whole: where it was, as whom Conch asks there, and the tokens."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from conch.accounts import seal
from conch.models import ToolServer, ToolSignIn
from conch.tools.trouble import ToolTrouble


@dataclass(frozen=True, slots=True)
class Grant:
    """A sign-in as it is kept; once it has ended, without tokens. Tokens and the client's secret are never in a repr.

    `name` is this one sign-in's alone. `place`: what the authorization server says of itself (RFC 8414), `client` what
    it knows Conch as (RFC 7591), `resource` what the tokens are good for (RFC 8707).
    `own_client`: the person registered that client by hand. `runs_out`: seconds since 1970; None where nobody said.
    """

    name: str
    place: Mapping[str, Any]
    client: Mapping[str, Any] = field(repr=False)
    resource: str
    own_client: bool = False
    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    scope: str = ""
    runs_out: float | None = None

    @property
    def signed_in(self) -> bool:
        """Whether there is anything to ask with."""
        return bool(self.access_token)

    def has_run_out(self, now: datetime) -> bool:
        """Whether the access token isn't worth sending any more."""
        return self.runs_out is not None and now.timestamp() >= self.runs_out

    def ended(self) -> "Grant":
        """The same without its tokens."""
        return replace(self, access_token="", refresh_token="", scope="", runs_out=None)


def sealed_grant(grant: Grant) -> str:
    """As it may be written down."""
    return seal.seal(json.dumps(asdict(grant)))


def opened_grant(kept: str) -> Grant | None:
    """The sign-in again; None where there was none. Raises ToolTrouble."""
    found = opened_facts(kept)
    return Grant(**found) if found else None


def opened_facts(kept: str) -> dict[str, Any]:
    """Anything that was sealed as JSON. Raises ToolTrouble."""
    try:
        found: dict[str, Any] = json.loads(seal.unseal(kept)) if kept else {}
    except seal.CantUnseal as error:
        raise ToolTrouble("sealed") from error
    return found


def grant_of(server_id: int) -> Grant | None:
    """What is kept of a server's sign-in now; nothing of a removed one. Reads only. Raises ToolTrouble."""
    kept = ToolServer.objects.filter(pk=server_id, removed_at=None).values_list("sealed_sign_in", flat=True).first()
    return opened_grant(kept or "")


# Steps: database work only.


def keep(server_id: int, grant: Grant) -> bool:
    """Keep a new sign-in; whether its server was still there."""
    kept = {"sealed_sign_in": sealed_grant(grant), "trouble": {}}
    return bool(ToolServer.objects.filter(pk=server_id, removed_at=None).update(**kept))


def replace_tokens(server_id: int, grant: Grant) -> bool:
    """Keep a sign-in's new tokens; whether it hadn't been ended, or begun anew, meanwhile."""
    now = grant_of(server_id)
    if now is None or now.name != grant.name or not now.signed_in:
        return False
    ToolServer.objects.filter(pk=server_id).update(sealed_sign_in=sealed_grant(grant))
    return True


def forget(server_id: int) -> None:
    """Forget all of a sign-in, also one that can't be opened any more."""
    ToolServer.objects.filter(pk=server_id).update(sealed_sign_in="")
    ToolSignIn.objects.filter(server_id=server_id).delete()


def end(server_id: int, name: str, now: datetime) -> None:
    """Forget the tokens of that sign-in, unless another has taken its place; its server says so from then on."""
    kept = grant_of(server_id)
    if kept is not None and kept.name == name:
        over = {"trouble": {"code": "sign_in_over"}, "tried_at": now, "sealed_sign_in": sealed_grant(kept.ended())}
        ToolServer.objects.filter(pk=server_id).update(**over)
        ToolSignIn.objects.filter(server_id=server_id).delete()
