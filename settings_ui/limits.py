"""*When one can't answer*: what each press of the FallbackPicker does.

Each change is its own and goes to its own column, so two tabs at once lose nothing: a move is relative, a switch says
what it became, and a choice that rides along with another press (no script, or a press within the quarter second
before it is saved) counts only where it differs from what its page showed.
"""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from conch.db import step_now
from conch.models import Account, Person, Preferences
from conch.money import to_nano
from routing.choices import grouped
from routing.facts import AUTO, WAIT
from routing.known import UnknownAccount, question_for_settings
from routing.ranking import ranked
from settings_ui import picker_words
from settings_ui.access import own_account
from settings_ui.changes import ask_again
from settings_ui.forms import UpToForm
from settings_ui.ordering import after_move
from settings_ui.picker import Picker, picker_of
from settings_ui.viewing import HttpRequest, Visit, visit

# A switch's name on the page, and the column that it is.
SWITCHES = {"paid": "limit_paid", "local": "offline_fallback", "return": "limit_return"}


def action(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A view for POST that first keeps a choice which rides along."""

    @wraps(view)
    @require_POST
    def wrapped(request: HttpRequest, **facts: str) -> HttpResponse:
        here = visit(request)
        keep_pick(here.person, request.POST)
        return view(request, here, **facts)

    return wrapped


def keep_pick(person: Person, posted: QueryDict) -> None:
    """Keep the choice that rides along, where it is another than the page showed."""
    pick = posted.get("pick", "")
    if pick and "shown_pick" in posted and pick != posted["shown_pick"]:
        choose_for(person, pick)


def choose_for(person: Person, pick: str) -> None:
    """Set who answers at a limit: auto, wait, or an account of this person's (404 otherwise)."""
    value = pick if pick in {AUTO, WAIT} else own_account(person, pick).slug
    Preferences.objects.filter(person=person).update(limit_fallback=value)


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Choose who answers at a limit. The radios are never swapped; "Saved" and what follows from it are."""
    here = visit(request)
    choose_for(here.person, request.POST.get("pick", ""))
    return changed(request, here, spoken=lambda picker: picker_words.saved(picker.chosen))


@action
def move(request: HttpRequest, here: Visit) -> HttpResponse:
    """Move one choice one place up or down; at the ends nothing moves, and it is said."""
    asked = request.POST.get("move", "")
    way, _, slug = asked.partition(":")
    went = step_now(move_step, here.person.pk, request.POST.get("engine", ""), asked, here.viewer.now)
    return changed(request, here, spoken=lambda picker: picker.spoken_move(slug, way, went=went), moved=slug)


def move_step(person_id: int, engine: str, asked: str, now: datetime) -> bool:
    """The move in one transaction with the reading of the order, so that two at once are both made."""
    preferences = Preferences.objects.select_for_update().get(person_id=person_id)
    try:
        question = question_for_settings(person_id, engine, None, now)
    except UnknownAccount:
        return False
    every = ranked(grouped(question.ways), preferences.limit_order)
    ways = [tuple(way.slug for way in choice.ways) for choice in every]
    shown = [slugs for slugs in ways if engine not in slugs]
    order = after_move(preferences.limit_order, ways, shown, asked)
    return order is not None and bool(Preferences.objects.filter(pk=preferences.pk).update(limit_order=order))


@action
def switch(request: HttpRequest, here: Visit, name: str) -> HttpResponse:
    """Turn one switch on or off. *Pay-per-use keys too* is asked for its budget first, where none is set (R13)."""
    if name not in SWITCHES:
        raise Http404
    on = request.POST.get(name) == "on"
    if name == "paid" and on and here.preferences.month_budget_nano is None and not here.preferences.limit_paid:
        return changed(request, here, asking=True)
    turn(here.person, name, on=on)
    return changed(request, here, spoken=lambda _: "Saved.")


def turn(person: Person, name: str, *, on: bool) -> None:
    """Write that switch's column and no other."""
    Preferences.objects.filter(person=person).update(**{SWITCHES[name]: on})


@action
def paid(request: HttpRequest, here: Visit) -> HttpResponse:
    """Turn *Pay-per-use keys too* on, with a month's budget or knowingly without one (R13)."""
    columns: dict[str, Any] = {"limit_paid": True}
    if request.POST.get("paid_with") != "none":
        form = UpToForm(request.POST)
        if not form.is_valid():
            said = " ".join(str(error) for error in form.errors["up_to"])
            return changed(request, here, asking=True, ask_error=said, up_to=request.POST.get("up_to", ""))
        columns["month_budget_nano"] = to_nano(form.cleaned_data["up_to"])
    Preferences.objects.filter(person=here.person).update(**columns)
    return changed(request, here, spoken=lambda _: "Saved.")


@action
def let(request: HttpRequest, here: Visit) -> HttpResponse:
    """Let an account carry on again that was left out."""
    account = own_account(here.person, request.POST.get("let", ""))
    Account.objects.filter(pk=account.pk).update(carries_on=True)
    return changed(request, here, spoken=lambda _: f"Saved. {account.label} may carry on.")


@action
def save(request: HttpRequest, here: Visit) -> HttpResponse:
    """Without script: keep the switches that differ from what the page showed."""
    asking = False
    for name in SWITCHES:
        on, shown = request.POST.get(name) == "on", request.POST.get(f"shown_{name}")
        if shown is None or on == (shown == "on"):
            continue
        if name == "paid" and on and here.preferences.month_budget_nano is None:
            asking = True
        else:
            turn(here.person, name, on=on)
    return changed(request, here, asking=asking, spoken=lambda _: "Saved.")


def changed(
    request: HttpRequest,
    here: Visit,
    *,
    spoken: Callable[[Picker], str] | None = None,
    moved: str = "",
    asking: bool = False,
    **more: Any,
) -> HttpResponse:
    """The answer to a change: what follows from it as fragments, or without script the page again at the order."""
    ask_again(here.person)
    engine = request.POST.get("engine", "")
    if not request.htmx:
        asks = {"ask": "paid"} | ({"up_to": more["up_to"]} if "up_to" in more else {}) if asking else {}
        query = urlencode({"engine": engine} | asks)
        response = redirect(f"{reverse('settings-providers')}?{query}#{'fb-ask' if asking else 'fb-order'}")
        response.status_code = 303
        return response
    picker = picker_of(visit_again(here), engine)
    if picker is None:
        raise Http404
    said = spoken(picker) if spoken and not asking else ""
    context = {"picker": picker, "spoken": said, "moved": moved, "reordered": bool(moved), "asking": asking}
    return render(request, "settings_ui/_fb_changed.html", context | more)


def visit_again(here: Visit) -> Visit:
    """The same visit with the preferences as they are now."""
    return Visit(here.person, Preferences.objects.get(person=here.person), here.viewer)
