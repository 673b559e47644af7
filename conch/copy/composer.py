"""What stands under the message box (who pays, what happens next: copy.md 2.4), and the rows of the account picker."""

from datetime import datetime
from decimal import Decimal

from conch.copy.clock import Viewer, at_moment, moment
from conch.money import shown


def in_plan(plan_name: str) -> str:
    """A plan pays: "In your ChatGPT plan."."""
    return f"In your {plan_name}." if plan_name else "In your plan."


def by_key(per_reply: Decimal | None, month_left: Decimal | None, *, capped: bool = False) -> str:
    """A key pays; without a price no budget and no cap of a chat can bound it, and that is said (R18, R33)."""
    if per_reply is None:
        bound = "this chat’s amount" if capped else "this month’s budget"
        unbounded = f" {bound[0].upper()}{bound[1:]} can’t bound it." if capped or month_left is not None else ""
        return f"Pay per use; Conch can’t price it.{unbounded}"
    left = f"{shown(month_left)} left this month" if month_left is not None else "no budget set"
    return f"About {shown(per_reply)} a reply, {left}."


def here(note: str) -> str:
    """The model on this computer is free; `note` says what to expect of the tiny one."""
    return f"Free, on this computer: {note}." if note else "Free, on this computer."


def back_to(label: str, until: datetime | None, viewer: Viewer) -> str:
    """Who answers again, and when."""
    return f"Back to {label} {at_moment(until, viewer)}." if until else f"Back to {label} once it resets."


def waits_for(label: str, until: datetime | None, viewer: Viewer) -> str:
    """Nobody would answer now: a message sent now waits."""
    return f"{label} is at its limit{f' until {moment(until, viewer)}' if until else ''}: messages wait for it."


def no_room(label: str, until: datetime | None, viewer: Viewer) -> str:
    """The same where nobody at all has room."""
    following = f" {label} is next, {at_moment(until, viewer)}." if label and until else ""
    return f"No account has room.{following}"


def plan_row(*, percent: int | None, resets_at: datetime | None, resets_now: bool, model: str, viewer: Viewer) -> str:
    """A plan with room, in the picker: "72% left, resets 6:40 PM. GPT-5.5"."""
    if resets_now:
        room = "Resets now"
    elif percent is None:
        room = "Doesn’t say how much is left"
    else:
        room = f"{percent}% left" + (f", resets {moment(resets_at, viewer)}" if resets_at else "")
    return f"{room}. {model}" if model else room


def not_listed(model: str) -> str:
    """A model that was picked and that its account's list doesn't have any more."""
    return f"{model} (not in its list any more)"


def key_row(per_reply: Decimal | None, month_left: Decimal | None, model: str) -> str:
    """A key, in the picker: "About $0.02 a reply, $6.90 left this month"."""
    return f"{by_key(per_reply, month_left)} {model}".strip()


def at_limit_row(window: str, until: datetime | None, viewer: Viewer) -> str:
    """One at its limit, in the picker."""
    which = f"{window} limit" if window else "limit"
    return f"At its {which}{f' until {moment(until, viewer)}' if until else ''}."


def refused_row(until: datetime | None, retry_at: datetime | None, viewer: Viewer) -> str:
    """One that refused for a limit: the 15 minutes are never shown as a reset (R8)."""
    if until:
        return f"Refused for a limit. Passed over until {moment(until, viewer)}."
    return f"Refused for a limit. Tried again {at_moment(retry_at, viewer)}." if retry_at else "Refused for a limit."


def local_row(note: str, *, present: bool) -> str:
    """The model on this computer, in the picker."""
    if not present:
        return "There’s no model on this computer yet."
    return f"Free, private: {note}" if note else "Free, private"


def stands_as(code: str, window: str, until: datetime | None, retry_at: datetime | None, viewer: Viewer) -> str:
    """One that can't answer now for its limit or for money, in the picker, by the code of R10."""
    if code == "refused":
        return refused_row(until, retry_at, viewer)
    said = {"over_budget": "This month’s budget is spent.", "over_key_limit": "Its limit is reached."}
    return said.get(code) or at_limit_row(window, until, viewer)
