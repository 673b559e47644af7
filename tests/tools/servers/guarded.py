"""A server that wants people to sign in, with the authorization server that it names: both the official SDK's.

`with guarded() as site` runs it in a thread of the test, which can look at what it was asked and have it change its
mind. Its sign-in page has two links: to allow, and to refuse.
"""

import asyncio
import json
import secrets
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from urllib.parse import parse_qs

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from conch.tools.grants import Grant, sealed_grant
from conch.tools.listing import kept_of
from tests.tools.site import server_of

BACK = "http://127.0.0.1:8765/settings/tools/connect/signed-in"
METADATA = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
PAGE = """<!doctype html><html lang="en"><title>Sign in</title><link rel="icon" href="data:,">
<h1>May Conch read your books?</h1>
<p><a href="/consent/allow?id={id}">Allow</a> <a href="/consent/refuse?id={id}">Refuse</a></p></html>"""


class Keeper(OAuthAuthorizationServerProvider):
    """Who gives out tokens. `lasts`: seconds that one is good for; `renews`: whether it takes refresh tokens."""

    def __init__(self, base):
        self.base = base
        self.clients, self.waiting, self.codes, self.access, self.refresh = {}, {}, {}, {}, {}
        self.lasts, self.renews, self.who = 3600, True, "ada"
        self.gate, self.begun = threading.Event(), threading.Event()
        self.gate.set()
        self.asked_for, self.renewed, self.revoked = [], [], []

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        name = secrets.token_hex(16)
        self.waiting[name] = (client.client_id, params)
        self.asked_for.append(params)
        return f"{self.base}/consent?id={name}"

    def led_back(self, name, *, allow):
        client_id, params = self.waiting.pop(name)
        back, state = str(params.redirect_uri), params.state
        if not allow:
            return construct_redirect_uri(back, error="access_denied", error_description="Not today", state=state)
        code = AuthorizationCode(
            code=secrets.token_hex(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 600,
            client_id=client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
            subject=self.who,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=state, iss=self.base)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.gives(client.client_id, authorization_code)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        self.renewed.append(refresh_token.token)
        if not self.renews:
            raise TokenError("invalid_grant", "Signed out here")
        del self.refresh[refresh_token.token]  # good once
        return self.gives(client.client_id, refresh_token)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.revoked.append(token.token)
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def gives(self, client_id, by):
        shared = {"client_id": client_id, "scopes": by.scopes, "resource": by.resource, "subject": by.subject}
        access, refresh = f"access-{secrets.token_hex(32)}", f"refresh-{secrets.token_hex(32)}"
        self.access[access] = AccessToken(token=access, **shared)
        self.refresh[refresh] = RefreshToken(token=refresh, **shared)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lasts, scope=" ".join(by.scopes))


@dataclass
class Site:
    """Where it is, who gives out tokens, and what it was asked: (method, path, headers).

    `changes` by path: what is said there otherwise, None where nothing is there, or a status with headers.
    """

    base: str
    keeper: Keeper
    tools: tuple = ()
    changes: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    forms: list = field(default_factory=list)  # of those who asked for tokens

    @property
    def url(self):
        return f"{self.base}/mcp"

    def grant(self, who="ada", **facts):
        """A sign-in as Conch keeps it, with tokens that are good here."""
        self.knows("conch", "hush", BACK)
        by = SimpleNamespace(scopes=["books"], resource=self.url, subject=who)
        tokens = self.keeper.gives("conch", by)
        place = {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "revocation_endpoint": f"{self.base}/revoke",
        }
        given = {
            "name": secrets.token_hex(8),
            "place": place,
            "client": {
                "client_id": "conch",
                "client_secret": "hush",
                "token_endpoint_auth_method": "client_secret_post",
            },
            "resource": self.url,
            "access_token": tokens.access_token,
            "refresh_token": tokens.refresh_token,
            "scope": "books",
        }
        return Grant(**given | facts)

    def server_of(self, person, grant=None):
        """This server as that person's, signed in to."""
        kept = sealed_grant(grant or self.grant())
        return server_of(person, "Books", url=self.url, sealed_sign_in=kept, tools=self.tools)

    def knows(self, client_id, secret, back):
        """A client that somebody registered there by hand."""
        self.keeper.clients[client_id] = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[back],
            token_endpoint_auth_method="client_secret_post",
            scope="books",
        )


def server_at(base, keeper):
    """Books, for whoever has a token of that keeper's for this very address."""
    settings = AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        required_scopes=["books"],
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["books", "shelves"]),
        revocation_options=RevocationOptions(enabled=True),
        validate_token_resource=True,
    )
    server = MCPServer("books", auth=settings, auth_server_provider=keeper)

    @server.tool(title="who am I")
    async def who() -> str:
        """Whose token this is, as soon as the gate is open."""
        keeper.begun.set()
        await asyncio.to_thread(keeper.gate.wait, 20)
        return get_access_token().subject

    return server


def changed(application, site):
    """The application as the test wants it, with the page on which people allow and refuse."""

    async def outer(scope, receive, send):
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        path, query = scope["path"], parse_qs(scope["query_string"].decode())
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        site.asked.append((scope["method"], path, headers))
        answer = application
        if path == "/token":
            receive = await _noted(receive, site)
        if path == "/consent":
            answer = HTMLResponse(PAGE.format(id=query["id"][0]))
        elif path.startswith("/consent/"):
            answer = RedirectResponse(site.keeper.led_back(query["id"][0], allow=path.endswith("allow")), 302)
        elif path in site.changes:
            answer = await _said(application, scope, receive, site.changes[path])
        await answer(scope, receive, send)

    return outer


async def _noted(receive, site):
    """What comes, to be read once more: the form is kept for the test."""
    message = await receive()
    site.forms.append({name: values[0] for name, values in parse_qs(message["body"].decode()).items()})
    told = iter([message])

    async def again():
        return next(told, None) or await receive()

    return again


async def _said(application, scope, receive, change):
    """What it says there, changed."""
    body = bytearray()

    async def collect(message):
        body.extend(message.get("body", b""))

    if change is None:
        return JSONResponse({"error": "no such page"}, 404)
    if isinstance(change, tuple):
        status, told = change
        return JSONResponse({"error": "not now"}, status, told)
    await application(scope, receive, collect)
    told = {name: value for name, value in (json.loads(body) | change).items() if value is not None}
    return JSONResponse(told)


@contextmanager
def guarded(**changes):
    """The server, running; with METADATA and RESOURCE changed from the start."""
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    paths = {"metadata": METADATA, "resource": RESOURCE}
    keeper = Keeper(base)
    server = server_at(base, keeper)
    with ThreadPoolExecutor(1) as elsewhere:  # the test may have a loop here
        tools = kept_of(elsewhere.submit(asyncio.run, server.list_tools()).result()).tools
    site = Site(base, keeper, tools, {paths[name]: change for name, change in changes.items()})
    application = changed(server.streamable_http_app(), site)
    config = uvicorn.Config(application, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        running.should_exit = True
        thread.join(10)
        listening.close()
