"""This computer: the model here, how good it is, servers found on loopback to choose from, and a box to try it."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from conch.accounts import lists
from conch.engines import local, local_chosen, local_models, local_told
from conch.engines.base import Access, EngineError, Message, Request, Text
from conch.engines.local import Found
from conch.engines.registry import engine
from routing.known import forget_local
from settings_ui.changes import everybody_asks_again
from settings_ui.forms import ServerForm, TryForm
from settings_ui.viewing import HttpRequest, Visit, page, visit

# Trying it is a taste, not a chat.
MOST_TOKENS = 256
TRIES_FOR = 90  # seconds


@require_safe
def computer(request: HttpRequest) -> HttpResponse:
    """The page."""
    return show(request, visit(request))


def show(request: HttpRequest, here: Visit, status: int = 200, **more: Any) -> HttpResponse:
    """The page; what runs on this machine is looked for only for its owner."""
    lists.shown_to(here.person.pk)
    given = local_models.setup()
    context: dict[str, Any] = {"facts": local_models.facts(given), "form": TryForm(), "owner": here.person.is_owner}
    if here.person.is_owner:
        found = async_to_sync(local.servers_here)()
        context |= {"servers": servers(found, given), "named": named(given), "trouble": trouble(found, given)}
        context |= {"back": back(given)}
    return page(request, "computer.html", context | more, current="/settings/computer", status=status)


def servers(found: list[Found], given: local_models.Setup) -> list[dict[str, Any]]:
    """The servers that were found, each with the form that chooses it."""
    return [
        {
            "label": server.label,
            "url": server.url,
            "in_use": server.url == given.url,
            "form": form_of(server, initial={"url": server.url, "model": given.model}),
        }
        for server in found
    ]


def form_of(server: Found, *args: Any, **kwargs: Any) -> ServerForm:
    """The form of one server among several: its fields have ids of their own."""
    return ServerForm(
        *args, server=server, auto_id=f"id_%s_{server.url.rpartition(':')[2].partition('/')[0]}", **kwargs
    )


def named(given: local_models.Setup) -> bool:
    """Whether the environment names the server: it comes before a choice made here."""
    return bool(given.url) and not given.chosen


def trouble(found: list[Found], given: local_models.Setup) -> str:
    """What is wrong with the chosen server now; nothing where it is well, or none was chosen."""
    if not given.chosen:
        return ""
    running = next((server for server in found if server.url == given.url), None)
    if running is None:
        return f"{local_models.server_label(given.url)} doesn’t answer now. Start it again there."
    return "" if given.model in running.models else f"{running.label} doesn’t list {given.model} any more."


def back(given: local_models.Setup) -> str:
    """What answers without the choice: its name, or that nothing would; nothing where none was made."""
    if not given.chosen:
        return ""
    without = local_models.facts(local_models.environment())
    return without.label if without.present else "none"


@require_POST
def use(request: HttpRequest) -> HttpResponse:
    """Choose a server that runs on this computer, and its model, for the machine: its owner's to do (404 otherwise)."""
    here = owner_of(request)
    given = local_models.setup()
    if named(given):
        return show(request, here, 409)
    found = async_to_sync(local.servers_here)()
    server = next((one for one in found if one.url == request.POST.get("url")), None)
    if server is None:
        return show(request, here, 422, refused="That server doesn’t answer any more. Nothing was changed.")
    form = form_of(server, request.POST)
    if not form.is_valid():
        return show(request, here, 422, refused=f"{server.label} doesn’t list that model. Nothing was changed.")
    model = form.cleaned_data["model"]
    local_chosen.choose(given.folder, local_chosen.asked(server.url, model))
    local_told.ask(given.folder, local_told.Server(server.url, model), here.viewer.now)
    return changed(request, f"{model} answers on this computer now.")


@require_POST
def stop_using(request: HttpRequest) -> HttpResponse:
    """Go back to what there is without a choice: the owner's to do (404 otherwise)."""
    owner_of(request)
    local_chosen.choose_none(local_models.setup().folder)
    facts = local.facts()
    said = f"{facts.label} answers on this computer now." if facts.present else "Nothing answers on this computer now."
    return changed(request, said)


def owner_of(request: HttpRequest) -> Visit:
    """The visit of the owner of the machine; for others what is theirs isn't there."""
    here = visit(request)
    if not here.person.is_owner:
        raise Http404
    return here


def changed(request: HttpRequest, said: str) -> HttpResponse:
    """Have everybody find the other model, say it, and go back to the page that was pressed on."""
    forget_local()
    everybody_asks_again()
    messages.success(request, said)
    back = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        return redirect(back)
    return redirect("settings-computer")


@require_POST
def try_it(request: HttpRequest) -> HttpResponse:
    """Ask the model on this computer something; nothing of it is kept, and it costs nothing."""
    here = visit(request)
    form = TryForm(request.POST)
    if not form.is_valid():
        return show(request, here, 422, form=form)
    answer = async_to_sync(answer_to)(form.cleaned_data["text"])
    return show(request, here, form=form, answer=answer)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said, or why it couldn't."""

    text: str = ""
    failed: str = ""


async def answer_to(text: str) -> Answer:
    """One short answer of the model on this computer."""
    facts = local.facts()
    request = Request(model=facts.model_id, messages=(Message("user", text),), max_output_tokens=MOST_TOKENS)
    pieces: list[str] = []
    try:
        async with asyncio.timeout(TRIES_FOR), aclosing(engine("local").reply(Access("local"), request)) as events:  # type: ignore[type-var]
            async for event in events:
                pieces.append(event.text if isinstance(event, Text) else "")  # noqa: PERF401  kept where it fails half way
    except EngineError as error:
        return Answer("".join(pieces), failed=error.said or "It couldn’t answer.")
    except TimeoutError:
        return Answer("".join(pieces), failed="It took too long and was stopped.")
    return Answer("".join(pieces))
