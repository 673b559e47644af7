"""What is asked of an authorization server: to know Conch, to give out tokens, to renew and revoke them.

Of the official client its parts: how it registers, reads answers and shows who it is. Its whole flow waits in one place
for the person to come back; here they do so to another request, maybe to another process, and renewing is held to one
at a time across all (docs/decisions/0022). Imported on first use.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError, PKCEParameters, TokenStorage
from mcp.client.auth import utils as official
from mcp.client.auth.oauth2 import OAuthContext, check_registration_usable
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl

from conch.tools.discovery import Place
from conch.tools.endpoints import endpoints, is_loopback
from conch.tools.grants import Grant
from conch.tools.listing import plain
from conch.tools.trouble import ToolTrouble

NAME = "Conch"
EARLY = 30.0  # seconds before the end at which a token isn't used any more
LONGEST_LIFE = 10 * 365 * 24 * 3600  # seconds
KEPT = {
    *("issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint"),
    *("token_endpoint_auth_methods_supported", "authorization_response_iss_parameter_supported"),
}
REFUSED = {400, 401, 403}  # of a renewal: it is over. Anything else may be better in a while

_TOKEN = re.compile(r"[\x21-\x7e]{1,20000}")  # what a header can carry


@dataclass(frozen=True, slots=True)
class Asking:
    """Which server it is for, and whether its person may reach inside: what every request here is held to."""

    server: str
    owner: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """A person is sent to `address`; the rest is for when they come back. `grant` has no tokens yet."""

    address: str
    state: str
    verifier: str
    back: str
    grant: Grant


async def client_for(asking: Asking, place: Place, back: str, document: str) -> OAuthClientInformationFull | None:
    """As whom Conch asks: registered there anew, or by a document of its own; None where the person must register it.

    A registration is asked for at each sign-in: one that the server has forgotten would end at a page of its own.
    `document`: where Conch says of itself who it is, "" where nobody else could read it. Raises ToolTrouble.
    """
    if place.metadata.registration_endpoint is not None:
        wanted = OAuthClientMetadata(
            client_name=NAME,
            redirect_uris=[AnyUrl(back)],
            scope=place.scope or None,
            token_endpoint_auth_method=cast(Any, _method(place.metadata, secret=False)),
            application_type="native" if is_loopback(urlsplit(back).hostname or "") else "web",
        )
        async with endpoints(asking.server, owner=asking.owner) as ask:
            response = await ask(official.create_client_registration_request(place.metadata, wanted, ""))
        return await _registered(response)
    if official.should_use_client_metadata_url(place.metadata, document):
        return official.create_client_info_from_metadata_url(document, [AnyUrl(back)])
    return None


def own_client(place: Place, client_id: str, secret: str) -> OAuthClientInformationFull:
    """A client that the person registered there by hand."""
    method = _method(place.metadata, secret=bool(secret))
    return OAuthClientInformationFull(
        client_id=client_id, client_secret=secret or None, token_endpoint_auth_method=method
    )


def begun(place: Place, client: OAuthClientInformationFull, back: str, scope: str, *, own: bool) -> Begun:
    """A sign-in that begins: where the person is sent. Each has a state, a verifier and a name of its own."""
    pkce, state = PKCEParameters.generate(), token_hex(32)
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": back,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": place.resource,
        **({"scope": scope} if scope else {}),
        **({"prompt": "consent"} if "offline_access" in scope.split() else {}),
    }
    at = urlsplit(str(place.metadata.authorization_endpoint))
    theirs = [pair for pair in parse_qsl(at.query, keep_blank_values=True) if pair[0] not in query]
    grant = Grant(
        name=token_hex(16),
        place=place.metadata.model_dump(mode="json", include=KEPT, exclude_none=True),
        client=client.model_dump(
            mode="json", include={"client_id", "client_secret", "token_endpoint_auth_method"}, exclude_none=True
        ),
        resource=place.resource,
        own_client=own,
        scope=scope,
    )
    address = urlunsplit(at._replace(query=urlencode([*theirs, *query.items()]), fragment=""))
    return Begun(address, state, pkce.code_verifier, back, grant)


async def exchanged(asking: Asking, one: Begun, answer: Mapping[str, str], now: datetime) -> Grant:
    """The sign-in with its tokens, for what the person came back with. Raises ToolTrouble."""
    if answer.get("error"):
        words = answer.get("error_description") or answer["error"]
        raise ToolTrouble("sign_in_refused", said=plain(words, 200))
    try:
        # Another authorization server than the one asked may have sent them back (RFC 9207).
        official.validate_authorization_response_iss(answer.get("iss"), OAuthMetadata.model_validate(one.grant.place))
    except OAuthFlowError as error:
        raise ToolTrouble("sign_in_odd", what="issuer") from error
    told = {
        "grant_type": "authorization_code",
        "code": answer.get("code", ""),
        "redirect_uri": one.back,
        "code_verifier": one.verifier,
    }
    response = await _asked_for_tokens(asking, one.grant, told)
    if response.status_code not in {200, 201}:
        raise ToolTrouble("sign_in_refused", said=_said(response))
    return await _with_tokens(one.grant, response, now)


async def renewed(asking: Asking, grant: Grant, now: datetime) -> Grant | None:
    """The sign-in with new tokens; None where it is over. Raises ToolTrouble where it may be better in a while."""
    if not grant.refresh_token:
        return None
    host = urlsplit(str(grant.place["token_endpoint"])).hostname
    try:
        response = await _asked_for_tokens(
            asking, grant, {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
        )
    except ToolTrouble as trouble:
        raise ToolTrouble("sign_in_late", host=host) from trouble
    if response.status_code in REFUSED:
        return None
    if response.status_code != 200:
        raise ToolTrouble("sign_in_late", host=host, status=response.status_code)
    return await _with_tokens(grant, response, now)


async def revoked(asking: Asking, grant: Grant) -> None:
    """Say that its tokens are good for nothing any more, where the server listens to that. Raises ToolTrouble."""
    address = str(grant.place.get("revocation_endpoint") or "")
    if not address or not grant.signed_in:
        return
    told = [("refresh_token", grant.refresh_token), ("access_token", grant.access_token)]
    async with endpoints(asking.server, owner=asking.owner) as ask:
        for hint, token in told:
            if token:
                await ask(_posted(address, grant, {"token": token, "token_type_hint": hint}))


def _method(metadata: OAuthMetadata, *, secret: bool) -> str | None:
    """How a client shows who it is there: by nothing where that will do, else by its secret."""
    known = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    ways = ("client_secret_post", "client_secret_basic") if secret else ("none", "client_secret_post")
    return next((way for way in (*ways, "client_secret_basic") if way in known), None if not secret else ways[0])


async def _registered(response: httpx2.Response) -> OAuthClientInformationFull:
    try:
        client = await official.handle_registration_response(response)
        check_registration_usable(client)
    except OAuthRegistrationError:
        raise ToolTrouble("sign_in_stranger", said=_said(response)) from None  # it quotes what came
    return client


async def _asked_for_tokens(asking: Asking, grant: Grant, told: dict[str, str]) -> httpx2.Response:
    request = _posted(str(grant.place["token_endpoint"]), grant, told | {"resource": grant.resource})
    async with endpoints(asking.server, owner=asking.owner) as ask:
        return await ask(request)


def _posted(address: str, grant: Grant, told: dict[str, str]) -> httpx2.Request:
    client = OAuthClientInformationFull.model_validate(grant.client)
    shown = OAuthContext(
        server_url=grant.resource,
        client_metadata=OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/")]),
        storage=cast(TokenStorage, None),  # nothing of this asks it
        redirect_handler=None,
        callback_handler=None,
        client_info=client,
    )
    try:
        data, headers = shown.prepare_token_auth({**told, "client_id": client.client_id}, {})
    except OAuthTokenError as error:
        raise ToolTrouble("sign_in_odd", what="client") from error
    return httpx2.Request("POST", address, data=data, headers=headers)


async def _with_tokens(grant: Grant, response: httpx2.Response, now: datetime) -> Grant:
    """Its tokens as they were given; what wasn't given anew stays. An error never quotes what came: it may be one."""
    try:
        tokens: OAuthToken = await official.handle_token_response_scopes(response)
    except OAuthTokenError:
        raise ToolTrouble("sign_in_odd", what="tokens") from None
    if not _TOKEN.fullmatch(tokens.access_token) or len(tokens.refresh_token or "") > 20_000:
        raise ToolTrouble("sign_in_odd", what="tokens")
    return replace(
        grant,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or grant.refresh_token,
        scope=tokens.scope or grant.scope,
        runs_out=_runs_out(tokens.expires_in, now),
    )


def _runs_out(lasts: int | None, now: datetime) -> float | None:
    if lasts is None:
        return None
    lasts = min(max(lasts, 0), LONGEST_LIFE)
    return now.timestamp() + lasts - min(EARLY, lasts / 2)


def _said(response: httpx2.Response) -> str:
    """What it gives as a reason, on one line (RFC 6749 5.2); else its status."""
    try:
        found = json.loads(response.content)
    except (ValueError, RecursionError):
        found = None
    words = (found.get("error_description") or found.get("error")) if isinstance(found, dict) else None
    return plain(str(words), 200) if words else str(response.status_code)
