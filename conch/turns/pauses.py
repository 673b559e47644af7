"""Trying the same account again where nothing was accepted (R8): at most three times and sixty seconds in all."""

import random
from datetime import datetime, timedelta

from conch.engines.base import EngineError, Overloaded, Throttled, Unreachable
from conch.turns.clock import Clock

MOST_TRIES = 3
MOST_TIME = timedelta(seconds=60)
FIRST_PAUSE = 1.0


class Patience:
    """What is left of one attempt's tries and time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries = 0
        self._until: datetime = clock.now() + MOST_TIME

    def after(self, error: EngineError) -> float | None:
        """The seconds to wait before the same is sent again; None where it isn't.

        A pause that the provider asks for is kept to; one that would go beyond the sixty seconds ends the turn.
        """
        if not isinstance(error, Throttled | Overloaded | Unreachable) or self._tries >= MOST_TRIES:
            return None
        self._tries += 1
        wait = FIRST_PAUSE * 2 ** (self._tries - 1)
        if isinstance(error, Throttled):
            wait = max(error.retry_after, 1.0)
        wait += random.uniform(0, 0.25)  # noqa: S311  several chats don't come back in the same instant
        return wait if self._clock.now() + timedelta(seconds=wait) <= self._until else None


def words(error: EngineError, label: str, seconds: float) -> str:
    """What is said while it lasts (copy.md 4.2)."""
    whole = max(1, round(seconds))
    again = f"Trying again in {whole} second{'' if whole == 1 else 's'}."
    if isinstance(error, Throttled):
        return f"{label} asks for a pause. {again}"
    if isinstance(error, Overloaded):
        return f"{label} is overloaded. {again}"
    return f"{label} can’t be reached. {again}"
