"""Signing in to a tool server by its own sign-in page: begun here, done there, and come back from; and signing out."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from conch.accounts.addresses import is_inside
from conch.copy import tools as copy
from conch.models import ToolServer
from conch.tools import servers, signing_in
from conch.tools.servers import Kind
from conch.tools.signing_in import Client, Door, Unfinished
from conch.tools.trouble import ToolTrouble
from settings_ui.tool_forms import ClientForm
from settings_ui.tools import PAGE, own
from settings_ui.viewing import HttpRequest, page, visit

LONGEST = 8000  # characters of what somebody comes back with
ANSWER = ("state", "code", "iss", "error", "error_description")
OVER = "No sign-in of yours that leads back here is under way in this browser. Begin it again."


@never_cache
@sensitive_post_parameters("secret")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest, slug: str) -> HttpResponse:
    """Begin one, maybe with a client that the person registered; then the page that leads to the server's own."""
    here = visit(request)
    server = own(here.person, slug)
    if server.kind != Kind.HTTP:
        raise Http404
    if request.method == "POST":
        if "client_id" not in request.POST:
            return begin(request, server)
        form = ClientForm(request.POST)
        return begin(request, server, form.client()) if form.is_valid() else show(request, server, form=form)
    address = signing_in.address_of(server, session_of(request), here.viewer.now)
    if not address:
        return redirect("settings-tool-server", slug=server.slug)
    return show(request, server, address, form=ClientForm() if signing_in.by_own_client(server) else None)


def begin(request: HttpRequest, server: ToolServer, client: Client | None = None) -> HttpResponse:
    """Begin one; where the server takes no strangers, ask what the person was given there."""
    here = visit(request)
    try:
        async_to_sync(signing_in.begin)(server, door_of(request), session_of(request), here.viewer.now, client)
    except ToolTrouble as trouble:
        said = copy.why(trouble.as_kept(), beside_it=True)
        if trouble.code == "sign_in_stranger":
            return show(request, server, trouble=said, form=ClientForm())
        messages.error(request, f"{server.name} can’t be signed in to. {said}")
        return redirect("settings-tool-server", slug=server.slug)
    return redirect("settings-tool-sign-in", slug=server.slug)


def show(
    request: HttpRequest, server: ToolServer, address: str = "", *, trouble: str = "", form: ClientForm | None = None
) -> HttpResponse:
    """The page: where to go, or what to write first."""
    context: dict[str, Any] = {
        "server": server,
        "address": address,
        "host": signing_in.host_in(address),
        "asks_for": parse_qs(urlsplit(address).query).get("scope", [""])[0].split(),
        "trouble": trouble,
        "form": form,
        "back": back_of(request),
    }
    return page(request, "tools_sign_in.html", context, current=PAGE, status=422 if form and form.errors else 200)


@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    """Where the server's page leads back to."""
    here = visit(request)
    answer = {name: request.GET[name][:LONGEST] for name in ANSWER if name in request.GET}
    try:
        server = async_to_sync(signing_in.finish)(here.person, session_of(request), answer, here.viewer.now)
    except Unfinished as unfinished:
        why = copy.why(unfinished.trouble.as_kept(), beside_it=True)
        messages.error(request, f"You aren’t signed in to {unfinished.server.name}. {why}")
        return redirect("settings-tool-server", slug=unfinished.server.slug)
    if server is None:
        messages.error(request, OVER)
        return redirect("settings-tools")
    async_to_sync(servers.check)(server, here.viewer.now)
    server.refresh_from_db()
    if server.trouble:
        messages.error(request, f"{server.name} can’t be used now. {copy.why(server.trouble, beside_it=True)}")
    else:
        messages.success(request, copy.signed_in(server.name, len(server.tools)))
    return redirect("settings-tool-server", slug=server.slug)


@require_POST
def sign_out(request: HttpRequest, slug: str) -> HttpResponse:
    """Forget the sign-in."""
    here = visit(request)
    server = own(here.person, slug)
    async_to_sync(signing_in.sign_out)(server, here.viewer.now)
    messages.success(request, copy.signed_out(server.name))
    return redirect("settings-tool-server", slug=server.slug)


@login_not_required
@require_GET
def client(request: HttpRequest) -> JsonResponse:
    """Who Conch is, for authorization servers that look: the address of this is its client id. Tells nothing else."""
    if not request.is_secure():
        raise Http404
    return JsonResponse(
        {
            "client_id": document_of(request),
            "client_name": "Conch",
            "redirect_uris": [back_of(request)],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
    )


def door_of(request: HttpRequest) -> Door:
    """Where people come back to: this very Conch, as they see it. Raises ToolTrouble where others could listen."""
    back_to, document = back_of(request), document_of(request)
    if not request.is_secure() and not signing_in.is_here(back_to):
        raise ToolTrouble("sign_in_insecure")
    return Door(back_to, document if request.is_secure() and not is_inside(document) else "")


def back_of(request: HttpRequest) -> str:
    """The address that leads back."""
    return request.build_absolute_uri(reverse("settings-tool-back"))


def document_of(request: HttpRequest) -> str:
    """The address at which Conch says who it is."""
    return request.build_absolute_uri(reverse("settings-tool-client"))


def session_of(request: HttpRequest) -> str:
    """The browser's session: nobody is here without one."""
    return str(request.session.session_key)
