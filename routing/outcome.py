"""What a decision says: who answers and why, as data. Sentences are made elsewhere (conch/copy)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple


class ModelRef(NamedTuple):
    """The model that answers, by id and by name."""

    id: str
    label: str


class Skip(NamedTuple):
    """Why somebody is passed over now (R10).

    `until` is the provider's reset, `retry_at` when it is tried again, `at` when a refusal came.

    Codes: left_out, signed_out, blocked, at_limit, refused, over_key_limit, over_budget, unpriced, needs_budget,
    cannot_carry_tools, cannot_carry_images, too_long, paid_off; within a run also what made one unable (R17).
    """

    code: str
    until: datetime | None = None
    retry_at: datetime | None = None
    at: datetime | None = None


class Why(NamedTuple):
    """One choice and whether it was passed over: None is able now."""

    id: str
    skip: Skip | None


class Offer(NamedTuple):
    """Somebody who could answer if the person says so. `per_reply` in USD, None where unpriced or not a key."""

    slug: str
    label: str
    billing: str
    per_reply: Decimal | None = None

    def data(self) -> dict[str, Any]:
        """As kept in a line or a failure."""
        price = None if self.per_reply is None else _plain(self.per_reply)
        return {"slug": self.slug, "label": self.label, "per_reply": price, "billing": self.billing}


class Limit(NamedTuple):
    """The chat's account at its limit, or not: `reason` is window, blocked, refused, budget, key_limit or None.

    `window`: the binding window's name where it isn't the shortest one, else None. `until`: the provider's reset.
    """

    at: bool
    until: datetime | None = None
    reason: str | None = None
    window: str | None = None
    retry_at: datetime | None = None


class Passed(NamedTuple):
    """One passed over on the way to who answers, for the line's words."""

    slug: str
    label: str
    code: str
    until: datetime | None = None
    retry_at: datetime | None = None

    def data(self) -> dict[str, Any]:
        """As kept in a line."""
        return self._asdict() | {"until": _iso(self.until), "retry_at": _iso(self.retry_at)}


class Stay(NamedTuple):
    """R21: the chat's account and model become these; `consent` is the yes that brought it to a key, else ""."""

    account: str
    model: str
    consent: str


class Unstay(NamedTuple):
    """R21: the yes for the key stands no more; the chat is again `account`'s, with the model it had there."""

    key: str
    key_label: str
    account: str
    label: str

    def data(self) -> dict[str, Any]:
        """As kept in the line limit.unstayed."""
        return self._asdict()


@dataclass(frozen=True, slots=True)
class Routed:
    """Somebody else than the chat's account answers (the facts of the line limit.routed).

    `by`: auto, named (the pick), once (answer-with) or carry_on. `switch_back`: the line offers it (R23).
    `month_left` is None without a budget; `unpriced`: it charges per reply and can't be priced (R33).
    """

    from_: str
    to: str
    until: datetime | None
    from_model: str
    to_model: str
    stayed: bool
    from_label: str
    to_label: str
    from_model_label: str
    to_model_label: str
    to_billing: str
    reason: str | None
    window: str | None
    by: str
    switch_back: bool
    per_reply: Decimal | None = None
    month_left: Decimal | None = None
    unpriced: bool = False
    passed: tuple[Passed, ...] = ()

    def data(self) -> dict[str, Any]:
        """As kept in the line: times ISO 8601, money decimal strings."""
        return {
            "from": self.from_,
            "to": self.to,
            "until": _iso(self.until),
            "from_model": self.from_model,
            "to_model": self.to_model,
            "stayed": self.stayed,
            "from_label": self.from_label,
            "to_label": self.to_label,
            "from_model_label": self.from_model_label,
            "to_model_label": self.to_model_label,
            "to_billing": self.to_billing,
            "window": self.window,
            "reason": self.reason,
            "per_reply": None if self.per_reply is None else _plain(self.per_reply),
            "month_left": None if self.month_left is None else _plain(self.month_left),
            "unpriced": self.unpriced,
            "passed": [one.data() for one in self.passed],
            "by": self.by,
            "switch_back": self.switch_back,
            "folded": None,
        }


@dataclass(frozen=True, slots=True)
class Wait:
    """Nobody answers now; the turn waits (R16), or a routine's run is held (R25).

    `why`: chosen, room, only_keys, no_reset, tools, switched_back, pick_is_limit, pick_gone, pick_no_room,
    needs_budget, budget, holds, signed_out or offline. `for_`: the slug waited for, or "room". `until`: the earliest
    reset of those who could then answer, None where none is known. `wake_at`: when the route is asked again.
    `next`: who is back first. `could`: who could answer now if the person said so. `pick`: the person's pick, where
    the words need it. `local`: the model on this computer could answer, by the person's press.
    """

    why: str
    for_: str
    until: datetime | None
    wake_at: datetime
    from_: str
    from_label: str
    next: Passed | None = None
    could: Offer | None = None
    pick: Offer | None = None
    budget: Decimal | None = None
    local: Offer | None = None

    @property
    def tries_at(self) -> datetime | None:
        """When Conch tries again, where no reset is known."""
        return self.wake_at if self.until is None else None

    def data(self) -> dict[str, Any]:
        """As kept in the line limit.waiting."""
        following = self.next and {"slug": self.next.slug, "label": self.next.label, "until": _iso(self.next.until)}
        return {
            "why": self.why,
            "from": self.from_,
            "from_label": self.from_label,
            "for": self.for_,
            "until": _iso(self.until),
            "tries_at": _iso(self.tries_at),
            "next": following,
            "could": self.could and self.could.data(),
            "pick": self.pick and self.pick.data(),
            "budget": None if self.budget is None else _plain(self.budget),
            "local": self.local and {"label": self.local.label},
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """The turn fails; nothing was sent.

    `code`: signed_out, no_account (R36), cannot_carry_tools, cannot_carry_images, too_long (R11), no_room (R16),
    offline (R19) or no_model (the model on this computer isn't there). `offers`: who could answer, best first.
    `reason`: of no_room, "budget" where the month's budget is what is in the way.
    """

    code: str
    account: str
    label: str
    offers: tuple[Offer, ...] = ()
    until: datetime | None = None
    reason: str = ""
    model: str = ""
    budget: Decimal | None = None

    def data(self) -> dict[str, Any]:
        """As kept with the turn."""
        return {
            "code": self.code,
            "account": self.account,
            "label": self.label,
            "model": self.model,
            "until": _iso(self.until),
            "reason": self.reason,
            "budget": None if self.budget is None else _plain(self.budget),
            "offers": [one.data() for one in self.offers],
        }


class Capped(NamedTuple):
    """The chat's own cap holds the turn (R18), in USD; `raise_to` is enough for the smallest next request."""

    spent: Decimal
    cap: Decimal
    raise_to: Decimal

    def data(self) -> dict[str, Any]:
        """As kept in the line limit.capped."""
        return {"spent": _plain(self.spent), "cap": _plain(self.cap), "raise_to": _plain(self.raise_to)}


@dataclass(frozen=True, slots=True)
class Decision:
    """Who answers one run of a turn, and why.

    `kind`: answer, wait, fail, capped, or held (a routine at a limit: no wait, the run is kept with `wait`'s facts).
    With answer and capped: `answers` (slug or "local"), `model`, `label`, `billing`, `consent` (own, named, paid_on,
    once; "" where nothing is paid), `default_model` (its account's own where another answers: one more request of the
    same try where the stored model is gone, R17).
    `routed` and `say`: R22. `offline`: the model on this computer answers since nothing can be reached (R19).
    `returned`: the chat's account answers after others did (R20). `stay`, `unstay`: R21.
    `shortened`: the oldest messages are left out; `drop_images`: older images become a note (R9).
    `why`: per choice, in order, whether it is passed over (the chat's own account is not among them).
    """

    kind: str
    limit: Limit
    answers: str | None = None
    model: ModelRef | None = None
    default_model: ModelRef | None = None
    label: str = ""
    billing: str = ""
    consent: str = ""
    routed: Routed | None = None
    say: bool = False
    offline: bool = False
    returned: bool = False
    stay: Stay | None = None
    unstay: Unstay | None = None
    shortened: bool = False
    drop_images: bool = False
    wait: Wait | None = None
    failure: Failure | None = None
    capped: Capped | None = None
    why: tuple[Why, ...] = ()


def _iso(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%S}Z"


def _plain(usd: Decimal) -> str:
    text = f"{usd:f}"
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text
