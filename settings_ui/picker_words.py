"""What the FallbackPicker says around its choices (copy.md 4.1): facts in, sentences out. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from conch.copy.clock import Viewer, at_moment, moment, span
from conch.money import shown
from routing.facts import AUTO, WAIT


@dataclass(frozen=True, slots=True)
class Limit:
    """The account that the page is about: its name, whether it is at its limit, and its reset where one is known.

    `window`: the binding window's name where it isn't the shortest, else "".
    """

    label: str
    at: bool = False
    until: datetime | None = None
    window: str = ""


@dataclass(frozen=True, slots=True)
class Pick:
    """What is chosen: auto, wait or a slug; for a slug its label, and whether it is the account at its limit itself."""

    value: str = AUTO
    label: str = ""
    itself: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """The state now, before the choices; `kind`: ok where somebody answers, warn where chats wait."""

    kind: str
    head: str
    tail: str


def note(limit: Limit, pick: Pick, answers: str, viewer: Viewer) -> Note | None:
    """The note on top, None while the account has room. `answers`: who answers now by name, "" for nobody."""
    if not limit.at:
        return None
    until = f" until {moment(limit.until, viewer)}" if limit.until else ""
    which = f"{limit.window} limit" if limit.window else "limit"
    head = f"{limit.label} is at its {which}{until}"
    if answers:
        chosen = ", as you chose" if pick.value not in {AUTO, WAIT} else ""
        return Note("ok", f"{head}.", f"{answers} answers{' until then' if until else ''}{chosen}.")
    if pick.itself:
        return Note("warn", f"{head}, and is your pick.", "Chats wait.")
    if pick.gone:
        return Note("warn", f"{head}.", f"{pick.label}, your pick, isn’t connected any more. Chats wait.")
    return Note("warn", f"{head}.", "Chats wait for it, as you chose." if pick.value == WAIT else "Chats wait.")


def in_order(labels: Sequence[str]) -> str:
    """Automatic's order in words: all of up to three, else two and how many more."""
    if not labels:
        return ""
    if len(labels) <= 3:
        return f"{', then '.join(labels)}."
    return f"{labels[0]}, then {labels[1]}, then {len(labels) - 2} more."


@dataclass(frozen=True, slots=True)
class Now:
    """What Automatic would do now. `first`: who answers is the order's first; `next`: who is back first, and when."""

    answers: str = ""
    addressed: bool = False
    first: bool = False
    next: str = ""
    next_at: datetime | None = None
    local: bool = False
    others: bool = True


def automatic_now(now: Now, viewer: Viewer) -> str:
    """Who would answer now under Automatic, or why nobody would."""
    if now.answers:
        return f"{'The first' if now.addressed and now.first else now.answers} would answer now."
    local = " The model on this computer would answer." if now.local else ""
    if not now.others:
        return f"No other account is connected.{local}"
    if not now.next:
        return f"No account has room now.{local}"
    back = f", {at_moment(now.next_at, viewer)}" if now.next_at else ""
    return f"No account has room now. {now.next} is next{back}.{local}"


def waiting(limit: Limit, viewer: Viewer) -> str:
    """The sentence under *Wait until it resets*."""
    if not limit.at:
        return f"Your messages go out when {limit.label} resets."
    if limit.until is None or limit.until <= viewer.now:
        return f"{limit.label} doesn’t say when it resets. Conch tries again after 15 minutes."
    reset = f"{at_moment(limit.until, viewer)}, in {span(limit.until - viewer.now)}"
    return f"{limit.label} resets {reset}. Your messages go out then."


@dataclass(frozen=True, slots=True)
class Budget:
    """The month's budget (None: none set) and what is left of it, in USD."""

    amount: Decimal | None = None
    left: Decimal = Decimal(0)

    @property
    def said(self) -> str:
        """What is left of it in words; "" without one."""
        return "" if self.amount is None else f"{shown(self.left)} of {shown(self.amount)} left."


def paid(*, on: bool, budget: Budget, pick: str = "", per_reply: Decimal | None = None) -> str:
    """Under *Pay-per-use keys too*; `pick`: the name of the key that is picked, with its price a reply."""
    if not on and pick:
        price = f": about {shown(per_reply)} a reply" if per_reply is not None else ""
        return f"Off, Automatic never starts spending. Your pick, {pick}, is pay per use{price}."
    within = "within this month’s budget" if budget.amount is not None else "without a budget"
    said = f" {budget.said}" if budget.said else ""
    if on:
        return f"In the order above, {within}.{said}"
    return f"Off, a limit never starts spending. On, they come after your plans, {within}.{said}"


def local(label: str, *, present: bool) -> str:
    """Under *The model on this computer, last*."""
    if present:
        return f"{label} answers when no account has room, and when you’re offline."
    return "There’s no model on this computer yet. One could answer when no account has room, and when you’re offline."


def coming_back(*, on: bool) -> str:
    """Under *Back to {A} once it resets*."""
    if on:
        return "It gets what it missed. Off, a chat stays with whoever carried it on."
    return "A chat stays with whoever carried it on. On, it comes back and gets what it missed."


def saved(pick: Pick) -> str:
    """What is spoken after a choice."""
    if pick.value == AUTO:
        return "Saved. Automatic."
    return "Saved. Chats wait until it resets." if pick.value == WAIT else f"Saved. {pick.label} answers at a limit."


def spoken_move(label: str, place: int, of: int, now: str) -> str:
    """What is spoken after a move: the position, the total, and who would answer now."""
    return f"{label} is now {place} of {of}. {now}".strip()


def at_the_end(label: str, *, first: bool) -> str:
    """What is spoken where a move goes no further."""
    return f"{label} is already {'first' if first else 'last'}."
