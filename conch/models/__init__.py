"""The tables: fields, constraints and tiny properties. Money is kept in nanodollars (R28: micro-dollars or finer)."""

from conch.models.accounts import Ability, Account, Refusal, Window, WindowSample
from conch.models.chat import Attachment, Attempt, Conversation, Line, Picture, ToolCall, Turn, TurnEvent
from conch.models.ledger import Entry, MonthTotal, PriceOverride
from conch.models.people import ApiToken, Person, Preferences, SigninFailure, SigninLink
from conch.models.tasks import Agent, Routine, RoutineRun, Task
from conch.models.tools import ToolPermission, ToolServer, ToolSignIn

__all__ = [
    "Ability",
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
    "Picture",
    "Preferences",
    "PriceOverride",
    "Refusal",
    "Routine",
    "RoutineRun",
    "SigninFailure",
    "SigninLink",
    "Task",
    "ToolCall",
    "ToolPermission",
    "ToolServer",
    "ToolSignIn",
    "Turn",
    "TurnEvent",
    "Window",
    "WindowSample",
]
