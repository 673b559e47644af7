"""What a server lists, as it was read in an open session: by it a call knows whether its tool is still what it was."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from conch import reread

A_DAY = reread.A_DAY.total_seconds()


class Listed:
    """The list of one session: a digest for each tool. `reading`: held by whoever reads it."""

    def __init__(self) -> None:
        self.reading = asyncio.Lock()
        self._digests: Mapping[str, str] = {}
        self._notices = 0
        self._read_at: tuple[float, int] | None = None
        self._follows: Callable[[], Any] | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def stale(self) -> bool:
        """Whether it is to be read: it never was, a day ago, or the server has said since that it is another."""
        if self._read_at is None:
            return True
        at, notices = self._read_at
        return notices != self._notices or asyncio.get_running_loop().time() - at >= A_DAY

    def has(self, tool: str, digest: str) -> bool:
        """Whether that tool is listed, and as it was then."""
        return self._digests.get(tool) == digest

    def begin(self) -> int:
        """What `took` is told: notices that come while it is read say that it may be old already."""
        return self._notices

    def took(self, digests: Mapping[str, str], begun: int) -> None:
        """Keep what was read."""
        self._digests, self._read_at = digests, (asyncio.get_running_loop().time(), begun)

    def changed(self) -> None:
        """The server says that its list is another one."""
        self._notices += 1
        if self._follows is not None and (self._following is None or self._following.done()):
            self._following = asyncio.get_running_loop().create_task(self._follows(), name="tool list")

    def followed_by(self, follows: Callable[[], Any]) -> None:
        """What is done once the server says so, one at a time."""
        self._follows = follows

    def close(self) -> None:
        """The session is over: nothing is read in it any more."""
        self._follows = None
        if self._following is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._following.cancel()
