"""You: times, look and keyboard, password, tokens of the API, where one is signed in."""

import hmac
import secrets
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from conch.accounts import tokens
from conch.accounts.signin import make_link
from conch.ledger import change_zone
from conch.models import ApiToken, Person, Preferences
from settings_ui import devices
from settings_ui.access import own_token
from settings_ui.forms import LookForm, PasswordForm, TimesForm, TokenForm
from settings_ui.viewing import HttpRequest, Visit, page, visit

# A second press of *Make a token* shows the same one; later the page shows it no more.
SHOWN_AGAIN_WITHIN = timedelta(seconds=10)


@require_safe
def you(request: HttpRequest) -> HttpResponse:
    """The page."""
    return show(request, visit(request))


def show(request: HttpRequest, here: Visit, status: int = 200, **forms: Any) -> HttpResponse:
    """The page with the forms as given, others as they are kept."""
    kept = here.preferences
    context = {
        "times_form": TimesForm(initial={"time_zone": kept.time_zone, "hour_cycle": kept.hour_cycle}, prefix="times"),
        "look_form": LookForm(
            initial={"theme": kept.theme, "shortcuts": kept.shortcuts, "read_aloud": kept.read_aloud}, prefix="look"
        ),
        "password_form": PasswordForm(person=here.person),
        "has_password": here.person.has_usable_password(),
        "token_form": TokenForm(),
        "once": secrets.token_urlsafe(16),
        "tokens": ApiToken.objects.filter(person=here.person, revoked_at=None).order_by("-pk"),
        "devices": devices.devices(here.person, request.session.session_key, here.viewer.now),
        "person": here.person,
    }
    return page(request, "you.html", context | forms, current="/settings/you", status=status)


@require_POST
def times(request: HttpRequest) -> HttpResponse:
    """Change the zone or the hour cycle; what the page didn't change stays as it is by now."""
    here = visit(request)
    form = TimesForm(request.POST, prefix="times")
    if not form.is_valid():
        return show(request, here, 422, times_form=form)
    if "time_zone" in form.changed_data:
        change_zone(here.person.pk, form.cleaned_data["time_zone"], here.viewer.now)
    if "hour_cycle" in form.changed_data:
        change(here.person, hour_cycle=form.cleaned_data["hour_cycle"])
    return saved(request, "times")


@require_POST
def look(request: HttpRequest) -> HttpResponse:
    """Change theme, shortcuts or reading aloud; what the page didn't change stays as it is by now."""
    here = visit(request)
    form = LookForm(request.POST, prefix="look")
    if not form.is_valid():
        return show(request, here, 422, look_form=form)
    change(here.person, **{name: form.cleaned_data[name] for name in form.changed_data})
    return saved(request, "look")


def change(person: Person, **columns: Any) -> None:
    """Write these columns of the person's preferences and no others."""
    if columns:
        Preferences.objects.filter(person=person).update(**columns)


@require_POST
def password(request: HttpRequest) -> HttpResponse:
    """Set or change the password; this session goes on, the others end."""
    here = visit(request)
    form = PasswordForm(request.POST, person=here.person)
    if not form.is_valid():
        return show(request, here, 422, password_form=form)
    here.person.set_password(form.cleaned_data["new"])
    here.person.save(update_fields=["password"])
    update_session_auth_hash(request, here.person)
    messages.success(request, "Password set. Other devices are signed out.")
    return redirect("/settings/you#password")


@require_POST
@never_cache
def make_token(request: HttpRequest) -> HttpResponse:
    """Make a token and show it, once; a double press makes one."""
    here = visit(request)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return show(request, here, 422, token_form=form)
    token = derived(here.person, request.POST.get("once") or secrets.token_urlsafe(16))
    if not keep_token(here.person, token, form.cleaned_data["name"], here.viewer.now):
        messages.error(request, "That token was made before, and a token is shown once. Make another.")
        return redirect("/settings/you#tokens")
    return show(request, here, made=token)


def derived(person: Person, once: str) -> str:
    """The token of one rendered form: the same for a second press, and known to nobody without the secret key."""
    made = hmac.digest(settings.SECRET_KEY.encode(), f"api token:{person.pk}:{once}".encode(), "sha256")
    return tokens.PREFIX + urlsafe_b64encode(made).decode().rstrip("=")


def keep_token(person: Person, token: str, name: str, now: datetime) -> bool:
    """Keep the token's digest; False where it was made before, other than by a press just now."""
    given = {"person": person, "name": name, "hint": token[-4:], "created_at": now}
    row, made = ApiToken.objects.get_or_create(digest=tokens.digest(token), defaults=given)
    return made or (row.revoked_at is None and now - row.created_at <= SHOWN_AGAIN_WITHIN)


@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """End a token; a second press finds it ended."""
    here = visit(request)
    token = own_token(here.person, token_id)
    ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=here.viewer.now)
    messages.success(request, f"Revoked: {token.name or 'the token'}.")
    return redirect("/settings/you#tokens")


@require_POST
@never_cache
def link(request: HttpRequest) -> HttpResponse:
    """Show a link, and its QR code, that signs this person in on another device, once."""
    here = visit(request)
    address = request.build_absolute_uri(f"/signin/{make_link(here.person, here.viewer.now)}")
    only_here = request.get_host().rpartition(":")[0] in {"127.0.0.1", "localhost", "[::1]"}
    code = mark_safe(devices.qr(address))  # noqa: S308  made by segno from our own address: digits and rectangles
    return show(request, here, link=address, qr=code, only_here=only_here)


@require_POST
def end_session(request: HttpRequest, name: str) -> HttpResponse:
    """Sign one device out."""
    here = visit(request)
    if not devices.end(here.person, name, here.viewer.now):
        raise Http404
    messages.success(request, "Signed out there.")
    return redirect("/settings/you#devices")


@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    """Sign every other device out."""
    here = visit(request)
    devices.end_others(here.person, request.session.session_key, here.viewer.now)
    messages.success(request, "Signed out everywhere else.")
    return redirect("/settings/you#devices")


def saved(request: HttpRequest, place: str) -> HttpResponse:
    """Back to that part of the page."""
    messages.success(request, "Saved.")
    return redirect(f"/settings/you#{place}")
