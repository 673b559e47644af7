"""What windows read over the last two weeks, an hour apart: for the plot of usage, never for a route."""

from collections.abc import Sequence
from datetime import datetime

from conch.models import Person, Window, WindowSample

HOURS = 14 * 24


def keep_samples(windows: Sequence[Window]) -> None:
    """Keep what these windows have just read as the figure of this hour. Runs inside a step."""
    samples = [
        WindowSample(
            account_id=window.account_id,
            name=window.name,
            slot=int(window.read_at.timestamp() // 3600) % HOURS,
            at=window.read_at,
            used_percent=window.used_percent,
        )
        for window in windows
        if window.used_percent is not None
    ]
    if samples:
        WindowSample.objects.bulk_create(
            samples,
            update_conflicts=True,
            unique_fields=["account", "name", "slot"],
            update_fields=["at", "used_percent"],
        )


def samples_of(person: Person, since: datetime) -> dict[tuple[int, str], list[tuple[datetime, float]]]:
    """Account's id and window's name → its figures since then, oldest first. One query."""
    mine = WindowSample.objects.filter(account__person=person, account__removed_at=None, at__gte=since)
    found: dict[tuple[int, str], list[tuple[datetime, float]]] = {}
    for account_id, name, at, used in mine.order_by("at").values_list("account_id", "name", "at", "used_percent"):
        found.setdefault((account_id, name), []).append((at, used))
    return found
