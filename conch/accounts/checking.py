"""Asking an account's provider how things stand: *Check now*. Never asks for a reply."""

from datetime import datetime

from conch.accounts import abilities, lists
from conch.accounts.access import access_for
from conch.accounts.room import keep_reading, record_failed_reading
from conch.accounts.seal import CantUnseal
from conch.db import step
from conch.engines.base import EngineError, SignedOut
from conch.engines.registry import engine
from conch.models import Account


async def check(account: Account, now: datetime) -> None:
    """Read the account's room and its models now, and allow one attempt past a refusal (R29).

    `account.person` must be loaded. What its models once couldn't take is taken for able again (R9). A failure changes
    no figure: the last ones stay, with their age. What is learned of the sign-in is kept.
    """
    asked = engine(account.engine)
    try:
        access = access_for(account)
        await asked.identify(access)
        room = await asked.read_room(access)
    except (SignedOut, CantUnseal):
        out = Account.State.WRONG_KEY if account.sealed_key else Account.State.SIGNED_OUT
        await step(_failed, account.pk, now, out)
        return
    except EngineError:
        await step(_failed, account.pk, now, None)
        return
    await step(_well, account.pk, now)
    if room is not None:
        await step(keep_reading, account.pk, room, now)
    await lists.read(account, now)


def _failed(account_id: int, now: datetime, state: str | None) -> None:
    record_failed_reading(account_id, now)
    changed = {"attempt_allowed_at": now} | ({"state": state} if state else {})
    Account.objects.filter(pk=account_id).update(**changed)


def _well(account_id: int, now: datetime) -> None:
    Account.objects.filter(pk=account_id).update(state=Account.State.OK, attempt_allowed_at=now)
    abilities.forget_refusals(account_id)
