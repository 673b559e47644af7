"""Providers: the connected accounts, and *When one can't answer*."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from conch.accounts import lists
from conch.accounts.defaults import connected
from conch.copy.clock import Viewer
from conch.ledger import month_of
from conch.models import Account, Preferences
from conch.money import from_nano, shown, to_nano
from settings_ui import spending
from settings_ui.access import own_accounts
from settings_ui.account_words import room_of
from settings_ui.changes import ask_again
from settings_ui.forms import BudgetForm, StartForm, UpToForm
from settings_ui.picker import picker_of
from settings_ui.usage import counted
from settings_ui.viewing import HttpRequest, Visit, page, visit


@require_safe
def providers(request: HttpRequest) -> HttpResponse:
    """The page."""
    return show(request, visit(request))


def show(request: HttpRequest, here: Visit, status: int = 200, **forms: Any) -> HttpResponse:
    """The page, with the forms as given and others as they are kept."""
    lists.shown_to(here.person.pk)
    accounts = own_accounts(here.person)
    kept = here.preferences
    budget = None if kept.month_budget_nano is None else from_nano(kept.month_budget_nano)
    context = {
        "owner": here.person.is_owner,
        "accounts": [row(account, here.viewer) for account in accounts],
        "picker": picker_of(here, request.GET.get("engine", "")),
        **asking(request, here),
        "budget": budget_said(here),
        "budget_form": BudgetForm(initial={"budget": None if budget is None else f"{budget:.2f}"}),
        "start_form": StartForm(initial={"account": kept.default_account}, accounts=accounts),
    }
    return page(request, "providers.html", context | forms, current="/settings/providers", status=status)


def asking(request: HttpRequest, here: Visit) -> dict[str, Any]:
    """Without script: the question for the month's budget, with the amount as typed and what is wrong with it."""
    typed = request.GET.get("up_to")
    form = UpToForm(request.GET) if typed is not None else None
    return {
        "asking": request.GET.get("ask") == "paid" and not here.preferences.limit_paid,
        "ask_error": " ".join(str(error) for error in form.errors.get("up_to", [])) if form is not None else "",
        "up_to": (typed or "")[:20],
    }


def row(account: Account, viewer: Viewer) -> dict[str, Any]:
    """One account of the list."""
    room = room_of(account, viewer)
    return {
        "slug": account.slug,
        "engine": account.engine,
        "label": account.label,
        "whose": account.whose or (f"key ending {account.key_hint}" if account.key_hint else ""),
        "level": room.level,
        "tag": room.tag,
        "tag_kind": room.tag_kind,
        "facts": [*room.facts, *([] if account.carries_on else ["Left out by you"])],
    }


def budget_said(here: Visit) -> dict[str, Any]:
    """The month's budget with what is left of it; replies without a price are said beside it (R33)."""
    spent = spending.of_month(here.person, month_of(here.preferences, here.viewer.now))
    nano = here.preferences.month_budget_nano
    unpriced = f"Price unknown ({counted(spent.unpriced, 'reply', 'replies')})." if spent.unpriced else ""
    if nano is None:
        return {"amount": None, "said": f"{shown(spent.spent)} spent this month.", "unpriced": unpriced}
    left = max(from_nano(0), from_nano(nano) - spent.spent - spent.held)
    return {"amount": nano, "said": f"{shown(left)} of {shown(from_nano(nano))} left.", "unpriced": unpriced}


@require_POST
def budget(request: HttpRequest) -> HttpResponse:
    """Set the month's budget, or none."""
    here = visit(request)
    form = BudgetForm({} if request.POST.get("none") else request.POST)
    if not form.is_valid():
        return show(request, here, 422, budget_form=form)
    amount = form.cleaned_data["budget"]
    nano = None if amount is None else to_nano(amount)
    Preferences.objects.filter(person=here.person).update(month_budget_nano=nano)
    ask_again(here.person)
    messages.success(request, "Saved.")
    return redirect("/settings/providers#budget")


@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Choose who a new chat starts with."""
    here = visit(request)
    form = StartForm(request.POST, accounts=connected(here.person.pk))
    if not form.is_valid():
        return show(request, here, 422, start_form=form)
    chosen = form.cleaned_data["account"]
    Preferences.objects.filter(person=here.person).update(default_account=chosen, default_model="")
    messages.success(request, "Saved.")
    return redirect("/settings/providers#start")
