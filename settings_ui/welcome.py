"""First steps: what was found on this computer, each to be taken with one press; nothing is taken without it.

Sign-ins, keys in the environment and servers are the owner's of the machine. Anybody else sees what is theirs to do.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from conch.accounts import connect
from conch.accounts.addresses import is_inside
from conch.accounts.connect import Wish
from conch.accounts.seal import fingerprints
from conch.engines import found_here, local, local_models
from conch.engines.found_here import Key, SignIn
from conch.engines.local import Found
from conch.models import Account
from settings_ui import computer
from settings_ui.access import own_accounts
from settings_ui.connect_forms import AgainForm
from settings_ui.connecting import known_engine, trouble
from settings_ui.viewing import HttpRequest, Visit, page, visit

HINT = 4  # the last characters of a key that are shown, of one long enough
LONG_ENOUGH = 12


@dataclass(frozen=True, slots=True)
class Here:
    """What lies ready on this computer."""

    sign_ins: list[SignIn]
    keys: list[Key]
    servers: list[Found]

    @property
    def anything(self) -> bool:
        """Whether there is something that a press would take."""
        return bool(self.keys or self.servers or any(one.identity is not None for one in self.sign_ins))


async def look() -> Here:
    """Look for all of it at once; nothing of it is used. The demonstration offers nothing real."""
    if settings.CONCH_SIMULATED:
        return Here([], [], [])
    sign_ins, servers = await asyncio.gather(asyncio.to_thread(found_here.sign_ins), local.servers_here())
    return Here(sign_ins, found_here.keys_in_environment(), servers)


@require_safe
def first_steps(request: HttpRequest) -> HttpResponse:
    """The page. Right after the first sign-in (`first`) it is passed by where there is nothing to offer."""
    here = visit(request)
    if not here.person.is_owner:
        return page(request, "welcome_guest.html", {"guest": here.person}, current="/settings/providers")
    found = async_to_sync(look)()
    if "first" in request.GET and not found.anything:
        return redirect("/")
    return show(request, here, found)


def show(request: HttpRequest, here: Visit, found: Here, status: int = 200, **more: Any) -> HttpResponse:
    """What was found, with what of it is connected already."""
    accounts = own_accounts(here.person)
    given = local_models.setup()
    context = {
        "anything": found.anything,
        "plans": [sign_in_row(one, accounts, found.sign_ins) for one in found.sign_ins],
        "keys": [key_row(one, accounts) for one in found.keys],
        "servers": computer.servers(found.servers, given),
        "named": computer.named(given),
    }
    return page(request, "welcome.html", context | more, current="/settings/providers", status=status)


def sign_in_row(one: SignIn, accounts: list[Account], every: list[SignIn]) -> dict[str, Any]:
    """One sign-in: whose it is, the program, and the account that it is connected as, or why it can't be yet."""
    whose, program = one.identity, one.program
    version = ".".join(map(str, program.version)) if program is not None and program.version else ""
    facts = [whose.whose or "Signed in", whose.plan and f"{whose.plan.capitalize()} plan"] if whose else ["Signed out"]
    return {
        "engine": one.engine,
        "facts": [*filter(None, facts), *([f"Program {version}"] if version else []), *same_plan(one, every)],
        "account": connected_sign_in(one, accounts),
        "ready": whose is not None and (program is None or bool(program.path)),
        "instead": program.kind.sign_in if program is not None and whose is None else "",
        "why": program.why.replace("'", "’") if program is not None and not program.path else "",
    }


def same_plan(one: SignIn, every: list[SignIn]) -> list[str]:
    """That an engine above is a way into the same plan: connected both, they are one choice (R1)."""
    shared = [other for other in every if other.engine.shares_account == one.engine.shares_account]
    first = shared[0].engine
    return [f"Another way into the plan of {first.label}"] if one.identity and first is not one.engine else []


def connected_sign_in(one: SignIn, accounts: list[Account]) -> Account | None:
    """The account that this very sign-in is connected as."""
    for account in accounts:
        if account.engine != one.engine.id or one.identity is None:
            continue
        if account.identity == one.identity.identity if one.identity.identity else not account.home:
            return account
    return None


def key_row(one: Key, accounts: list[Account]) -> dict[str, Any]:
    """One key: the variable that holds it and its last characters, never more."""
    hint = f"ending {one.key[-HINT:]}" if len(one.key) >= LONG_ENOUGH else ""
    return {
        "engine": one.engine,
        "variable": one.variable,
        "hint": hint,
        "base_url": one.base_url,
        "account": connected_key(one, accounts),
        "by_hand": by_hand(one),
    }


def connected_key(one: Key, accounts: list[Account]) -> Account | None:
    """The account that this very key is connected as."""
    prints = fingerprints(one.key)
    same = (one.engine.id, one.base_url)
    return next((a for a in accounts if (a.engine, a.base_url) == same and a.key_fingerprint in prints), None)


def connected(one: SignIn | Key, accounts: list[Account]) -> Account | None:
    """The account that what was found is connected as."""
    return connected_key(one, accounts) if isinstance(one, Key) else connected_sign_in(one, accounts)


@require_POST
def take(request: HttpRequest, engine_id: str) -> HttpResponse:
    """Connect what was found for that engine: verified, without asking for a reply. Pressed twice, it is one account.

    The owner's to do: for others it isn't there.
    """
    here = visit(request)
    if not here.person.is_owner:
        raise Http404
    known_engine(engine_id)
    found = async_to_sync(look)()
    ready: list[SignIn | Key] = [*found.keys, *found.sign_ins]
    one = next((one for one in ready if one.engine.id == engine_id), None)
    if one is None or (isinstance(one, Key) and by_hand(one)):
        messages.error(request, "That isn’t there any more. Nothing was connected.")
        return redirect("welcome")
    account = connected(one, own_accounts(here.person))
    if account is None:
        try:
            account = async_to_sync(connect.connect)(here.person, wish_for(one), here.viewer.now)
        except connect.CantConnect as error:
            account = connected(one, own_accounts(here.person))  # by the first of two presses
            if account is None:
                failed = trouble(one.engine, AgainForm(engine=one.engine), error)
                return show(request, here, found, 422, failed=failed)
    messages.success(request, f"{account.label} is connected.")
    return redirect("welcome")


def wish_for(one: SignIn | Key) -> Wish:
    """What connecting it takes."""
    return Wish(one.engine.id, key=one.key, base_url=one.base_url) if isinstance(one, Key) else Wish(one.engine.id)


def by_hand(one: Key) -> bool:
    """Whether its own form connects it: that asks once more before a key goes to an inside address (doors.md)."""
    return bool(one.base_url) and is_inside(one.base_url)
