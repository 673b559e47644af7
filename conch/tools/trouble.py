"""Why a server couldn't be used, as a code with facts; conch/copy/tools.py says it."""

from typing import Any


class ToolTrouble(Exception):
    """A server can't be used now. `sent`: whether a call may have reached it, and so may have done something.

    `challenge`: what a server that refused asks for (WWW-Authenticate); no part of the facts.
    """

    challenge = ""

    def __init__(self, code: str, *, sent: bool = False, **facts: Any) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts
        self.sent = sent

    def anew(self) -> "ToolTrouble":
        """The same, for one of several who meet it: each may know more of its own call."""
        made = ToolTrouble(self.code, sent=self.sent, **self.facts)
        made.challenge = self.challenge
        return made

    def as_kept(self) -> dict[str, Any]:
        """As a row keeps it."""
        return {"code": self.code, **self.facts}
