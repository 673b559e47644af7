"""Connecting a tool server: a program or an address; one that is to be signed in to goes on to that."""

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from conch.copy import tools as copy
from conch.tools import servers
from conch.tools.trouble import ToolTrouble
from settings_ui import tool_signing_in
from settings_ui.tool_forms import AddressForm, ProgramForm
from settings_ui.tools import PAGE
from settings_ui.viewing import HttpRequest, page, visit

FORMS: dict[str, type[ProgramForm | AddressForm]] = {"program": ProgramForm, "address": AddressForm}


@sensitive_post_parameters("secrets")
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest, how: str) -> HttpResponse:
    """Connect a server. A program is the owner's alone to connect."""
    here = visit(request)
    if how not in FORMS or (how == "program" and not here.person.is_owner):
        raise Http404
    form = FORMS[how](request.POST or None, owner=here.person.is_owner)
    if request.method != "POST" or not form.is_valid():
        return show_form(request, how, form)
    try:
        server = async_to_sync(servers.connect)(here.person, form.wish(), here.viewer.now)
    except servers.CantConnect as error:
        if error.about in form.fields:
            form.add_error(error.about, str(error))
            return show_form(request, how, form)
        return show_form(request, how, form, str(error))
    except ToolTrouble as trouble:
        return show_form(request, how, form, f"{copy.why(trouble.as_kept())} Nothing was connected.")
    if copy.asks_to_sign_in(server.trouble):
        messages.success(request, copy.added(server.name))
        return tool_signing_in.begin(request, server)
    messages.success(request, copy.connected(server.name, len(server.tools)))
    return redirect("settings-tool-server", slug=server.slug)


def show_form(request: HttpRequest, how: str, form: ProgramForm | AddressForm, trouble: str = "") -> HttpResponse:
    """The form, with what went wrong; what was typed into the box of secrets is asked for again."""
    again = bool(trouble or form.errors) and bool(request.POST.get("secrets", "").strip())
    context = {"how": how, "form": form, "trouble": trouble, "again": again}
    return page(request, "tools_connect.html", context, current=PAGE, status=422 if trouble or form.errors else 200)
