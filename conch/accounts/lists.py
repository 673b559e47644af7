"""Reading again which models an account has and what each takes: once a day, and when a page shows an older list.

No reading asks for a reply. One that fails, or lists nothing, changes nothing but when the list is read again. What was
picked stays picked, whether it is listed or not (R12).
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from conch import reread
from conch.accounts import abilities
from conch.accounts.access import access_for
from conch.accounts.seal import CantUnseal
from conch.db import step
from conch.engines.base import EngineError, KnownModels, Model, Throttled
from conch.engines.registry import UnknownEngine, engine
from conch.models import Account

MOST_AT_ONCE = 20
STATES = (Account.State.OK, Account.State.UNREACHABLE, Account.State.NO_CREDIT)

_looking: set[int] = set()


def shown_to(person_id: int) -> None:
    """A page shows this person's models: the worker of this process reads what is due. It costs the page nothing."""
    _looking.add(person_id)


def looking() -> set[int]:
    """Who has been shown their models since this was asked last."""
    people = set(_looking)
    _looking.difference_update(people)
    return people


def due(now: datetime, people: Collection[int] | None = None) -> list[int]:
    """The accounts whose list of models is due, of these people or of all; never one that is signed out."""
    rows = Account.objects.filter(removed_at=None, state__in=STATES)
    if people is not None:
        rows = rows.filter(person_id__in=people)
    return list(reread.due(rows, now).order_by("listed_at").values_list("pk", flat=True)[:MOST_AT_ONCE])


async def read_if_due(account_id: int, now: datetime) -> bool:
    """Read one account's list where nobody else does, and keep it; True when it says something else than before."""
    account = await step(_taken, account_id, now)
    return account is not None and await read(account, now)


async def read(account: Account, now: datetime) -> bool:
    """The same, whether it is due or not. `account.person` must be loaded."""
    try:
        listed = await engine(account.engine).models(access_for(account))
    except Throttled as error:
        await step(_failed, account, now, error.retry_after)
        return False
    except (EngineError, CantUnseal, UnknownEngine, ImportError, AttributeError):
        await step(_failed, account, now)
        return False
    if not listed or isinstance(listed, KnownModels):
        await step(_failed, account, now)
        return False
    return await step(keep, account, listed, now)


def as_kept(listed: Sequence[Model], now: datetime) -> dict[str, Any]:
    """The columns of a list that was read at connecting; one that the provider didn't give is due at once."""
    told = [facts_of(model) for model in listed]
    if not listed or isinstance(listed, KnownModels):
        return {"known_models": told, "listed_at": None, "list_failed_at": None, "list_pause_until": None}
    return {"known_models": told, **reread.read(now)}


def facts_of(model: Model) -> dict[str, Any]:
    """A model as an account's row keeps it."""
    return {
        "id": model.id,
        "label": model.label,
        "tools": model.tools,
        "images": model.images,
        "context": model.context,
        "input_price": None if model.input_price is None else str(model.input_price),
        "output_price": None if model.output_price is None else str(model.output_price),
    }


# Steps: database work only.


def _taken(account_id: int, now: datetime) -> Account | None:
    """The account as it was, for whoever reads its list now."""
    account = Account.objects.select_related("person").filter(pk=account_id, removed_at=None).first()
    return account if account is not None and reread.taken(Account.objects.all(), account_id, now) else None


def _failed(account: Account, now: datetime, retry_after: float | None = None) -> None:
    _still(account).update(**reread.failed(account, now, retry_after))


def keep(account: Account, listed: Sequence[Model], now: datetime) -> bool:
    """Keep what was listed of the account as it was when it was asked; True when that is something else than before."""
    told = [facts_of(model) for model in listed]
    before = _still(account).values_list("known_models", flat=True).first()
    if before is None:
        return False
    changed = {"known_models": told} if told != before else {}
    _still(account).update(**reread.read(now), **changed)
    abilities.forget_what_changed(account.pk, before, told)
    return bool(changed)


def _still(account: Account) -> QuerySet[Account]:
    """The row, while it is of the very sign-in or key that was asked, at the same address."""
    same = {name: getattr(account, name) for name in ("identity", "key_fingerprint", "base_url", "home")}
    return Account.objects.filter(pk=account.pk, removed_at=None, **same)
