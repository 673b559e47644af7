"""What is said of one account outside the picker: its state and what to do about it, its room, its price. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conch.copy.clock import Viewer, moment, span
from conch.models import Account, Refusal, Window
from conch.money import from_nano, shown

TAGS = {
    Account.State.SIGNED_OUT: ("Signed out", "warn"),
    Account.State.UNREACHABLE: ("Can’t be reached", "warn"),
    Account.State.WRONG_KEY: ("Wrong key", "bad"),
    Account.State.NO_CREDIT: ("No credit", "bad"),
    Account.State.DISABLED: ("Switched off", "plain"),
}


@dataclass(frozen=True, slots=True)
class Room:
    """What is known of an account's room, for a row: percent left (None: not known), level, tag, facts."""

    left: float | None
    level: str
    tag: str
    tag_kind: str
    facts: tuple[str, ...]


def state_said(account: Account, label: str) -> str:
    """What the state means and what to do about it; "" where there is nothing to do."""
    said = {
        Account.State.SIGNED_OUT: f"{label} doesn’t accept this sign-in any more. Sign in again to use it.",
        Account.State.UNREACHABLE: "It couldn’t be reached when Conch last tried. The key or sign-in may be fine.",
        Account.State.WRONG_KEY: f"{label} doesn’t accept this key. Paste it again, or connect a new one beside it.",
        Account.State.NO_CREDIT: f"The key works, but {label} says that there is no credit on it.",
        Account.State.DISABLED: "It is switched off and answers nothing.",
    }
    return said.get(Account.State(account.state), "")


def room_of(account: Account, viewer: Viewer) -> Room:
    """The room of an account as its row says it: state first, then a limit, then the fullest window."""
    tag, kind = TAGS.get(Account.State(account.state), ("", ""))
    model = f"Answers with {model_label(account)}" if account.model else ""
    refusal = latest(list(account.refusals.all()), viewer.now)
    window = tightest(list(account.windows.all()), viewer.now)
    full = window is not None and (window.used_percent or 0) >= 100  # what holds longer than a refusal that was tried
    if refusal is not None and not tag and (refusal.kind == Refusal.Kind.BLOCKED or not full):
        return Room(0.0, "none", *_refused(refusal), facts=_facts(_until(refusal, viewer), model))
    if window is None or window.used_percent is None:
        return Room(None, "", tag, kind, _facts(key_facts(account), model))
    left = max(0.0, 100 - window.used_percent)
    level = "none" if left <= 0 else "low" if left <= 10 else ""
    if not tag and level:
        tag, kind = ("None left", "bad") if level == "none" else ("Low", "warn")
    resets = f"resets {moment(window.resets_at, viewer)}" if window.resets_at else ""
    figure = f"At its {window.name} limit" if level == "none" else f"{left:.0f}% left"
    return Room(left, level, tag, kind, _facts(figure, resets, model))


def _facts(*facts: str) -> tuple[str, ...]:
    return tuple(fact for fact in facts if fact)


def _refused(refusal: Refusal) -> tuple[str, str]:
    return ("None left", "bad") if refusal.kind == Refusal.Kind.BLOCKED else ("Refused", "warn")


def _until(refusal: Refusal, viewer: Viewer) -> str:
    if refusal.kind == Refusal.Kind.BLOCKED:
        return f"At its limit, resets {moment(refusal.until, viewer)}" if refusal.until else "At its limit"
    return f"Refused for a limit, tried again {moment(refusal.retry_at, viewer)}"


def key_facts(account: Account) -> str:
    """What is left of a key's cap at its provider, or its own limit here; "" where neither is known."""
    if account.key_left_nano is not None and account.key_cap_nano is not None:
        return f"{shown(from_nano(account.key_left_nano))} of {shown(from_nano(account.key_cap_nano))} left of its cap"
    return f"Own limit {shown(from_nano(account.own_limit_nano))} a month" if account.own_limit_nano else ""


def latest(refusals: Sequence[Refusal], now: datetime) -> Refusal | None:
    """The refusal of the whole account that holds longest; None where none does."""
    holding = [row for row in refusals if not row.model and row.retry_at > now]
    return max(holding, key=lambda row: row.retry_at, default=None)


def tightest(windows: Sequence[Window], now: datetime) -> Window | None:
    """The fullest window that covers every model and whose reset is not behind us."""
    counting = [
        row
        for row in windows
        if row.used_percent is not None and not row.covers and (row.resets_at is None or row.resets_at > now)
    ]
    return max(counting, key=lambda row: row.used_percent or 0.0, default=None)


def model_label(account: Account) -> str:
    """The default model by name."""
    named: dict[str, Any] = {str(model.get("id")): model.get("label") for model in account.known_models}
    return str(named.get(account.model) or account.model)


def read_said(account: Account, viewer: Viewer) -> str:
    """When its room was last read, and whether the last try failed."""
    if account.read_at is None:
        return "Its room was never read."
    said = f"Read {span(viewer.now - account.read_at)} ago."
    failed = account.read_failed_at is not None and account.read_failed_at > account.read_at
    return f"{said} The last try failed; the figures stay as they were." if failed else said


def disconnecting(label: str, *, chats: int, waiting: int, picked: bool, default: bool) -> list[str]:
    """What disconnecting means, said before it happens."""
    said = ["Its key or sign-in is deleted here. What it cost stays in the ledger."]
    if chats:
        number = "1 chat answers" if chats == 1 else f"{chats} chats answer"
        said.append(f"{number} with {label}. What was said stays; to go on there, pick another account in the chat.")
    if waiting:
        said.append("1 message waits for an answer." if waiting == 1 else f"{waiting} messages wait for an answer.")
    if picked:
        said.append("It is your pick at a limit: until you choose another, chats wait there.")
    if default:
        said.append("New chats start with it: after this they start with your next plan, else on this computer.")
    return said
