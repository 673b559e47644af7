"""Every way in which a turn can fail: an open list of codes, with the facts that the sentence needs (doors.md).

Sentences are in conch/copy/lines.py. `offers` are accounts that could answer, if the person says so.
"""

from typing import TYPE_CHECKING, Any

from conch.copy.clock import Viewer
from conch.copy.failures import failure_text
from conch.engines.base import (
    EngineError,
    EngineFault,
    LimitReached,
    Overloaded,
    Rejected,
    SignedOut,
    Throttled,
    Unreachable,
)
from conch.turns.errors import AccountGone, Unending
from routing.choices import grouped, named
from routing.outcome import Offer

if TYPE_CHECKING:
    from conch.turns.gathering import Begun

# Codes that are decided before anything is sent come from routing: signed_out, no_account, cannot_carry_tools,
# cannot_carry_images, too_long, no_room, offline, no_model, held.
CUT, FAULT, OURS, INTERRUPTED = "cut", "provider_error", "internal", "interrupted"
# Failures that say what became of the answer: kept, or nothing of it had arrived (`arrived`).
IN_MID_ANSWER = (CUT, OURS, INTERRUPTED)
UNENDING = "too_many_calls"
THROTTLED, OVERLOADED, UNREACHABLE, SIGNED_OUT = "throttled", "overloaded", "unreachable", "signed_out"
REJECTED = {
    "model_gone": "model_gone",
    "too_long": "too_long",
    "images": "cannot_carry_images",
    "tools": "cannot_carry_tools",
    "paying": "wrong_payer",
    "bad": "rejected",
}
_BY_ERROR: list[tuple[type[EngineError], str]] = [
    (Throttled, THROTTLED),
    (Overloaded, OVERLOADED),
    (Unreachable, UNREACHABLE),
    (SignedOut, SIGNED_OUT),
    (AccountGone, "no_account"),
    (LimitReached, "limit"),
]


def code_of(error: EngineError) -> str:
    """The failure's code for an engine's error."""
    if isinstance(error, Rejected):
        return REJECTED.get(error.reason, "rejected")
    if isinstance(error, Unending):
        return UNENDING
    if isinstance(error, EngineFault):
        return CUT if error.cut else FAULT
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), FAULT)


def of(error: EngineError, begun: "Begun") -> dict[str, Any]:
    """The failure of a turn whose engine couldn't answer; whether tools had run for it is seen at its end."""
    asked = begun.asked
    assert asked is not None
    return {
        "code": code_of(error),
        "account": asked.tried.account,
        "label": asked.label,
        "model": asked.tried.model,
        "billing": asked.billing,
        "said": error.said[:500],
        "charged": error.accepted and asked.billing == "key",
        "offers": offers(begun),
    }


def offers(begun: "Begun") -> list[dict[str, Any]]:
    """Who else could answer now, were the person to say so: best first."""
    asked = begun.asked
    names = named(grouped(begun.question.ways))
    ways = {way.slug: way for way in begun.question.ways}
    able = [why for why in begun.decision.why if why.skip is None or why.skip.code in {"paid_off", "left_out"}]
    found = []
    for why in able:
        way = ways.get(why.id)
        if way is not None and (asked is None or way.slug != asked.tried.account):
            found.append(Offer(way.slug, names.get(why.id, way.label), way.billing, way.per_reply).data())
    return found


def interrupted(begun: "Begun | None") -> dict[str, Any]:
    """The failure of a turn whose process ended."""
    asked = begun.asked if begun is not None else None
    billing = asked.billing if asked is not None else ""
    return {
        "code": INTERRUPTED,
        "account": asked.tried.account if asked is not None else "",
        "label": asked.label if asked is not None else "",
        "billing": billing,
        "charged": billing == "key",
        "offers": [],
    }


def ours() -> dict[str, Any]:
    """The failure of a turn that a fault of Conch's own ended."""
    return {"code": OURS, "account": "", "label": "", "offers": []}


def said(failure: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    """The data of the events `failed` and `interrupted`."""
    text = failure_text(failure, viewer)
    return {"code": failure["code"], "text": text, "retry": failure["code"] != "no_account"}
