"""The failure of a turn in words (copy.md 4.2): what happened, whether anything was sent, and what would help."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conch.copy.clock import Viewer, moment
from conch.copy.sentences import (
    ATTENTION,
    CHANGE_BUDGET,
    CONNECT_ANOTHER,
    RETRY,
    STOPPED,
    Button,
    Said,
    answer_with,
    bold,
    dollars,
    instant,
    name,
    said,
    sub,
)

Data = Mapping[str, Any]

NOTHING_SENT = "Nothing was sent."
KEPT = "What had arrived is kept."
TOOLS_RAN = "Tools had run for it already."
NOTHING_ARRIVED = "Nothing had arrived."
CONTINUE = Button("Continue", "continue")


def failure_text(failure: Data, viewer: Viewer) -> str:
    """The sentence of a turn's failure."""
    return failure_said(failure, viewer).text


def failure_said(failure: Data, viewer: Viewer) -> Said:
    """The failure as a page shows it: red, with buttons."""
    whole = CODES.get(failure.get("code", ""), _provider_error)(failure, viewer)
    if not failure.get("after_tools"):
        return whole
    # It failed between two rounds of tools: something was sent, and something ran.
    parts = (replace(part, text=TOOLS_RAN) if part.text == NOTHING_SENT else part for part in whole.parts)
    return replace(whole, parts=tuple(parts))


def ending_said(ending: str, label: str) -> Said | None:
    """What a page adds to an answer that is there but isn't whole: cut off, or stopped by its allowed length."""
    if ending == "length":
        return said("This answer reached the length allowed for it.", tone=ATTENTION, icon="warn", buttons=(CONTINUE,))
    if ending == "cut":
        return _cut({"label": label}, None)
    return None


def _offers(failure: Data, most: int = 1) -> tuple[Button, ...]:
    return tuple(answer_with(offer) for offer in (failure.get("offers") or ())[:most])


def _who(failure: Data) -> Any:
    return name(failure.get("label") or "The account")


def _model(failure: Data) -> Any:
    return name(failure.get("model_label") or failure.get("model") or failure.get("label") or "This model")


def _offline(_failure: Data, _viewer: Viewer | None) -> Said:
    return said("You seem to be offline.", sub(NOTHING_SENT), tone=STOPPED, icon="off", buttons=(RETRY,))


def _unreachable(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        _who(failure),
        " can’t be reached.",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="off",
        buttons=(RETRY, *_offers(failure)),
    )


def _busy(words: str) -> Callable[[Data, Viewer | None], Said]:
    def busy(failure: Data, _viewer: Viewer | None) -> Said:
        return said(
            _who(failure),
            f" {words}",
            sub(NOTHING_SENT),
            tone=STOPPED,
            icon="warn",
            buttons=(RETRY, *_offers(failure)),
        )

    return busy


def _interrupted(failure: Data, _viewer: Viewer | None) -> Said:
    arrived, charged = sub(_arrived(failure)), _charged(failure)
    return said("Conch stopped during this answer.", arrived, charged, tone=STOPPED, icon="warn", buttons=(RETRY,))


def _charged(failure: Data) -> Any:
    by_key = failure.get("charged") or failure.get("billing") == "key"
    return sub("It may have been charged.") if by_key else ""


def _arrived(failure: Data) -> str:
    """What became of the answer so far; a failure that says nothing of it had some."""
    return KEPT if failure.get("arrived", True) else NOTHING_ARRIVED


def _cut(failure: Data, _viewer: Viewer | None) -> Said:
    if not failure.get("arrived", True):  # then there is nothing to go on from
        words, retry = " broke off before it had written anything.", (RETRY, *_offers(failure))
        return said(_who(failure), words, _charged(failure), tone=STOPPED, icon="warn", buttons=retry)
    return said(
        _who(failure), " stopped before the end.", sub(KEPT), tone=STOPPED, icon="warn", buttons=(CONTINUE, RETRY)
    )


def _provider_error(failure: Data, _viewer: Viewer | None) -> Said:
    words = str(failure.get("said") or "").strip().rstrip(".")
    why = (": ", name(words), ".") if words else (".",)
    return said(_who(failure), " couldn’t answer", *why, tone=STOPPED, icon="warn", buttons=(RETRY, *_offers(failure)))


def _unending(failure: Data, _viewer: Viewer | None) -> Said:
    words = " asked for tools again and again, so Conch ended it."
    return said(_who(failure), words, sub(KEPT), tone=STOPPED, icon="warn", buttons=(CONTINUE, RETRY))


def _internal(failure: Data, _viewer: Viewer | None) -> Said:
    words = "Conch made a mistake during this answer."
    return said(words, sub(_arrived(failure)), tone=STOPPED, icon="warn", buttons=(RETRY,))


def _images(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        _model(failure),
        " can’t see images.",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="warn",
        buttons=_offers(failure),
    )


def _tools(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        _who(failure),
        " can’t run the tools this chat uses.",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="warn",
        buttons=_offers(failure),
    )


def _too_long(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        "This message is too long for ",
        _model(failure),
        ".",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="warn",
        buttons=_offers(failure),
    )


def _model_gone(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        _who(failure),
        " doesn’t have ",
        _model({**failure, "label": ""}),
        ".",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="warn",
        buttons=(Button("Pick another model", "pick"), *_offers(failure)),
    )


def _signed_out(failure: Data, _viewer: Viewer | None) -> Said:
    by_key = failure.get("billing") == "key"
    return said(
        _who(failure),
        " doesn’t accept its key." if by_key else " is signed out.",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="warn",
        buttons=(
            Button("Change the key" if by_key else "Sign in", "sign_in", failure.get("account", "")),
            *_offers(failure),
        ),
    )


def _no_account(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        "This chat’s account isn’t connected any more.",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="warn",
        buttons=(*_offers(failure), Button("Connect one", "connect")),
    )


def _no_room(failure: Data, viewer: Viewer | None) -> Said:
    local = [offer for offer in failure.get("offers") or () if offer.get("billing") == "local"]
    here = tuple(answer_with(offer) for offer in local[:1])
    if failure.get("reason") == "budget":
        budget = failure.get("budget")
        spent = f"{dollars(budget)} is spent" if budget is not None else "budget is spent"
        return said(
            f"This month’s {spent}.",
            sub("Your message wasn’t answered."),
            tone=STOPPED,
            icon="coins",
            buttons=(CHANGE_BUDGET, *here),
        )
    until = instant(failure.get("until"))
    before = f" before {moment(until, viewer)}" if until and viewer else ""
    return said(
        f"No account has room{before}.",
        sub("Your message wasn’t sent."),
        tone=STOPPED,
        icon="clock",
        buttons=(CONNECT_ANOTHER, *here),
    )


def _no_model(_failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        "There’s no model on this computer yet.",
        sub(NOTHING_SENT),
        tone=STOPPED,
        icon="chip",
        buttons=(Button("Get a model", "model"), *_offers(_failure)),
    )


def _held(failure: Data, viewer: Viewer | None) -> Said:
    """A routine's run at a limit (R25): nothing is to be done about it."""
    ends = instant(failure.get("until"))
    until = f" until {moment(ends, viewer)}" if ends and viewer else ""
    return said(
        "Held: ",
        bold(failure.get("label") or "The account"),
        f" is at its limit{until}.",
        sub("The next run is tried as usual."),
        tone=ATTENTION,
        icon="clock",
    )


def _wrong_payer(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        _who(failure),
        " reported another way of paying than this account’s.",
        sub("The answer was stopped."),
        tone=STOPPED,
        icon="coins",
        buttons=(RETRY, *_offers(failure)),
    )


def _limit(failure: Data, _viewer: Viewer | None) -> Said:
    return said(
        _who(failure),
        " reached its limit.",
        sub("Your message wasn’t answered."),
        tone=STOPPED,
        icon="clock",
        buttons=(RETRY, *_offers(failure)),
    )


CODES: dict[str, Callable[[Data, Viewer | None], Said]] = {
    "offline": _offline,
    "unreachable": _unreachable,
    "throttled": _busy("asks for a pause that is too long to wait for."),
    "overloaded": _busy("has more to do than it can take."),
    "interrupted": _interrupted,
    "cut": _cut,
    "provider_error": _provider_error,
    "rejected": _provider_error,
    "internal": _internal,
    "too_many_calls": _unending,
    "cannot_carry_images": _images,
    "cannot_carry_tools": _tools,
    "too_long": _too_long,
    "model_gone": _model_gone,
    "signed_out": _signed_out,
    "no_account": _no_account,
    "no_room": _no_room,
    "no_model": _no_model,
    "held": _held,
    "wrong_payer": _wrong_payer,
    "limit": _limit,
}
