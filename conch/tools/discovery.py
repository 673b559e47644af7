"""Where a server has people sign in: found as the official client finds it (RFC 9728, RFC 8414), and looked at hard.

The server's own word is what leads there, so nothing of it is taken on trust: the resource must be this server, the
issuer the one that was named, every address one that may be (conch/tools/endpoints.py), and the code protected (PKCE).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth import utils as official
from mcp.shared.auth import DEFAULT_GRANT_TYPES, OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

from conch.tools.endpoints import Ask, allowed, endpoints, hold
from conch.tools.trouble import ToolTrouble

WITHIN = 30.0  # seconds for all that is asked
LONGEST_SCOPE = 2000  # characters


@dataclass(frozen=True, slots=True)
class Place:
    """An authorization server that was found; `resource`: what tokens are asked for; `scope`: "" to leave that open."""

    metadata: OAuthMetadata
    resource: str
    scope: str


async def place_of(server: str, challenge: str, *, owner: bool) -> Place | None:
    """Where that server has people sign in; None where it doesn't say.

    `challenge`: its WWW-Authenticate. Raises ToolTrouble for what it says and may not.
    """
    refused = httpx2.Response(401, headers={"WWW-Authenticate": challenge})
    try:
        async with asyncio.timeout(WITHIN), endpoints(server, owner=owner) as ask:
            resource = await _resource(ask, server, refused, owner=owner)
            metadata = await _metadata(ask, server, resource, owner=owner)
    except TimeoutError as error:
        raise ToolTrouble("sign_in_unreachable", host=urlsplit(server).hostname or "") from error
    if metadata is None:
        return None
    _looked_at(metadata, server, owner=owner)
    scope = official.get_client_metadata_scopes(
        official.extract_scope_from_www_auth(refused), resource, metadata, DEFAULT_GRANT_TYPES
    )
    asked_for = str(resource.resource) if resource else resource_url_from_server_url(server)
    return Place(metadata, asked_for, (scope or "")[:LONGEST_SCOPE])


async def _resource(
    ask: Ask, server: str, refused: httpx2.Response, *, owner: bool
) -> ProtectedResourceMetadata | None:
    named = official.extract_resource_metadata_from_www_auth(refused)
    if named:
        hold(named, server, owner=owner)
    for address in official.build_protected_resource_metadata_discovery_urls(named, server):
        if not allowed(address, server, owner=owner):
            continue  # one made of the server's own address: it has no sign-in that could be used
        response = await ask(official.create_oauth_metadata_request(address))
        found = await official.handle_protected_resource_response(response)
        if found is not None:
            if not check_resource_allowed(resource_url_from_server_url(server), str(found.resource)):
                raise ToolTrouble("sign_in_odd", what="resource")
            return found
    return None


async def _metadata(
    ask: Ask, server: str, resource: ProtectedResourceMetadata | None, *, owner: bool
) -> OAuthMetadata | None:
    named = str(resource.authorization_servers[0]) if resource else None
    if named:
        hold(named, server, owner=owner)
    for address in official.build_oauth_authorization_server_metadata_discovery_urls(named, server):
        if not allowed(address, server, owner=owner):
            continue
        response = await ask(official.create_oauth_metadata_request(address))
        goes_on, found = await official.handle_auth_metadata_response(response)
        if found is not None:
            _same_issuer(found, named, server)
            return found
        if not goes_on:
            break
    if named:
        raise ToolTrouble("sign_in_odd", what="metadata")
    return None


def _same_issuer(found: OAuthMetadata, named: str | None, server: str) -> None:
    """The metadata is of whom it was asked for: the one named, or, of an old server, the server's own origin."""
    try:
        if named is not None:
            official.validate_metadata_issuer(found, named)
            return
    except OAuthFlowError as error:
        raise ToolTrouble("sign_in_odd", what="issuer") from error
    parts = urlsplit(server)
    if not official.issuers_match(str(found.issuer), f"{parts.scheme}://{parts.netloc}"):
        raise ToolTrouble("sign_in_odd", what="issuer")


def _looked_at(metadata: OAuthMetadata, server: str, *, owner: bool) -> None:
    for address in _addresses(metadata):
        hold(address, server, owner=owner)
    # A server that doesn't name it doesn't protect the code, says the protocol, and is not to be gone on with.
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise ToolTrouble("sign_in_odd", what="pkce")


def _addresses(metadata: OAuthMetadata) -> Iterator[str]:
    named = (
        metadata.issuer,
        metadata.authorization_endpoint,
        metadata.token_endpoint,
        metadata.registration_endpoint,
        metadata.revocation_endpoint,
    )
    return (str(address) for address in named if address is not None)
