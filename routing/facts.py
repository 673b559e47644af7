"""What a route is decided from: frozen facts, gathered beforehand; nothing here asks anybody (R10).

Times are aware instants (UTC), money is USD as Decimal, percentages are 0 to 100 used. `routing.known` makes these
from rows; tests make them by hand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

PLAN, KEY, LOCAL = "plan", "key", "local"
AUTO, WAIT = "auto", "wait"


@dataclass(frozen=True, slots=True)
class Model:
    """A model with what it can take; None: not known, and taken as able (R9).

    In tokens: `context`, the model's own, holds a chat and its answer; `most_input` is what a request may hold, in
    tokens as Conch counts them, where that is known or isn't simply what the context leaves.
    """

    id: str
    label: str = ""
    tools: bool | None = None
    images: bool | None = None
    context: int | None = None
    most_input: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A plan's metered span as last read (R6). `covers`: model ids or families ("opus"); empty: every model."""

    name: str
    used_percent: float | None = None
    resets_at: datetime | None = None
    covers: tuple[str, ...] = ()
    length_minutes: int | None = None
    read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """An account said no for a limit (R8): `blocked` where it is metered and said so, else `refused`.

    `until` is the provider's own reset or None; `retry_at` is when it is asked again, never shown as a reset.
    `model`: the one model it names, "" for the whole account. `reason`: "limit", "money" (no credit) or
    "not_entitled". `before`: the windows as read before it, to tell an early reset from a wrong meter (R29).
    """

    kind: str
    at: datetime
    retry_at: datetime
    until: datetime | None = None
    model: str = ""
    reason: str = "limit"
    before: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """One connected account, seen as a way into a choice (R1).

    `model` is the one it would answer with (R12), `default_model` its account's own. `state` as in doors.md.
    Prices are None where the model can't be priced: `typical` is the typical reply of the default model (R4, R5),
    `per_reply` the estimate that is shown (for this chat's length where one is known), `smallest` the least that a
    request must hold (R7). `ratio`: how many of its model's own tokens one counted here is taken for; what its models
    take is in tokens as counted here. Of a key, this month: `spent`, `held`; `own_limit` is the limit set in Conch;
    `cap`, `cap_left` and `cap_resets_at` are the provider's own, as last read. `attempt_allowed_at`: *Check now* (R29).
    """

    slug: str
    engine: str
    label: str
    billing: str
    shares_account: str
    model: Model
    default_model: Model | None = None
    identity: str = ""
    whose: str = ""
    plan: str = ""
    organization: str = ""
    key_hint: str = ""
    state: str = "ok"
    carries_on: bool = True
    metered: bool = True
    windows: tuple[Window, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    attempt_allowed_at: datetime | None = None
    typical: Decimal | None = None
    per_reply: Decimal | None = None
    smallest: Decimal | None = None
    spent: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    own_limit: Decimal | None = None
    cap: Decimal | None = None
    cap_left: Decimal | None = None
    cap_resets_at: datetime | None = None
    ratio: float = 1.0
    # The engine's own list of models as kept, for who works out prices; no rule looks into it.
    listed: Sequence[Mapping[str, Any]] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the person prefers (product.md, Preferences), with `offline_fallback` made out where it is unset."""

    limit_fallback: str = AUTO
    limit_order: tuple[str, ...] = ()
    limit_return: bool = True
    limit_paid: bool = False
    offline_fallback: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """The month's budget (None: none), what is spent and held in the month, and when the month ends."""

    amount: Decimal | None = None
    spent: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """The model on this computer: of no choice, in no order. `present`: it could answer now."""

    present: bool = False
    model: Model = Model("local", "The model on this computer")
    tiny: bool = True


@dataclass(frozen=True, slots=True)
class LastRoute:
    """The chat's latest routed line, unless a `limit.returned` came after it (R20, R22).

    `folded`: Switch back folded it (R23), so it no longer says who answers.
    """

    from_: str
    to: str
    until: datetime | None = None
    folded: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """The conversation asked for. `account` is its own; `account_label` names it also where it is gone (R36).

    `waits_until`: Switch back stands until then (R23). `stayed_*`: R21, with the yes that brought it to a key.
    `cap`, `spent`, `held`: R18. `last_answered_by`: who gave the latest answer, "" for nobody.
    """

    account: str
    account_label: str = ""
    waits_until: datetime | None = None
    stayed_from: str = ""
    stayed_consent: str = ""
    cap: Decimal | None = None
    spent: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    last_route: LastRoute | None = None
    last_answered_by: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the chat needs of a model (R9).

    `tokens`: the whole chat as it would be sent; `newest_tokens`: the newest message and the instructions alone.
    `images`: in the newest message; `older_images`: in the messages before it.
    """

    tools: bool = False
    images: bool = False
    older_images: bool = False
    tokens: int = 0
    newest_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Tried:
    """An account already asked in this run, and why it is passed over for the rest of it (R17).

    `code`: "refused" (a limit: its twins too), or why it was unable, at no cost: "signed_out", "model_gone",
    "unable" (that way alone).
    """

    slug: str
    code: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One go at answering a turn.

    `once`: answer-with names this account (R27). `carry_on`: *Carry on with {B}* asks this one first (R23).
    `unattended`: a background task. `routine`: a prompt on a schedule (R25). `waiting`: the turn waits and is asked
    again by itself; `waiting_since`: since when it waits, also where a person asks again; `wakes`: how often it was
    asked while no reset was known. `after_failure`: this run replaces a failure (R22). `offline`: nothing could be
    sent and no other host answers either (R19).
    """

    tried: tuple[Tried, ...] = ()
    once: str = ""
    carry_on: str = ""
    unattended: bool = False
    routine: bool = False
    waiting: bool = False
    waiting_since: datetime | None = None
    wakes: int = 0
    after_failure: bool = False
    offline: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """All that a route is decided from. `ways` in the order they were connected; `engine`: the account asked for.

    In a chat `engine` is the chat's account; without one (`chat` None: Settings) it is the slug that the plan is for.
    """

    engine: str
    ways: tuple[Way, ...]
    preferences: Preferences = Preferences()
    budget: Budget = Budget()
    local: Local = Local()
    chat: Chat | None = None
    needs: Needs = Needs()
    run: Run = Run()
