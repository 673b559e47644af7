"""The lines of a chat in words (copy.md 4.2): a kind and its data, for a viewer, as a sentence with its buttons.

Pure: the same data gives the same words, wherever they are asked for (page, event, API).
"""

from collections.abc import Callable, Mapping
from typing import Any

from conch.copy import waits
from conch.copy.clock import Viewer
from conch.copy.failures import failure_said, failure_text
from conch.copy.sentences import (
    ATTENTION,
    CALM,
    CARRIED_ON,
    STOPPED,
    Button,
    Part,
    Said,
    a_reply,
    at,
    bold,
    dollars,
    instant,
    listed,
    name,
    said,
    sub,
    until,
)

__all__ = ["failure_said", "failure_text", "line_said", "text"]

Data = Mapping[str, Any]

# Why one that could have answered was passed over, as far as a line says it; other reasons are the picker's.
AT_LIMIT = ("at_limit", "blocked")
NOT_SAID = (
    "left_out",
    "paid_off",
    "over_budget",
    "over_key_limit",
    "unpriced",
    "needs_budget",
    "cannot_carry_tools",
    "cannot_carry_images",
    "too_long",
)


def text(kind: str, data: Data, viewer: Viewer) -> str:
    """The sentence of a line. An unknown kind has none: ""."""
    return line_said(kind, data, viewer).text


def line_said(kind: str, data: Data, viewer: Viewer) -> Said:
    """The line as a page shows it."""
    words = KINDS.get(kind)
    return words(data, viewer) if words else Said(parts=())


def _routed(data: Data, viewer: Viewer) -> Said:
    if data.get("folded") is not None:
        return _back(
            {
                "engine_label": data["from_label"],
                "until": data["folded"].get("until"),
                "to": data["to"],
                "to_label": _who(data),
                "to_billing": data.get("to_billing"),
                "per_reply": data.get("per_reply"),
            },
            viewer,
        )
    paid = data.get("to_billing") == "key"
    local = data.get("to_billing") == "local" or data["to"] == "local"
    tone, icon = CARRIED_ON, "swap"
    if paid:
        tone, icon = ATTENTION, "coins"
    elif data.get("stayed"):
        icon = "pin"
    elif local:
        icon = "chip"
    return said(
        _why_moved(data, viewer),
        " ",
        _answering(data, local=local),
        _aside(data, viewer, paid=paid, local=local),
        tone=tone,
        icon=icon,
        buttons=(Button("Switch back", "switch_back"),) if data.get("switch_back") else (),
    )


def _who(data: Data) -> str:
    if data["to"] == "local":
        return str(data.get("to_model_label") or data["to_label"])
    return str(data["to_label"])


def _why_moved(data: Data, viewer: Viewer) -> tuple[Part, ...]:
    passed = [each for each in data.get("passed") or () if each["code"] not in NOT_SAID]
    full = [each["label"] for each in passed if each["code"] in AT_LIMIT]
    refused = [each["label"] for each in passed if each["code"] == "refused"]
    out = [each["label"] for each in passed if each["code"] == "signed_out"]
    known = (*AT_LIMIT, "refused", "signed_out")
    unable = [each["label"] for each in passed if each["code"] not in known]
    sentences: list[tuple[Part, ...]] = []
    if full:
        sentences.append((*listed([data["from_label"], *full]), Part(" are at their limits.")))
    if refused:
        sentences.append((*listed(refused), Part(" refused for a limit too.")))
    if out:
        sentences.append((*listed(out), Part(" is signed out." if len(out) == 1 else " are signed out.")))
    if unable:
        sentences.append((*listed(unable), Part(" couldn’t take it.")))
    if not sentences:
        sentences.append(
            (*bold(data["from_label"]), Part(f" reached its {_limit(data)}{until(data['until'], viewer)}."))
        )
    joined: list[Part] = []
    for place, sentence in enumerate(sentences):
        joined.extend((Part(" "), *sentence) if place else sentence)
    return tuple(joined)


def _limit(data: Data) -> str:
    """The limit by its name: the window that binds where it isn't the shortest, or whose money it is."""
    if data.get("reason") == "budget":
        return "month’s budget"
    if data.get("reason") == "key_limit":
        return "key’s limit"
    return f"{data['window']} limit" if data.get("window") else "limit"


def _answering(data: Data, *, local: bool) -> tuple[Part, ...]:
    if data.get("stayed"):
        return (Part("This chat stays with "), *bold(_who(data)), Part("."))
    return (*bold(_who(data)), Part(" on this computer is answering." if local else " is answering."))


def _aside(data: Data, viewer: Viewer, *, paid: bool, local: bool) -> tuple[Part, ...]:
    """What follows the answer to "who": its price, that nobody else has room, who is next."""
    parts: tuple[Part, ...] = ()
    if paid:
        parts += sub(price_said(data))
    if local:
        parts += sub("No account has room.")
    again = _next(data, viewer)
    if again:
        return parts + again
    if not data["until"] and data.get("reason") not in {"budget", "key_limit"} and not data.get("passed"):
        parts += sub(name(data["from_label"]), " didn’t say when it resets.")
    return parts


def price_said(data: Data) -> str:
    """What a reply costs and what is left, as a sentence; never as if an unknown price were none (R33)."""
    if data.get("unpriced") or data.get("per_reply") is None:
        bound = " This month’s budget can’t bound it." if data.get("month_left") is not None else ""
        return f"It charges per reply; Conch can’t price it.{bound}"
    left = data.get("month_left")
    rest = f"{dollars(left)} left this month" if left is not None else "no budget set"
    return f"About {dollars(data['per_reply'])} a reply, {rest}."


def _next(data: Data, viewer: Viewer) -> tuple[Part, ...]:
    passed = data.get("passed") or ()
    full = [each for each in passed if each["code"] in AT_LIMIT and each.get("until")]
    refused = [each for each in passed if each["code"] == "refused" and (each.get("until") or each.get("retry_at"))]
    if full:
        soonest = min(full, key=lambda each: instant(each["until"]) or viewer.now)
        return sub(name(soonest["label"]), f" is next, {at(soonest['until'], viewer)}.")
    if refused:
        last = refused[-1]
        again = at(last.get("until") or last.get("retry_at"), viewer)
        return sub("Conch tries ", name(last["label"]), f" again {again}.")
    return ()


def _back(data: Data, viewer: Viewer) -> Said:
    label = data["engine_label"]
    if not data.get("until"):
        return said("Back to ", name(label), ".", tone=CALM, icon="check")
    price = f", {a_reply(data.get('per_reply'))}" if data.get("to_billing") == "key" else ""
    carry_on = (Button(f"Carry on with {data['to_label']}{price}", "carry_on"),) if data.get("to_label") else ()
    waits_for = f": this chat waits for it{until(data['until'], viewer)}."
    return said("Back to ", name(label), waits_for, tone=CALM, icon="clock", buttons=carry_on)


def _returned(data: Data, _viewer: Viewer) -> Said:
    return said(name(data["label"]), " is back, with what it missed.", tone=CALM, icon="check")


def _sent(data: Data, viewer: Viewer) -> Said:
    late = ", later than planned: Conch was not running" if data.get("late") else ""
    return said(f"Your message went out {at(_whole_minute(data['at']), viewer)}{late}.", tone=CALM, icon="check")


def _whole_minute(value: str) -> str:
    """The minute that was running then: unlike a reset, what has happened is never said for a time to come."""
    return f"{value[:16]}:00Z"


def _unstayed(data: Data, _viewer: Viewer) -> Said:
    return said(
        name(data["key_label"]),
        " charges per reply and isn’t allowed any more. This chat is back with ",
        name(data["label"]),
        ".",
        tone=CALM,
        icon="check",
    )


def _capped(data: Data, _viewer: Viewer) -> Said:
    raise_to = data.get("raise_to")
    raising = (Button(f"Raise to {dollars(raise_to)}", "raise", amount=str(raise_to)),) if raise_to else ()
    return said(
        f"This chat reached the {dollars(data['cap'])} you set for it.",
        sub("Nothing more is spent until you raise it."),
        tone=STOPPED,
        icon="coins",
        buttons=(*raising, Button("Stop here", "cancel")),
    )


def _extra(data: Data, _viewer: Viewer) -> Said:
    cost = data.get("cost")
    amount = f"{dollars(cost)} of extra usage" if cost is not None else "extra usage, price unknown"
    return said(
        bold(data["label"]),
        f" went over its limit during this reply: {amount}, which you switched on there.",
        tone=ATTENTION,
        icon="coins",
    )


def _shortened(data: Data, _viewer: Viewer) -> Said:
    count = data["messages"]
    reads = "only the newest message" if count == 1 else f"the last {count} messages"
    return said(
        name(data["label"]), f" reads {reads} of this chat; the earlier ones don’t fit.", tone=CALM, icon="skip"
    )


def _images(data: Data, _viewer: Viewer) -> Said:
    return said(name(data["label"]), " can’t see the earlier images of this chat.", tone=CALM, icon="eye")


def _offline(data: Data, _viewer: Viewer) -> Said:
    return said(
        "You’re offline. ", bold(data["label"]), " on this computer is answering.", tone=CARRIED_ON, icon="chip"
    )


KINDS: dict[str, Callable[[Data, Viewer], Said]] = {
    "limit.routed": _routed,
    "limit.back": _back,
    "limit.returned": _returned,
    "limit.sent": _sent,
    "limit.unstayed": _unstayed,
    "limit.waiting": waits.waiting,
    "limit.capped": _capped,
    "limit.extra": _extra,
    "handoff.shortened": _shortened,
    "handoff.images": _images,
    "offline.routed": _offline,
}
