"""When a list that somebody else keeps is read again by itself: the models of an account, the tools of a server.

A row that has such a list says when it was read last (`listed_at`), when reading it failed (`list_failed_at`), and
until when it is left alone (`list_pause_until`). All of it runs inside a step or a look; nobody is asked here.
"""

from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

A_DAY = timedelta(days=1)
# One reading takes no longer; until then no other process begins the same.
AT_WORK = timedelta(minutes=5)
# A list that couldn't be read is asked for again after this, twice as long each time.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), A_DAY
# A time further ahead than this was written before the clock was set back.
AHEAD = timedelta(minutes=1)

M = TypeVar("M", bound=Model)


def due(rows: QuerySet[M], now: datetime) -> QuerySet[M]:
    """Those whose list is a day old, or was never read, and that aren't left alone now."""
    old = Q(listed_at=None) | Q(listed_at__lte=now - A_DAY) | Q(listed_at__gt=now + AHEAD)
    free = Q(list_pause_until=None) | Q(list_pause_until__lte=now) | Q(list_pause_until__gt=now + LONGEST_PAUSE + AHEAD)
    return rows.filter(old, free)


def taken(rows: QuerySet[M], pk: int, now: datetime) -> bool:
    """Whether this caller reads that list now: it is due, and no other process reads it."""
    return bool(due(rows.filter(pk=pk), now).update(list_pause_until=now + AT_WORK))


def read(now: datetime) -> dict[str, Any]:
    """The columns of a list that was read."""
    return {"listed_at": now, "list_failed_at": None, "list_pause_until": None}


def failed(before: Any, now: datetime, retry_after: float | None = None) -> dict[str, Any]:
    """The columns of a list that couldn't be read. `before`: its row as it was; `retry_after`: seconds, where told."""
    pause = next_pause(before.list_failed_at, before.list_pause_until)
    if retry_after is not None and 0 < retry_after < LONGEST_PAUSE.total_seconds():
        pause = max(pause, timedelta(seconds=retry_after))
    return {"list_failed_at": now, "list_pause_until": now + pause}


def next_pause(failed_at: datetime | None, until: datetime | None) -> timedelta:
    """How long a list is left alone after a failure, by how long it was left alone after the last."""
    if failed_at is None or until is None or until <= failed_at:
        return FIRST_PAUSE
    return min(2 * (until - failed_at), LONGEST_PAUSE)
