"""The waiting line in words (copy.md 4.2): for whom, until when, and what would help now (R16)."""

from collections.abc import Callable, Mapping
from typing import Any

from conch.copy.clock import Viewer
from conch.copy.sentences import (
    ATTENTION,
    CANCEL,
    CHANGE_BUDGET,
    SET_BUDGET,
    Button,
    Part,
    Said,
    a_reply,
    at,
    bold,
    dollars,
    name,
    said,
    sub,
    until,
)

Data = Mapping[str, Any]
_Words = tuple[tuple["str | Part | tuple[Part, ...]", ...], str, tuple[Button, ...]]

THEN = "Your message goes out then."


def waiting(data: Data, viewer: Viewer) -> Said:
    """A `limit.waiting` line; where the model on this computer could answer, it is offered too."""
    pieces, icon, buttons = REASONS.get(data["why"], _chosen)(data, viewer)
    local = data.get("local")
    here = (Button(f"Answer with {local['label']} now", "answer_with", "local"),) if local else ()
    return said(*pieces, tone=ATTENTION, icon=icon, buttons=(*buttons, *here, CANCEL))


def _chosen(data: Data, viewer: Viewer) -> _Words:
    if not data.get("until"):
        return _no_reset(data, viewer)
    return (
        (
            bold(data["from_label"]),
            f" reached its limit. This chat waits{until(data['until'], viewer)}.",
            sub(THEN),
        ),
        "clock",
        _with(data, "Send with {} now"),
    )


def _with(data: Data, words: str) -> tuple[Button, ...]:
    """A button for the one who could answer now; a key's names its price."""
    could = data.get("could")
    if not could:
        return ()
    price = f", {a_reply(could.get('per_reply'))}" if could.get("billing") == "key" else ""
    return (Button(words.format(could["label"]) + price, "answer_with", could["slug"]),)


def _room(data: Data, viewer: Viewer) -> _Words:
    following = data.get("next")
    if following and following.get("until"):
        when = at(following["until"], viewer)
        return (("No account has room. ", bold(following["label"]), f" is next, {when}.", sub(THEN)), "clock", ())
    return (("No account has room.", sub(f"Your message goes out once one has{_tries(data, viewer)}.")), "clock", ())


def _tries(data: Data, viewer: Viewer) -> str:
    tries = at(data.get("tries_at"), viewer)
    return f"; Conch tries {tries}" if tries else ""


def _only_keys(data: Data, viewer: Viewer) -> _Words:
    out = at(data.get("until"), viewer)
    goes = f"Your message goes out {out}." if out else f"Your message goes out once it answers{_tries(data, viewer)}."
    return (
        (
            bold(data["from_label"]),
            " reached its limit. ",
            _could(data),
            sub("Pay-per-use keys are off."),
            sub(goes),
        ),
        "coins",
        _use_it(data),
    )


def _could(data: Data) -> tuple[Part, ...]:
    could = data["could"]
    price = could.get("per_reply")
    cost = f" could answer for {a_reply(price)}." if price is not None else f" could answer, {a_reply(None)}."
    return (*bold(could["label"]), Part(cost))


def _use_it(data: Data) -> tuple[Button, ...]:
    could = data.get("could")
    return (Button("Use it for this message", "answer_with", could["slug"]),) if could else ()


def _no_reset(data: Data, viewer: Viewer) -> _Words:
    return (
        (
            bold(data["from_label"]),
            " reached its limit and doesn’t say until when.",
            sub(f"Your message goes out once it answers{_tries(data, viewer)}."),
        ),
        "clock",
        (),
    )


def _tools(data: Data, viewer: Viewer) -> _Words:
    able = data.get("could") or data.get("next")
    return (
        (
            bold(data["from_label"]),
            " reached its limit. ",
            (*bold(able["label"]), Part(" has room, but can’t run the tools this chat uses.")) if able else "",
            sub(f"This chat waits{until(data.get('until'), viewer)}."),
        ),
        "warn",
        (),
    )


def _pick_is_limit(data: Data, viewer: Viewer) -> _Words:
    return (
        (
            bold(data["from_label"]),
            f" reached its limit{until(data.get('until'), viewer)}.",
            sub("It is also your pick. This chat waits."),
        ),
        "clock",
        _with(data, "Carry on with {}"),
    )


def _pick_gone(data: Data, _viewer: Viewer) -> _Words:
    return (
        (name(_pick(data)), ", your pick, isn’t connected any more.", sub("This chat waits.")),
        "warn",
        _with(data, "Carry on with {}"),
    )


def _pick_no_room(data: Data, viewer: Viewer) -> _Words:
    return (
        (
            bold(data["from_label"]),
            f" reached its limit{until(data.get('until'), viewer)}.",
            sub(name(_pick(data)), ", your pick, has none left."),
            sub("This chat waits."),
        ),
        "clock",
        _with(data, "Carry on with {}"),
    )


def _pick(data: Data) -> str:
    return str((data.get("pick") or {}).get("label") or "The account")


def _needs_budget(data: Data, _viewer: Viewer) -> _Words:
    return (
        (_could(data), sub("While you’re away, that needs a month’s budget.")),
        "coins",
        (*_use_it(data), SET_BUDGET),
    )


def _budget(data: Data, viewer: Viewer) -> _Words:
    room = until(data.get("until"), viewer)
    return (
        (_spent(data), f" No plan has room{room}.", sub(THEN if room else "Your message goes out once one has.")),
        "coins",
        (CHANGE_BUDGET,),
    )


def _spent(data: Data) -> str:
    budget = data.get("budget")
    return f"This month’s {dollars(budget)} is spent." if budget is not None else "This month’s budget is spent."


def _holds(data: Data, _viewer: Viewer) -> _Words:
    budget = data.get("budget")
    left = f"this month’s {dollars(budget)}" if budget is not None else "this month’s budget"
    return (
        (f"Answers that are running may use what is left of {left}.", sub("Your message goes out when they end.")),
        "coins",
        (),
    )


def _signed_out(data: Data, viewer: Viewer) -> _Words:
    following = data.get("next")
    others = (
        sub(name(following["label"]), f" is next, {at(following['until'], viewer)}.")
        if following and following.get("until")
        else sub(f"Your message goes out once an account has room{_tries(data, viewer)}.")
    )
    return ((bold(data["from_label"]), " is signed out.", others), "warn", (Button("Sign in", "sign_in"),))


def _offline(data: Data, viewer: Viewer) -> _Words:
    return (
        (
            "You seem to be offline.",
            sub(f"Your message goes out once you’re back{_tries(data, viewer)}."),
        ),
        "off",
        (Button("Try again", "retry"),),
    )


REASONS: dict[str, Callable[[Data, Viewer], _Words]] = {
    "chosen": _chosen,
    "switched_back": _chosen,
    "room": _room,
    "only_keys": _only_keys,
    "no_reset": _no_reset,
    "tools": _tools,
    "pick_is_limit": _pick_is_limit,
    "pick_gone": _pick_gone,
    "pick_no_room": _pick_no_room,
    "needs_budget": _needs_budget,
    "budget": _budget,
    "holds": _holds,
    "signed_out": _signed_out,
    "offline": _offline,
}
