"""What is said of one choice (copy.md 4.1): facts, tag, why it is passed over, its line *In the order*. Pure.

Facts are joined by " · ". A time keeps its no-break spaces; every other space is an ordinary one.
"""

from dataclasses import dataclass
from datetime import datetime

from conch.copy.clock import Viewer, at_moment, moment
from conch.money import shown
from routing.facts import KEY
from routing.outcome import Skip
from routing.plan import Plan, PlanChoice, PlanLocal
from routing.room import TIMED

JOINED_BY = " · "
LET, BUDGET, CHANGE_BUDGET, SIGN_IN = "let", "budget", "change_budget", "sign_in"
UNKNOWN_ROOM = "Doesn’t say how much is left"

_TAGS = {
    "blocked": ("None left", "bad"),
    "at_limit": ("None left", "bad"),
    "refused": ("Refused", "warn"),
    "over_budget": ("Over budget", "bad"),
    "over_key_limit": ("Key limit reached", "bad"),
    "signed_out": ("Signed out", "warn"),
}
_REASONS = {
    "left_out": ("Left out by you.", LET),
    "signed_out": ("Sign in again to use it.", SIGN_IN),
    "needs_budget": (
        "Passed over for messages that go out while you’re away: no month’s budget is set.",
        BUDGET,
    ),
    "cannot_carry_tools": ("Passed over for chats that use tools: it can’t run them here.", ""),
    "cannot_carry_images": ("Passed over for this message: it can’t see images.", ""),
    "too_long": ("Passed over for this message: it is too long for it.", ""),
    "paid_off": ("Automatic passes it over: pay-per-use keys are off.", ""),
}
_IN_ORDER = {
    "left_out": "Left out by you",
    "signed_out": "Signed out",
    "over_key_limit": "Over its key’s own limit",
    "unpriced": "Pay per use, price unknown",
    "needs_budget": "Needs a month’s budget while you’re away",
    "cannot_carry_tools": "Can’t carry on chats that use tools",
    "cannot_carry_images": "Can’t see the images of this message",
    "too_long": "This message is too long for it",
    "paid_off": "Passed over: pay-per-use keys are off",
    "no_model": "There’s no model on this computer yet",
}


@dataclass(frozen=True, slots=True)
class Tag:
    """A word beside the name. `kind`: "warn" or "bad"."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why it is passed over, and what a person can do about it: let, budget, change_budget, sign_in or nothing."""

    text: str
    act: str = ""


def facts(choice: PlanChoice, plan: Plan, viewer: Viewer) -> tuple[str, ...]:
    """What is known of it, in words."""
    model = (f"Answers with {choice.model.label}",) if choice.model.label else ()
    if choice.kind == KEY:
        return (*_at_a_limit(choice, viewer), *_price(choice, plan), *_month(choice, plan), *model)
    return (*_room(choice, viewer), "Included in your plan", *model)


def facts_text(choice: PlanChoice, plan: Plan, viewer: Viewer) -> str:
    """The same as one line."""
    return JOINED_BY.join(facts(choice, plan, viewer))


def _room(choice: PlanChoice, viewer: Viewer) -> tuple[str, ...]:
    room = choice.room
    if room.state == "none":
        return _at_a_limit(choice, viewer)
    if room.resets_now:
        return ("Resets now",)
    if room.percent_left is None:
        return (UNKNOWN_ROOM,)
    return (f"{room.percent_left}% left", *_resets(room.resets_at, viewer))


def _at_a_limit(choice: PlanChoice, viewer: Viewer) -> tuple[str, ...]:
    """A plan at its limit, or a key whose provider counts windows."""
    if not {"blocked", "at_limit"}.intersection(choice.room.codes):
        return ()
    return (f"At its {_limit(choice)}", *_resets(choice.room.free_at, viewer))


def _limit(choice: PlanChoice) -> str:
    """Which limit it is: by its name where it isn't the shortest window (copy.md 0.7)."""
    room = choice.room
    return f"{room.window} limit" if room.longer and room.window and "at_limit" in room.codes else "limit"


def _resets(at: datetime | None, viewer: Viewer) -> tuple[str, ...]:
    return () if at is None else (f"resets {moment(at, viewer)}",)


def _price(choice: PlanChoice, plan: Plan) -> tuple[str, ...]:
    if choice.per_reply is not None:
        return (a_reply(choice),)
    bound = "Conch can’t price it" if plan.budget.amount is None else "Conch can’t price it, so no budget bounds it"
    return ("Pay per use", bound)


def a_reply(choice: PlanChoice) -> str:
    """What a reply costs: "About $0.02 a reply", or "Pay per use" where it can't be priced (R5)."""
    return "Pay per use" if choice.per_reply is None else f"About {shown(choice.per_reply)} a reply"


def _month(choice: PlanChoice, plan: Plan) -> tuple[str, ...]:
    """What is left of the budget that bounds it; nothing where it is over a limit, or can't be priced."""
    if choice.per_reply is None or choice.room.state == "none":
        return ()
    if plan.budget.amount is None or plan.month_left is None:
        return ("No budget set",)
    return (f"{shown(plan.month_left)} of {shown(plan.budget.amount)} left this month",)


def tag(choice: PlanChoice) -> Tag | None:
    """The word beside its name, where its state needs one."""
    known = _TAGS.get(choice.skip.code) if choice.skip is not None else None
    if known is None and choice.room.state == "low":
        known = ("Low", "warn")
    return None if known is None else Tag(*known)


def reason(choice: PlanChoice, plan: Plan, viewer: Viewer) -> Reason | None:
    """Why Automatic passes it over, as a sentence; None where it doesn't."""
    skip = choice.skip
    if skip is None:
        return None
    if skip.code in TIMED:
        return _for_now(choice, skip, plan, viewer)
    if skip.code == "unpriced" and plan.limit_paid:
        return Reason("Automatic passes it over: Conch can’t price it, so no budget bounds it.")
    return Reason(*_REASONS.get(skip.code, _REASONS["paid_off"]))


def _for_now(choice: PlanChoice, skip: Skip, plan: Plan, viewer: Viewer) -> Reason:
    """Passed over for something that ends by itself."""
    if skip.code == "refused":
        return Reason(_refused(skip, viewer))
    if skip.code == "over_budget":
        return _over_budget(choice, skip, plan, viewer)
    if skip.code == "over_key_limit":
        return Reason(_over_key_limit(choice))
    return Reason(f"Passed over until {moment(skip.until, viewer) if skip.until else 'it answers again'}.")


def _refused(skip: Skip, viewer: Viewer) -> str:
    when = "" if skip.at is None else f" {at_moment(skip.at.replace(second=0, microsecond=0), viewer)}"
    said = f"It refused for a limit{when}."
    if skip.until is not None:
        return f"{said} Passed over until {moment(skip.until, viewer)}."
    return f"{said} Conch tries it again{_tries(skip, viewer)}."


def _tries(skip: Skip, viewer: Viewer) -> str:
    return "" if skip.retry_at is None else f" {at_moment(skip.retry_at, viewer)}"


def _over_budget(choice: PlanChoice, skip: Skip, plan: Plan, viewer: Viewer) -> Reason:
    budget = "budget" if plan.budget.amount is None else shown(plan.budget.amount)
    if choice.room.held_only:
        # R16: nothing says that the month is spent where only what running turns hold is in the way.
        return Reason(f"Answers that are running may use what is left of this month’s {budget}.")
    passed = f" Passed over until {moment(skip.until, viewer)}." if skip.until is not None else ""
    return Reason(f"This month’s {budget} is spent.{passed}", CHANGE_BUDGET)


def _over_key_limit(choice: PlanChoice) -> str:
    if choice.room.held_only:
        return "Answers that are running may use what is left of its limit."
    if choice.own_limit is not None and choice.own_limit_binds:
        return f"The {shown(choice.own_limit)} you set for it is spent."
    return f"The limit set at {choice.label.partition(JOINED_BY)[0]} is reached."


def in_the_order(choice: PlanChoice, viewer: Viewer) -> str:
    """How it stands, in a few words: its line *In the order*, and the text of its `skip` in the API."""
    skip = choice.skip
    if skip is not None:
        return skip_text(choice, skip, viewer)
    room = choice.room
    if choice.kind == KEY and room.state != "low":
        return a_reply(choice)
    if room.percent_left is None:
        return _room(choice, viewer)[0]
    left = ", ".join((f"{room.percent_left}% left", *_resets(room.resets_at, viewer)))
    return f"Low: {left}" if room.state == "low" else left


def skip_text(choice: PlanChoice, skip: Skip, viewer: Viewer) -> str:
    """Why it is passed over, in a few words."""
    until = f" until {moment(skip.until, viewer)}" if skip.until is not None else ""
    if skip.code in {"blocked", "at_limit"}:
        return f"At its {_limit(choice)}{until}"
    if skip.code == "refused":
        tried = f"Passed over{until}" if until else f"Tried again{_tries(skip, viewer)}"
        return f"Refused for a limit. {tried}"
    if skip.code == "over_budget":
        return "Held by answers that are running" if choice.room.held_only else f"Over this month’s budget{until}"
    return _IN_ORDER.get(skip.code, "Passed over")


def local_skip_text(local: PlanLocal) -> str:
    """Why the model on this computer couldn't answer; "" where it could."""
    return "" if local.skip is None else _IN_ORDER.get(local.skip.code, "Passed over")
