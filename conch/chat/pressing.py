"""Where the buttons of a line lead: one address an action."""

from dataclasses import dataclass

from django.urls import reverse

from conch.copy.sentences import Button

TURN_ACTIONS = {"answer_with": "answer-with", "cancel": "cancel", "retry": "retry", "send_now": "send-now"}
CHAT_ACTIONS = {"switch_back": "switch-back", "carry_on": "carry-on", "raise": "cap", "continue": "continue"}
PAGES = {
    "budget": "settings-providers",
    "connect": "settings-connect",
    "model": "settings-computer",
    "sign_in": "settings-providers",
}


@dataclass(frozen=True, slots=True)
class Press:
    """A button's words, where it goes, and what it sends along; a `link` only opens a page, `picks` the picker.

    `adds`: it sends a message, whose turn comes to the end of the chat.
    """

    label: str
    url: str
    fields: tuple[tuple[str, str], ...] = ()
    link: bool = False
    picks: bool = False
    adds: bool = False


def press(button: Button, conversation_id: int, turn_id: int | None, run: int | None = None) -> Press:
    """Where that button goes, on a line of that turn; `run`: the one that the line speaks of."""
    if button.act in TURN_ACTIONS:
        sent = {"account": button.account, "run": "" if run is None else str(run)}
        fields = tuple((name, value) for name, value in sent.items() if value)
        return Press(button.label, reverse(TURN_ACTIONS[button.act], args=[turn_id]), fields)
    if button.act in CHAT_ACTIONS:
        fields = (("cap", button.amount),) if button.amount else ()
        address = reverse(CHAT_ACTIONS[button.act], args=[conversation_id])
        return Press(button.label, address, fields, adds=button.act == "continue")
    if button.act == "pick":
        return Press(button.label, "", picks=True)
    if button.act == "sign_in" and button.account:
        return Press(button.label, reverse("settings-account", args=[button.account]), link=True)
    return Press(button.label, reverse(PAGES[button.act]), link=True)
