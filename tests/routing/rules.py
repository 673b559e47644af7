"""The rules of a route written a second time, as plainly as can be, to hold the decision to (design.md, Proof).

A world is three accounts: A, the chat's own, a plan; B, another plan; K, a key. Each has one condition; the preferences
are what they are. Nothing here imports the decision.
"""

from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import NamedTuple

OWN = ("ok", "low", "unknown", "passed", "full", "full_no_reset", "blocked", "refused", "signed_out", "gone")
PLAN = ("ok", "low", "unknown", "full", "full_no_reset", "blocked", "refused", "signed_out", "left_out", "deaf")
KEY = ("ok", "low", "over_budget", "held", "over_key_limit", "refused", "unpriced", "signed_out", "left_out")
FALLBACK = ("auto", "wait", "A", "B", "K", "gone")
SWITCHES = ("limit_paid", "limit_return", "local", "key_first", "unattended", "switched_back")

# After how long each condition is over; None: not known.
A_FULL, B_FULL, K_LIMIT = timedelta(hours=5), timedelta(hours=2), timedelta(hours=3)
BLOCKED, MONTH = timedelta(hours=4), timedelta(days=6)
OVER = {
    "A": {"full": A_FULL, "full_no_reset": None, "blocked": BLOCKED, "refused": None},
    "B": {"full": B_FULL, "full_no_reset": None, "blocked": BLOCKED, "refused": None},
    "K": {"over_budget": MONTH, "held": None, "over_key_limit": K_LIMIT, "refused": None},
}


@dataclass(frozen=True, slots=True)
class World:
    """One combination."""

    a: str
    b: str
    k: str
    fallback: str
    limit_paid: bool
    limit_return: bool
    local: bool
    key_first: bool
    unattended: bool
    switched_back: bool

    @property
    def budget_set(self):
        """The two conditions that need a month's budget bring one; so does a key that can't be priced."""
        return self.k in {"over_budget", "held", "unpriced"}


class Outcome(NamedTuple):
    """What is compared: who answers by what yes, whether the chat stays, and until when it waits."""

    kind: str
    answers: str | None = None
    consent: str = ""
    stays: bool = False
    until: timedelta | None = None
    said: str = ""


def worlds():
    """All of them."""
    for conditions in product(OWN, PLAN, KEY, FALLBACK, *[(False, True)] * len(SWITCHES)):
        yield World(*conditions)


HOW_MANY = len(OWN) * len(PLAN) * len(KEY) * len(FALLBACK) * 2 ** len(SWITCHES)


def own_is_there(world):
    """R36."""
    return world.a not in {"gone", "signed_out"}


def own_has_room(world):
    """R6, R8, R11."""
    return world.a in {"ok", "low", "unknown", "passed"}


def asks(world):
    """R23: after Switch back the route is asked with wait."""
    return "wait" if world.switched_back else world.fallback


def b_in_the_way(world, *, named):
    """R10: what keeps B from answering; by name only what Automatic alone minds is gone past."""
    ways = {"ok": set(), "low": set(), "unknown": set(), "left_out": set() if named else {"for good"}}
    return ways.get(world.b, {"for now"} if world.b in OVER["B"] else {"for good"})


def k_in_the_way(world, *, named):
    """R7, R10, R13, R25, R33."""
    found = set()
    if world.k in OVER["K"]:
        found.add("for now")
    if world.k == "signed_out":
        found.add("for good")
    if world.unattended and not world.budget_set:
        found.add("for good")
    if not named and (not world.limit_paid or world.k in {"left_out", "unpriced"}):
        found.add("for good")
    return found


def order(world):
    """R4."""
    return ("K", "B") if world.key_first else ("B", "K")


def in_the_way(world, who, *, named):
    """What keeps one of the others from answering."""
    return b_in_the_way(world, named=named) if who == "B" else k_in_the_way(world, named=named)


def asked_for(world):
    """Who of the others is asked, best first, and whether by name."""
    mode = asks(world)
    if mode == "auto":
        return order(world), False
    return ((mode,), True) if mode in {"B", "K"} else ((), True)


def who_carries_on(world):
    """R12, R14."""
    others, named = asked_for(world)
    return next((who for who in others if not in_the_way(world, who, named=named)), None)


def consent(world, who):
    """R27."""
    if who != "K":
        return ""
    return "named" if asks(world) == "K" else "paid_on"


def who_could_later(world):
    """R16: A itself, and those of the others that time alone keeps from answering."""
    others, named = asked_for(world)
    return ["A", *[who for who in others if in_the_way(world, who, named=named) == {"for now"}]]


def until(world):
    """R16: the earliest reset known; none is said where only what running turns hold is in the way."""
    waits_for = who_could_later(world)
    if "K" in waits_for and world.k == "held" and asks(world) != "wait":
        return None
    condition = {"A": world.a, "B": world.b, "K": world.k}
    known = [OVER[who][condition[who]] for who in waits_for]
    return min((span for span in known if span is not None), default=None)


def outcome(world):
    """The whole of it."""
    if not own_is_there(world):
        return Outcome("fail", said="no_account" if world.a == "gone" else "signed_out")
    if own_has_room(world):
        return Outcome("answer", "A")
    who = who_carries_on(world)
    if who is not None:
        return Outcome("answer", who, consent(world, who), stays=not world.limit_return)
    if asks(world) != "wait" and world.local:
        return Outcome("answer", "local")
    return Outcome("wait", until=until(world))
