"""GET /api/accounts, PATCH and check of one."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from conch.accounts.defaults import LOCAL
from conch.api.caller import answer, person_id
from conch.api.problems import Problem
from conch.api.rooms import account_json, accounts_json
from conch.api.schemas import AccountChange
from conch.db import look, step
from conch.models import Account
from conch.money import to_nano
from conch.turns import doors
from conch.turns.errors import NotHere

router = Router(tags=["accounts"])


@router.get("/accounts", summary="The accounts")
async def list_accounts(request: HttpRequest) -> HttpResponse:
    """The connected accounts in the order they were connected, then `local`, with what is known of their room."""
    return answer(await look(accounts_json, person_id(request), timezone.now()))


@router.patch("/accounts/{str:slug}", summary="Change an account")
async def change_account(request: HttpRequest, slug: str, given: AccountChange) -> HttpResponse:
    """Its label, default model, whether Automatic may carry on with it, and a limit of the person's own for a key."""
    caller = person_id(request)
    await step(_change, caller, slug, given.said())
    await doors.asked_again(caller)
    return answer(await look(account_json, caller, slug, timezone.now()))


@router.post("/accounts/{str:slug}/check", summary="Check an account now")
async def check_account(request: HttpRequest, slug: str) -> HttpResponse:
    """Read its room now, and allow one attempt past a refusal (R29). A reading that fails changes no figure."""
    from conch.accounts.checking import check

    caller = person_id(request)
    if slug != LOCAL:
        await check(await look(_own, caller, slug), timezone.now())
        await doors.asked_again(caller)
    return answer(await look(account_json, caller, slug, timezone.now()))


def _own(caller: int, slug: str) -> Account:
    account = Account.objects.select_related("person").filter(person_id=caller, slug=slug, removed_at=None).first()
    if account is None:
        raise NotHere
    return account


def _change(caller: int, slug: str, said: dict[str, Any]) -> None:
    if slug == LOCAL:
        raise Problem(409, "The model on this computer is chosen by CONCH_LOCAL_URL or CONCH_LOCAL_MODEL.")
    account = _own(caller, slug)
    changed: dict[str, Any] = {name: said[name] for name in ("label", "carries_on") if name in said}
    if "model" in said and said["model"] != account.model:
        changed["model"] = model_of(account, said["model"])
    if "own_limit" in said:
        limit = said["own_limit"]
        changed["own_limit_nano"] = None if limit is None else to_nano(limit)
    if changed:
        Account.objects.filter(pk=account.pk).update(**changed)


def model_of(account: Account, wanted: str) -> str:
    """A model that the account's engine lists; any, where it lists none. Raises Problem."""
    known = [str(model.get("id")) for model in account.known_models]
    if known and wanted not in known:
        some = ", ".join(known[:5]) + (", …" if len(known) > 5 else "")
        raise Problem(422, f"{account.label} has no model {wanted!r}; it has {some}.", code="no_model")
    return wanted
