"""Who answers a turn, and why (R11-R25, R35, R36): pure, `now` passed in, nothing asked while it decides."""

from datetime import datetime

from routing.facts import Question, Run, Tried
from routing.outcome import (
    Capped,
    Decision,
    Failure,
    Limit,
    ModelRef,
    Offer,
    Passed,
    Routed,
    Skip,
    Stay,
    Unstay,
    Wait,
    Why,
)

__all__ = [
    "Capped",
    "Decision",
    "Failure",
    "Limit",
    "ModelRef",
    "Offer",
    "Passed",
    "Question",
    "Routed",
    "Run",
    "Skip",
    "Stay",
    "Tried",
    "Unstay",
    "Wait",
    "Why",
    "decide",
]


def decide(question: Question, now: datetime) -> Decision:
    """Decide who answers this run of a turn. Never raises for facts that are odd; `now` is an aware instant."""
    raise NotImplementedError
