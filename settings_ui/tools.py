"""Tool servers: look at what they offer, say which of it may run, check, rename, remove."""

import shlex
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conch.copy import tools as copy
from conch.models import Agent, Conversation, Person, ToolServer
from conch.tools import servers, signing_in
from conch.tools.launches import names_told
from conch.tools.listing import plain
from conch.tools.offers import ALWAYS, ASK, MOST_OFFERED, NEVER, permission_now, permissions_of
from conch.tools.servers import Kind
from settings_ui.tool_forms import NameForm, SecretsForm
from settings_ui.viewing import HttpRequest, Visit, page, visit

PAGE = "/settings/tools"
TOOLS_A_PAGE = 100
PERMISSIONS = ((ASK, "Ask"), (ALWAYS, "Always"), (NEVER, "Never"))


@require_safe
def tools_page(request: HttpRequest) -> HttpResponse:
    """The servers, with what each offers and why one can't be reached."""
    here = visit(request)
    mine = list(ToolServer.objects.filter(person=here.person, removed_at=None).order_by("name", "pk"))
    said = permissions_of(server.pk for server in mine)
    rows = [row(server, said.get(server.pk, {}), here) for server in mine]
    return page(request, "tools.html", {"servers": rows, "owner": here.person.is_owner}, current=PAGE)


def row(server: ToolServer, said: dict[str, Any], here: Visit) -> dict[str, Any]:
    """A server for the list."""
    held = [permission_now(tool, said.get(tool["name"])) for tool in server.tools]
    return {
        "server": server,
        "where": where(server),
        "offers": copy.offers(len(held), always=held.count(ALWAYS), never=held.count(NEVER)),
        "trouble": copy.why(server.trouble, beside_it=True),
        "tag": copy.tag(server.trouble),
        "asks_to_sign_in": copy.asks_to_sign_in(server.trouble),
        "listed": copy.listed(server.listed_at, here.viewer),
    }


def where(server: ToolServer) -> str:
    """Its command, or its address."""
    return shlex.join(server.command) if server.kind == Kind.STDIO else server.url


@require_safe
def server_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One server: its tools, each with what may be done."""
    here = visit(request)
    return show(request, here, own(here.person, slug))


def show(
    request: HttpRequest,
    here: Visit,
    server: ToolServer,
    *,
    status: int = 200,
    name_form: NameForm | None = None,
    secrets_form: SecretsForm | None = None,
) -> HttpResponse:
    """The page, with what went wrong in one of its forms."""
    said = permissions_of([server.pk]).get(server.pk, {})
    pages = Paginator(server.tools, TOOLS_A_PAGE)
    shown = pages.get_page(request.GET.get("page"))
    context = row(server, said, here) | {
        "told": names_told(server),
        "signed_in_at": signing_in.host_of(server),
        "tools": [tool_row(tool, said.get(tool["name"])) for tool in shown],
        "pages": shown,
        "permissions": PERMISSIONS,
        "many": len(server.tools) > MOST_OFFERED,
        "most": MOST_OFFERED,
        "name_form": name_form or NameForm(initial={"name": server.name}),
        "secrets_form": secrets_form or SecretsForm(kind=Kind(server.kind)),
    }
    return page(request, "tools_server.html", context, current=PAGE, status=status)


def tool_row(tool: dict[str, Any], said: Any) -> dict[str, Any]:
    """One tool for the list. `changed`: it isn't any more what an "always" was said to."""
    now = permission_now(tool, said)
    return {
        "field": field_of(tool["name"]),
        "digest": tool["digest"],
        "name": plain(tool["name"], 128) or "?",
        "title": tool["title"],
        "description": tool["description"],
        "permission": now,
        "changed": said is not None and said.permission == ALWAYS and now == ASK,
    }


def field_of(tool: str) -> str:
    """What a form calls a tool, whose own name may have any character."""
    return f"tool-{sha256(tool.encode()).hexdigest()[:16]}"


@require_POST
def permissions(request: HttpRequest, slug: str) -> HttpResponse:
    """What the person says of each tool that the page showed, as it showed it."""
    here = visit(request)
    server = own(here.person, slug)
    fields = {tool["name"]: field_of(tool["name"]) for tool in server.tools}
    said = {name: request.POST.get(field, "") for name, field in fields.items()}
    seen = {name: request.POST.get(f"{field}-seen", "") for name, field in fields.items()}
    if not servers.permit_all(server, said, seen):
        messages.error(request, copy.CHANGED_MEANWHILE)
        return shown_anew(request, server)
    if request.htmx:
        return render(request, "settings_ui/_saved.html", {"spoken": "Saved."})
    messages.success(request, "Saved.")
    return back(server, request.POST.get("page", ""))


def shown_anew(request: HttpRequest, server: ToolServer) -> HttpResponse:
    """The server's page again, as it is now."""
    if request.htmx:
        return HttpResponse(headers={"HX-Refresh": "true"})
    return back(server, request.POST.get("page", ""))


def back(server: ToolServer, number: str = "") -> HttpResponse:
    """To the server's page, where it was left."""
    response = redirect("settings-tool-server", slug=server.slug)
    if number.isascii() and number.isdigit() and number != "1":
        response["Location"] += f"?page={int(number)}"
    return response


@require_POST
def check(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask the server for its tools now."""
    here = visit(request)
    server = own(here.person, slug)
    async_to_sync(servers.check)(server, here.viewer.now)
    server.refresh_from_db()
    if server.trouble:
        messages.error(request, f"{server.name} can’t be used now. {copy.why(server.trouble, beside_it=True)}")
    else:
        messages.success(request, copy.checked(server.name, len(server.tools)))
    return back(server)


@require_POST
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Call it something else; its slug stays."""
    here = visit(request)
    server = own(here.person, slug)
    form = NameForm(request.POST)
    if not form.is_valid():
        return show(request, here, server, status=422, name_form=form)
    servers.rename(server, form.cleaned_data["name"])
    messages.success(request, "Saved.")
    return back(server)


@sensitive_post_parameters("secrets")
@require_POST
def tell(request: HttpRequest, slug: str) -> HttpResponse:
    """Another environment or other headers, in place of what it was told; then it is asked whether that works.

    A header that says who asks takes the place of a sign-in too.
    """
    here = visit(request)
    server = own(here.person, slug)
    form = SecretsForm(request.POST, kind=Kind(server.kind))
    if not form.is_valid():
        return show(request, here, server, status=422, secrets_form=form)
    if any(name.lower() == "authorization" for name in form.cleaned_data["secrets"]):
        async_to_sync(signing_in.sign_out)(server, here.viewer.now)
    servers.tell(server, form.cleaned_data["secrets"])
    return check(request, slug)


@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Say what removing it means; on a press, do it."""
    here = visit(request)
    server = own(here.person, slug)
    if request.method == "POST":
        async_to_sync(signing_in.sign_out)(server, here.viewer.now)
        servers.remove(server, here.viewer.now)
        messages.success(request, f"{server.name} is removed.")
        return redirect("settings-tools")
    chats = Conversation.objects.filter(person=here.person, deleted_at=None)
    context = {
        "server": server,
        "said": copy.removing(
            chats=using(chats.values_list("tools", flat=True), server),
            agents=using(Agent.objects.filter(person=here.person).values_list("tools", flat=True), server),
        ),
    }
    return page(request, "tools_remove.html", context, current=PAGE)


def using(kept: Iterable[list[str]], server: ToolServer) -> int:
    """How many have the server turned on."""
    return sum(server.slug in tools for tools in kept)


def own(person: Person, slug: str) -> ToolServer:
    """The person's server of that slug, or 404."""
    servers_of_theirs = ToolServer.objects.select_related("person")
    return get_object_or_404(servers_of_theirs, person=person, slug=slug, removed_at=None)
