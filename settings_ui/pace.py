"""At which pace a window fills: from what is used of it and how long it has run. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Pace:
    """`full_at`: when it will be full if used as until now; None: not before it resets."""

    full_at: datetime | None


def pace(
    used_percent: float | None, resets_at: datetime | None, length_minutes: int | None, read_at: datetime
) -> Pace | None:
    """The pace of a window since it began; None where that can't be known (nothing used, no length, no reset).

    A window that has run for less than a twentieth of its length says too little.
    """
    if not used_percent or used_percent >= 100 or resets_at is None or not length_minutes:
        return None
    length = timedelta(minutes=length_minutes)
    run = read_at - (resets_at - length)
    if run < length / 20 or read_at >= resets_at:
        return None
    full_at = read_at + run * ((100 - used_percent) / used_percent)
    return Pace(full_at if full_at < resets_at else None)
