"""Signing in to another account of a plan: the owner's to do, in a home of its own, watched until it is there."""

from hashlib import sha256
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from conch.accounts import sign_ins
from conch.accounts.connect import CantConnect
from conch.accounts.sign_ins import CantSignIn, SignIn
from conch.engines.base import Engine
from conch.models import Account
from settings_ui.connecting import known_engine
from settings_ui.viewing import HttpRequest, Visit, page, visit

OVER = "That sign-in isn’t under way any more. Begin it again."


@require_POST
def begin(request: HttpRequest, engine_id: str) -> HttpResponse:
    """Begin one; its page shows what to do."""
    here = visit(request)
    known = theirs(here, engine_id)
    try:
        one = sign_ins.begin(here.person, known, request.POST.get("way", ""), here.viewer.now)
    except CantSignIn as error:
        messages.error(request, typographic(str(error)))
        return redirect("settings-connect-engine", known.id)
    return redirect("settings-sign-in", known.id, one.name)


@require_safe
def sign_in(request: HttpRequest, engine_id: str, name: str) -> HttpResponse:
    """The page of one under way."""
    here = visit(request)
    one = sign_ins.under_way(here.person, theirs(here, engine_id).id, name)
    if one is None:
        return over(request, engine_id)
    return show(request, here, one)


@require_POST
def check(request: HttpRequest, engine_id: str, name: str) -> HttpResponse:
    """Look whether the sign-in is there, and connect it: by the page itself every few seconds, or by a press."""
    here = visit(request)
    one = sign_ins.under_way(here.person, theirs(here, engine_id).id, name)
    if one is None:
        return over(request, engine_id)
    try:
        account = async_to_sync(sign_ins.connected)(here.person, one, here.viewer.now)
    except CantConnect as error:
        return show(request, here, one, typographic(str(error)))
    if account is None:
        return show(request, here, one)
    messages.success(request, connected_as(account))
    return to(request, reverse("settings-account", args=[account.slug]))


@require_POST
def cancel(request: HttpRequest, engine_id: str, name: str) -> HttpResponse:
    """End it; nothing of it stays."""
    here = visit(request)
    one = sign_ins.under_way(here.person, theirs(here, engine_id).id, name)
    if one is not None:
        sign_ins.cancel(one)
        messages.success(request, "The sign-in was cancelled. Nothing was connected.")
    return redirect("settings-connect-engine", engine_id)


def theirs(here: Visit, engine_id: str) -> Engine:
    """The engine, for the owner of this computer; for anybody else, and of one that has no such sign-in: 404.

    The demonstration offers nothing real.
    """
    known = known_engine(engine_id)
    if settings.CONCH_SIMULATED or not here.person.is_owner or not hasattr(known, "signs_in_by"):
        raise Http404
    return known


def over(request: HttpRequest, engine_id: str) -> HttpResponse:
    """It was cancelled, connected by another page, or Conch was started again."""
    messages.error(request, OVER)
    return to(request, reverse("settings-connect-engine", args=[engine_id]))


def to(request: HttpRequest, address: str) -> HttpResponse:
    """Lead there, the page itself or the script on it."""
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def show(request: HttpRequest, here: Visit, one: SignIn, trouble: str = "") -> HttpResponse:
    """What to do now. To the script only what changed since it looked, so that the focus stays where it is."""
    facts = facts_of(here, one, trouble)
    facts["stamp"] = sha256(repr(sorted(facts.items())).encode()).hexdigest()[:16]
    context = facts | {"one": one, "say": request.htmx and says(facts)}
    if not request.htmx:
        return page(request, "signing_in.html", context, current="/settings/providers")
    if request.GET.get("v") == facts["stamp"]:
        return HttpResponse(status=204)
    return render(request, "settings_ui/_signing_in.html", context)


def facts_of(here: Visit, one: SignIn, trouble: str = "") -> dict[str, Any]:
    """What the page shows of it."""
    late, said = one.late(here.viewer.now), one.said()
    ended = "" if one.waits or late else said.last
    return {
        "command": one.command if one.program is None else "",
        "url": said.url,
        "code": said.code if one.way is not None and one.way.by_code else "",
        "by_code": one.way is not None and one.way.by_code,
        "trouble": trouble,
        "ended": ended,
        "failed": not one.waits and not late and not trouble,
        "late": late,
        "open": one.waits and not late,
    }


def says(facts: dict[str, Any]) -> str:
    """The change in words, for those who don't see it."""
    if facts["trouble"]:
        return str(facts["trouble"])
    if facts["failed"]:
        return "The sign-in ended."
    if facts["late"]:
        return "Ten minutes have passed."
    return "The address is there." if facts["url"] else ""


def connected_as(account: Account) -> str:
    """What is connected, and whose it is."""
    return (
        f"{account.label} is connected, signed in as {account.whose}."
        if account.whose
        else (f"{account.label} is connected.")
    )


def typographic(said: str) -> str:
    """With the apostrophes of a page."""
    return said.replace("'", "’")
