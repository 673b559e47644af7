"""An answer that is growing, as a page shows it: finished blocks rendered once, the tail again and again.

A place in it is `run.discards.blocks`: a page that takes its stream up again from there gets each block once. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from conch.chat import markdown


@dataclass(slots=True)
class Growing:
    """What has arrived of one run's answer. `had`: where the page was when it asks again, "" for a new page."""

    run: int
    had: str = ""
    discards: int = 0
    sent: int = 0
    tail: str = ""
    cleared: bool = False

    def __post_init__(self) -> None:
        # A new page, or one that was in another run, is given all of it anew.
        self.cleared = self._had() is None

    @property
    def place(self) -> str:
        """Where a page is that has all that was told."""
        return f"{self.run}.{self.discards}.{self.sent}"

    def add(self, text: str) -> None:
        """More of the answer. What it finishes is found when it is told: parsing at every piece would add up."""
        self.tail += text.replace("\r", "")

    def discard(self) -> None:
        """What streamed so far leaves the answer (R17)."""
        self.discards += 1
        self.sent, self.tail = 0, ""
        had = self._had()
        self.cleared = had is None or self.discards > had[0]

    def told(self) -> Iterator[tuple[str, str]]:
        """What the page needs to know now: ("clear", ""), ("block", html)…, ("tail", html)."""
        discards, blocks = self._had() or (0, 0)
        if self.discards < discards:
            # The page has seen this text leave the answer already.
            return
        if self.cleared:
            yield "clear", ""
            self.cleared = False
        finished, self.tail = markdown.blocks(self.tail)
        for block in finished:
            self.sent += 1
            if self.discards > discards or self.sent > blocks:
                yield "block", markdown.render(block)
        yield "tail", markdown.render_tail(self.tail)

    def _had(self) -> tuple[int, int] | None:
        """The discards and blocks of this run that the page has; None for none of it."""
        run, *rest = self.had.split(".")
        if run != str(self.run) or len(rest) != 2 or not all(number.isdigit() for number in rest):
            return None
        return int(rest[0]), int(rest[1])
