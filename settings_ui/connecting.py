"""Connecting: which engines there are, a form for each by what it takes, and what is wrong told apart."""

from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conch.accounts import connect
from conch.accounts.addresses import BadAddress
from conch.accounts.connect import Wish
from conch.accounts.seal import fingerprints
from conch.engines import programs
from conch.engines.base import Billing, ConnectBy, Engine, LimitReached, SignedOut
from conch.engines.registry import engine, paths
from conch.models import Account
from settings_ui import account_words
from settings_ui.access import own_account
from settings_ui.changes import ask_again
from settings_ui.connect_forms import AgainForm, AgainKeyForm, ConnectForm, KeyForm, SigninForm
from settings_ui.viewing import HttpRequest, Visit, page, visit

GROUPS = (
    (Billing.PLAN, "Plans", "Subscriptions that you have. They answer within their limits, at no cost a reply."),
    (Billing.KEY, "Keys", "Pay per use. A key answers only when you choose it, or say that keys may."),
)

AFTER_KEY = "The key is checked without asking for a reply, kept sealed, and never shown again."
AFTER_SIGN_IN = "The sign-in is checked without asking for a reply."
BY_CODE = "Sign in with a code"
BY_BROWSER = "Sign in in this computer’s browser"


def connectable() -> list[Engine]:
    """The engines that can be connected; one whose module can't be imported is left out."""
    found = []
    for engine_id in paths():
        try:
            known = engine(engine_id)
        except (ImportError, AttributeError):
            continue
        if known.connect_by is not ConnectBy.NOTHING:
            found.append(known)
    return found


@require_safe
def engines_page(request: HttpRequest) -> HttpResponse:
    """What can be connected, plans first."""
    here = visit(request)
    known = connectable()
    groups = [
        {"title": title, "said": said, "engines": [entry(one, here) for one in known if one.billing is billing]}
        for billing, title, said in GROUPS
    ]
    context = {"groups": [group for group in groups if group["engines"]]}
    return page(request, "connect.html", context, current="/settings/providers")


def entry(known: Engine, here: Visit) -> dict[str, Any]:
    """One engine of the list. A sign-in on this machine is its owner's to use."""
    by_key = known.connect_by is ConnectBy.KEY
    may = by_key or here.person.is_owner
    said = "With an API key" if by_key else f"With your {known.plan_name or 'sign-in'} on this computer"
    return {
        "id": known.id,
        "label": known.label,
        "may": may,
        "said": said if may else f"{said}: only the owner of this computer can connect it",
    }


@require_POST
def check_now(request: HttpRequest, slug: str) -> HttpResponse:
    """Read the account's room now, and allow one attempt past a refusal (R29)."""
    from conch.accounts.checking import check

    here = visit(request)
    account = own_account(here.person, slug)
    account.person = here.person
    async_to_sync(check)(account, here.viewer.now)
    ask_again(here.person)
    account.refresh_from_db()
    said, well = checked(account)
    (messages.success if well else messages.error)(request, said)
    back = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        return redirect(back)
    return redirect("settings-account", slug=account.slug)


def checked(account: Account) -> tuple[str, bool]:
    """What a check came to, and whether it went well."""
    state = Account.State(account.state)
    if state is not Account.State.OK:
        return f"{account.label}: {account_words.TAGS[state][0].lower()}.", False
    failed = account.read_failed_at is not None and (
        account.read_at is None or account.read_failed_at > account.read_at
    )
    if failed:
        return f"{account.label} couldn’t be read just now. The figures stay as they were.", False
    return f"{account.label} is checked.", True


@sensitive_post_parameters("key")
@require_http_methods(["GET", "HEAD", "POST"])
def connect_page(request: HttpRequest, engine_id: str) -> HttpResponse:
    """The form of one engine; on a press it is verified and connected."""
    here = visit(request)
    known = known_engine(engine_id)
    if not entry(known, here)["may"]:
        raise Http404
    if request.method != "POST":
        return show(request, known, form_of(known, initial={"made": here.viewer.now.isoformat()}))
    form = form_of(known, request.POST, owner=here.person.is_owner)
    if not form.is_valid():
        return show(request, known, form, status=422)
    wish = Wish(known.id, **form.wished())
    try:
        account = async_to_sync(connect.connect)(here.person, wish, here.viewer.now)
    except connect.CantConnect as error:
        pressed_twice = just_connected(here, wish, form.cleaned_data["made"])
        if pressed_twice is None:
            return show(request, known, form, status=422, trouble=trouble(known, form, error))
        account = pressed_twice
    messages.success(request, f"{account.label} is connected.")
    return redirect("settings-account", slug=account.slug)


def known_engine(engine_id: str) -> Engine:
    """The engine of that id that can be connected, or 404."""
    found = next((known for known in connectable() if known.id == engine_id), None)
    if found is None:
        raise Http404
    return found


def form_of(known: Engine, *args: Any, **kwargs: Any) -> ConnectForm:
    """The form that the engine's way of connecting takes."""
    form = KeyForm if known.connect_by is ConnectBy.KEY else SigninForm
    return form(*args, engine=known, **kwargs)


def just_connected(here: Visit, wish: Wish, made: datetime | None) -> Account | None:
    """The account that the first of two presses of one form connected."""
    if not wish.key or made is None:
        return None
    same = Account.objects.filter(person=here.person, engine=wish.engine, removed_at=None, connected_at__gte=made)
    return same.filter(key_fingerprint__in=fingerprints(wish.key)).first()


def trouble(known: Engine, form: ConnectForm, error: connect.CantConnect) -> dict[str, str] | None:
    """What went wrong: beside the field that it is about, else above the form, with where it can be put right."""
    cause, said = error.__cause__, str(error)
    if isinstance(cause, LimitReached) and cause.scope == "money":
        said = f"The key works, but {known.label} says that there is no credit on it. Nothing was connected."
        return {"said": said, "url": known.billing_page, "link": "Add credit there"}
    field = "base_url" if isinstance(cause, BadAddress) else "key" if isinstance(cause, SignedOut) else ""
    if field in form.fields:
        form.add_error(field, said)
        return None
    return {"said": said}


def show(
    request: HttpRequest,
    known: Engine,
    form: ConnectForm,
    *,
    status: int = 200,
    trouble: dict[str, str] | None = None,
    account: Account | None = None,
) -> HttpResponse:
    """The form, with what went wrong."""
    by_key = known.connect_by is ConnectBy.KEY
    again = "Paste the key again" if by_key else "Sign in again"
    context = {
        "title": f"Connect {known.label}" if account is None else f"{account.label}: {again.lower()}",
        "action": "Connect" if account is None else "Check and keep",
        "after": AFTER_KEY if by_key else AFTER_SIGN_IN,
        "steps": [] if by_key else steps(known),
        "form": form,
        "trouble": trouble,
        "account": account,
        "another": None if account is not None else another(known),
    }
    return page(request, "connect_engine.html", context, current="/settings/providers", status=status)


def another(known: Engine) -> dict[str, Any] | None:
    """How another account than the one signed in here is signed in to; None where the engine has no program for it."""
    kind: programs.Kind | None = getattr(known, "signs_in_by", None)
    if kind is None or settings.CONCH_SIMULATED:
        return None
    why = programs.look(kind).why.replace("'", "’")
    presses = [{"way": way.name, "label": BY_CODE if way.by_code else BY_BROWSER} for way in kind.ways]
    return {
        "engine": known,
        "program": kind.label,
        "why": why,
        "presses": presses or [{"way": "", "label": "Sign in to another account"}],
        "by_browser": any(not way.by_code for way in kind.ways),
    }


def steps(known: Engine) -> list[str]:
    """What to do before connecting a sign-in."""
    return [
        f"Sign in to {known.label} with its own program on this computer, if you haven’t.",
        "Press Connect. Conch uses that sign-in as it is and changes nothing of it.",
    ]


@sensitive_post_parameters("key")
@require_http_methods(["GET", "HEAD", "POST"])
def reconnect(request: HttpRequest, slug: str) -> HttpResponse:
    """Connect the same sign-in or key again. Another one is another account: a yes to pay belongs to the key (R13)."""
    here = visit(request)
    account = own_account(here.person, slug)
    account.person = here.person
    known = known_engine(account.engine)
    if not entry(known, here)["may"]:
        raise Http404
    if request.method != "POST":
        return show(request, known, again_form(known), account=account)
    form = again_form(known, request.POST)
    if not form.is_valid():
        return show(request, known, form, status=422, account=account)
    key = form.cleaned_data.get("key", "")
    if key and account.key_fingerprint not in fingerprints(key):
        form.add_error("key", "That is another key. Connect it as an account of its own; this one keeps its spending.")
        return show(request, known, form, status=422, account=account)
    try:
        async_to_sync(connect_again)(account, key, here.viewer.now)
    except connect.CantConnect as error:
        return show(request, known, form, status=422, trouble=trouble(known, form, error), account=account)
    messages.success(request, f"{account.label} is connected again.")
    return redirect("settings-account", slug=account.slug)


def again_form(known: Engine, *args: Any) -> ConnectForm:
    """The form to connect the same again: the key alone, or nothing but the press."""
    return AgainKeyForm(*args, engine=known) if known.connect_by is ConnectBy.KEY else AgainForm(*args, engine=known)


async def connect_again(account: Account, key: str, now: datetime) -> None:
    """Verify the same key or sign-in and keep it as the account that it was. Raises CantConnect."""
    if key:
        await connect.change_address(account, account.base_url, key, now)
    else:
        wish = Wish(account.engine, slug=account.slug, home=account.home, base_url=account.base_url)
        await connect.connect(account.person, wish, now)
