"""The tables: fields, constraints and tiny properties. Money is kept in nanodollars (R28: micro-dollars or finer)."""

from conch.models.accounts import Account, Refusal, Window, WindowSample
from conch.models.chat import Attachment, Attempt, Conversation, Line, Turn, TurnEvent
from conch.models.ledger import Entry, MonthTotal, PriceOverride
from conch.models.people import ApiToken, Person, Preferences, SigninFailure, SigninLink
from conch.models.tasks import Agent, Routine, RoutineRun, Task

__all__ = [
    "Account",
    "Agent",
    "ApiToken",
    "Attachment",
    "Attempt",
    "Conversation",
    "Entry",
    "Line",
    "MonthTotal",
    "Person",
    "Preferences",
    "PriceOverride",
    "Refusal",
    "Routine",
    "RoutineRun",
    "SigninFailure",
    "SigninLink",
    "Task",
    "Turn",
    "TurnEvent",
    "Window",
    "WindowSample",
]
