"""Reading what accounts have left, ahead of a turn (R29): when a figure is old and somebody would go by it.

No reading asks for a reply. One that fails changes nothing but when the meter is asked again.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from conch.accounts.access import access_for
from conch.accounts.room import keep_reading, record_failed_reading
from conch.accounts.seal import CantUnseal
from conch.db import look, step
from conch.engines.base import EngineError, Throttled
from conch.engines.registry import engine, paths
from conch.models import Account, Refusal, Turn

OLD_ON_A_PAGE = timedelta(minutes=1)
OLD_IN_USE = timedelta(minutes=5)
IN_USE = timedelta(hours=6)
MOST_AT_ONCE = 20


def due(now: datetime) -> list[int]:
    """The accounts in use, or passed over for a limit, whose figures are some minutes old."""
    used = Turn.objects.filter(
        account=OuterRef("slug"), conversation__person_id=OuterRef("person_id"), created_at__gt=now - IN_USE
    )
    refused = Refusal.objects.filter(account=OuterRef("pk"), retry_at__gt=now)
    stale = _stale(now, OLD_IN_USE).filter(Exists(used) | Exists(refused))
    return list(stale.order_by("read_at").values_list("pk", flat=True)[:MOST_AT_ONCE])


def due_on_a_page(person_id: int, now: datetime) -> list[int]:
    """The person's accounts whose figures are over a minute old: for a page that shows them."""
    stale = _stale(now, OLD_ON_A_PAGE).filter(person_id=person_id)
    return list(stale.values_list("pk", flat=True)[:MOST_AT_ONCE])


def _stale(now: datetime, age: timedelta) -> QuerySet[Account]:
    metered = [name for name in paths() if _tells(name)]
    return Account.objects.filter(
        Q(read_at=None) | Q(read_at__lt=now - age),
        Q(read_backoff_until=None) | Q(read_backoff_until__lte=now),
        removed_at=None,
        engine__in=metered,
        state__in=[Account.State.OK, Account.State.UNREACHABLE, Account.State.NO_CREDIT],
    )


def _tells(name: str) -> bool:
    """Whether that engine can say what is left; one that isn't installed can't."""
    try:
        return engine(name).meters
    except (ImportError, AttributeError):
        return False


async def read(account_id: int, now: datetime) -> bool:
    """Read one account's room and keep it; True when somebody may be able to answer who couldn't before."""
    account = await look(Account.objects.select_related("person").filter(pk=account_id).first)
    if account is None:
        return False
    try:
        room = await engine(account.engine).read_room(access_for(account))
    except Throttled as error:
        await step(record_failed_reading, account_id, now, retry_after=error.retry_after)
        return False
    except (EngineError, CantUnseal):
        await step(record_failed_reading, account_id, now)
        return False
    return room is not None and await step(keep_reading, account_id, room, now)
