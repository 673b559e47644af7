"""One account: its windows, its name, model and own limit, whether it carries on, check now, disconnect."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conch.accounts import connect, lists
from conch.engines.base import ConnectBy, Engine
from conch.engines.registry import UnknownEngine, engine
from conch.models import Account, Conversation, Turn
from conch.money import from_nano, to_nano
from settings_ui import abilities, account_words
from settings_ui.access import own_account
from settings_ui.changes import ask_again
from settings_ui.forms import LabelForm, LimitForm, ModelForm
from settings_ui.usage import window_row
from settings_ui.viewing import HttpRequest, Visit, page, visit


@require_safe
def account(request: HttpRequest, slug: str) -> HttpResponse:
    """The page of one account."""
    here = visit(request)
    return show(request, here, own_account(here.person, slug))


def show(request: HttpRequest, here: Visit, account: Account, status: int = 200, **forms: Any) -> HttpResponse:
    """The page, with the forms as given and others as they are kept."""
    lists.shown_to(here.person.pk)
    known = engine_of(account)
    limit = None if account.own_limit_nano is None else from_nano(account.own_limit_nano)
    context = {
        "account": account,
        "engine": known,
        "room": account_words.room_of(account, here.viewer),
        "state_said": account_words.state_said(account, known.label if known else account.engine),
        "read_said": account_words.read_said(account, here.viewer),
        "windows": [window_row(window, here.viewer) for window in account.windows.all()],
        "is_key": known is not None and known.connect_by is ConnectBy.KEY,
        "label_form": LabelForm(initial={"label": account.label}),
        "model_form": ModelForm(initial={"model": account.model}, models=account.known_models),
        "ability_form": abilities.form_of(account),
        "takes": abilities.words_of(account, here),
        "limit_form": LimitForm(initial={"own_limit": None if limit is None else f"{limit:.2f}"}),
    }
    return page(request, "account.html", context | forms, current="/settings/providers", status=status)


def engine_of(account: Account) -> Engine | None:
    """The account's engine; None for one that was installed once and isn't any more."""
    try:
        return engine(account.engine)
    except (UnknownEngine, ImportError):
        return None


@require_POST
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Call the account something else; its slug stays."""
    here = visit(request)
    account = own_account(here.person, slug)
    form = LabelForm(request.POST)
    if not form.is_valid():
        return show(request, here, account, 422, label_form=form)
    return changed(request, here, account, label=form.cleaned_data["label"])


@require_POST
def model(request: HttpRequest, slug: str) -> HttpResponse:
    """Choose the model that it answers with."""
    here = visit(request)
    account = own_account(here.person, slug)
    form = ModelForm(request.POST, initial={"model": account.model}, models=account.known_models)
    if not form.is_valid():
        return show(request, here, account, 422, model_form=form)
    return changed(request, here, account, model=form.cleaned_data["model"])


@require_POST
def limit(request: HttpRequest, slug: str) -> HttpResponse:
    """Set the key's own limit in a calendar month, or none."""
    here = visit(request)
    account = own_account(here.person, slug)
    form = LimitForm(request.POST)
    if not form.is_valid():
        return show(request, here, account, 422, limit_form=form)
    sum_ = form.cleaned_data["own_limit"]
    return changed(request, here, account, own_limit_nano=None if sum_ is None else to_nano(sum_))


@require_POST
def takes(request: HttpRequest, slug: str) -> HttpResponse:
    """Say what its model can take, where that isn't known or is known wrongly (R9)."""
    here = visit(request)
    account = own_account(here.person, slug)
    form = abilities.AbilityForm(request.POST)
    if not form.is_valid():
        return show(request, here, account, 422, ability_form=form)
    abilities.keep(account, form, here.viewer.now)
    return changed(request, here, account, model=account.model)


@require_POST
def carries_on(request: HttpRequest, slug: str) -> HttpResponse:
    """Let Automatic carry on with it, or leave it out (R10); a switch, applied at once."""
    here = visit(request)
    account = own_account(here.person, slug)
    on = request.POST.get("carries_on") == "on"
    if not request.htmx:
        return changed(request, here, account, carries_on=on)
    Account.objects.filter(pk=account.pk).update(carries_on=on)
    ask_again(here.person)
    return render(request, "settings_ui/_saved.html", {"spoken": "Saved."})


def changed(request: HttpRequest, here: Visit, account: Account, **columns: Any) -> HttpResponse:
    """Write these columns and no others, have waiting turns ask again, and go back to the account."""
    Account.objects.filter(pk=account.pk).update(**columns)
    ask_again(here.person)
    messages.success(request, "Saved.")
    return redirect("settings-account", slug=account.slug)


@require_http_methods(["GET", "HEAD", "POST"])
def disconnect(request: HttpRequest, slug: str) -> HttpResponse:
    """Say what disconnecting means; on a press, do it."""
    here = visit(request)
    account = own_account(here.person, slug)
    if request.method == "POST":
        async_to_sync(connect.disconnect)(here.person.pk, account.slug, here.viewer.now)
        messages.success(request, f"{account.label} is disconnected.")
        return redirect("settings-providers")
    context = {"account": account, "said": meaning(here, account)}
    return page(request, "disconnect.html", context, current="/settings/providers")


def meaning(here: Visit, account: Account) -> list[str]:
    """What disconnecting that account means for this person's chats."""
    own = Conversation.objects.filter(person=here.person, account=account.slug, deleted_at=None)
    waiting = Turn.objects.filter(conversation__person=here.person, state=Turn.State.WAITING)
    waiting = waiting.filter(Q(waits_for=account.slug) | Q(conversation__account=account.slug))
    return account_words.disconnecting(
        account.label,
        chats=own.count(),
        waiting=waiting.count(),
        picked=here.preferences.limit_fallback == account.slug,
        default=here.preferences.default_account == account.slug,
    )
