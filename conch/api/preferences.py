"""GET and PATCH /api/preferences."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from conch.accounts import zones
from conch.accounts.defaults import LOCAL, connected, start_of
from conch.api.accounts import model_of
from conch.api.caller import answer, person_id
from conch.api.presented import preferences_json
from conch.api.problems import Problem
from conch.api.schemas import PreferencesChange
from conch.db import look, step
from conch.ledger import change_zone
from conch.models import Account, Preferences
from conch.money import to_nano
from conch.turns import doors

router = Router(tags=["preferences"])


@router.get("/preferences", summary="The preferences")
async def read_preferences(request: HttpRequest) -> HttpResponse:
    """The caller's preferences, by the names of the product."""
    return answer(await look(_preferences, person_id(request)))


@router.patch("/preferences", summary="Change preferences")
async def change_preferences(request: HttpRequest, given: PreferencesChange) -> HttpResponse:
    """Change some of them. A turn that waits asks its route again at once (R16)."""
    caller = person_id(request)
    await step(_change, caller, given.said(), timezone.now())
    await doors.asked_again(caller)
    return answer(await look(_preferences, caller))


def _preferences(caller: int) -> dict[str, Any]:
    return preferences_json(Preferences.objects.get(pk=caller), connected(caller))


def _change(caller: int, said: dict[str, Any], now: datetime) -> None:
    """Write what was said, column by column. Raises Problem, and then nothing is written."""
    row = Preferences.objects.get(pk=caller)
    changed: dict[str, Any] = {
        name: said[name] for name in ("limit_return", "limit_paid", "offline_fallback") if name in said
    }
    if "hour_cycle" in said:
        changed["hour_cycle"] = said["hour_cycle"] or ""
    changed |= _default(caller, said, row)
    if "limit_fallback" in said:
        changed["limit_fallback"] = _fallback(caller, said["limit_fallback"], row.limit_fallback)
    if "limit_order" in said:
        changed["limit_order"] = _order(caller, said["limit_order"])
    if "month_budget" in said:
        budget = said["month_budget"]
        changed["month_budget_nano"] = None if budget is None else to_nano(budget)
    zone = said.get("time_zone") or ""
    if zone and not zones.is_zone(zone):
        raise Problem(422, f"time_zone: there is no zone {zone!r}; names are like Europe/Berlin.")
    if "time_zone" in said:
        change_zone(caller, zone, now)
    if changed:
        Preferences.objects.filter(pk=caller).update(**changed)


def _default(caller: int, said: dict[str, Any], row: Preferences) -> dict[str, str]:
    """Who a new chat starts with. The model is one that this account has; one of the account before doesn't stay."""
    changed: dict[str, str] = {}
    if "default_account" in said:
        changed["default_account"] = _account(caller, said["default_account"] or "", row.default_account, local=True)
        changed["default_model"] = "" if changed["default_account"] != row.default_account else row.default_model
    if "default_model" in said:
        changed["default_model"] = said["default_model"] or ""
        named = changed.get("default_account", row.default_account)
        slug = named or start_of(Preferences(), connected(caller)).account
        account = Account.objects.filter(person_id=caller, slug=slug, removed_at=None).first()
        if account is not None and changed["default_model"]:
            model_of(account, changed["default_model"])
    return changed


def _account(caller: int, slug: str, present: str, *, local: bool) -> str:
    """A slug that may be chosen: connected, or the one that is chosen already, even where it is gone since."""
    if slug in {"", present} or (local and slug == LOCAL):
        return slug
    if not Account.objects.filter(person_id=caller, slug=slug, removed_at=None).exists():
        raise Problem(422, f"There is no account {slug!r}.", code="no_account")
    return slug


def _fallback(caller: int, wanted: str, present: str) -> str:
    if wanted == LOCAL:
        raise Problem(422, "The model on this computer can't be the pick; offline_fallback lets it answer last.")
    return wanted if wanted in {"auto", "wait"} else _account(caller, wanted, present, local=False)


def _order(caller: int, wanted: list[str]) -> list[str]:
    """Slugs, best first. Those that are gone stay, and count again when that same account is back."""
    known = set(Account.objects.filter(person_id=caller).values_list("slug", flat=True))
    unknown = [slug for slug in wanted if slug not in known]
    if unknown:
        raise Problem(422, f"limit_order: there is no account {unknown[0]!r}.", code="no_account")
    if len(set(wanted)) != len(wanted):
        raise Problem(422, "limit_order: each account can stand in it once.")
    return wanted
