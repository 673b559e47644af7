"""The one place of this part that asks for the time or lets it pass; tests pass a clock of their own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is (UTC), and how to let seconds pass."""

    now: Callable[[], datetime] = _now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


SYSTEM = Clock()
