"""How an action on a turn or chat can be refused, and how a turn can fail by itself."""

from conch.engines.base import EngineError, EngineFault


class TurnError(Exception):
    """An action that can't be done; raised as one of its subclasses."""


class NotHere(TurnError):
    """There is no such thing for this person (404)."""


class NotNow(TurnError):
    """It can't be done as things are (409); `text` says what would help."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class TooMuch(TurnError):
    """The input is over a limit (413 when `large`, else 422); `text` says what is allowed."""

    def __init__(self, text: str, *, large: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.large = large


class Unending(EngineFault):
    """The model goes on asking for tools without an end: the turn is ended, with what had arrived."""

    def __init__(self) -> None:
        super().__init__("it asked for tools again and again", accepted=True)


class AccountGone(EngineError):
    """The account was removed between two rounds of tools: nothing more is sent by it (R36)."""


class Stopped(Exception):
    """The turn isn't to go on here: its person stopped it, the process is about to end, or it runs here no more."""
