"""Why a server couldn't be used, as a code with facts; conch/copy/tools.py says it."""

from typing import Any


class ToolTrouble(Exception):
    """A server can't be used now. `sent`: whether a call may have reached it, and so may have done something."""

    def __init__(self, code: str, *, sent: bool = False, **facts: Any) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts
        self.sent = sent

    def as_kept(self) -> dict[str, Any]:
        """As a row keeps it."""
        return {"code": self.code, **self.facts}
