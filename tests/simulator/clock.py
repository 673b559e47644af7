"""The simulator's own clock, so that resets can lie minutes away without waiting for them."""

import time
from datetime import UTC, datetime
from email.utils import formatdate


class Clock:
    """Real time plus an offset; or standing still. `skew` seconds are added to the Date header alone."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._offset = 0.0
        self._stands_at: float | None = None
        self.skew = 0.0

    def now(self) -> float:
        """Unix seconds."""
        return time.time() + self._offset if self._stands_at is None else self._stands_at

    def set(self, at: datetime, *, stands_still: bool = False) -> None:
        self._stands_at = at.timestamp() if stands_still else None
        self._offset = at.timestamp() - time.time()

    def forward(self, seconds: float) -> None:
        if self._stands_at is not None:
            self._stands_at += seconds
        self._offset += seconds

    @property
    def date(self) -> str:
        """What the Date header says."""
        return formatdate(self.now() + self.skew, usegmt=True)


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
