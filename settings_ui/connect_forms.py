"""The forms of connecting: what an engine takes is read off its attributes. A key is never shown again."""

from typing import Any

from django import forms

from conch.accounts.addresses import is_inside
from conch.engines.base import Engine
from settings_ui.forms import ConchForm


def key_field() -> forms.CharField:
    """A key: pasted, sent once, never put back into the form."""
    attrs = {"autocomplete": "off", "spellcheck": "false", "data-1p-ignore": "", "data-lpignore": "true"}
    return forms.CharField(
        label="API key",
        max_length=4096,
        widget=forms.PasswordInput(attrs=attrs, render_value=False),
        error_messages={"required": "Paste the key."},
    )


class ConnectForm(ConchForm):
    """What every way of connecting takes. `made`: when the form was shown, to tell a second press of it."""

    made = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, engine: Engine, owner: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.engine = engine
        self.owner = owner

    def needed(self) -> list[forms.BoundField]:
        """The fields without which nothing is connected, and a question that stands open."""
        return [each for each in self.visible_fields() if each.field.required or each.name in {*self.errors, "inside"}]

    def optional(self) -> list[forms.BoundField]:
        """The others, folded."""
        needed = {each.name for each in self.needed()}
        return [each for each in self.visible_fields() if each.name not in needed]

    def wished(self) -> dict[str, str]:
        """What the person said, as `conch.accounts.connect.Wish` takes it."""
        names = ("key", "label", "identity", "base_url", "model", "home")
        return {name: str(self.cleaned_data.get(name) or "").strip() for name in names}


class KeyForm(ConnectForm):
    """A key, and for a server of one's own its address."""

    key = key_field()
    label = forms.CharField(label="Name", max_length=100, required=False)
    base_url = forms.CharField(
        label="Base URL",
        max_length=500,
        required=False,
        help_text="Only for another server than the provider’s own.",
        widget=forms.URLInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    model = forms.CharField(
        label="Model", max_length=200, required=False, help_text="Empty: the best known of those that it lists."
    )
    inside = forms.BooleanField(
        label="Yes, send the key to that address on this computer or its network",
        required=False,
        widget=forms.HiddenInput,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["label"].widget.attrs["placeholder"] = self.engine.label
        self.fields["base_url"].widget.attrs["placeholder"] = self.engine.official_base_url

    def clean(self) -> dict[str, Any]:
        """An address on this computer or its network is asked for once more (doors.md); others may not name one."""
        cleaned = super().clean() or {}
        base_url = str(cleaned.get("base_url") or "")
        if self.owner and base_url.startswith(("http://", "https://")) and is_inside(base_url):
            self.fields["inside"].widget = forms.CheckboxInput()
            if not cleaned.get("inside"):
                self.add_error(
                    "inside", "That address is on this computer or its network. Tick this, and paste the key again."
                )
        return cleaned


class SigninForm(ConnectForm):
    """A sign-in that a program of the provider's keeps on this computer."""

    label = forms.CharField(label="Name", max_length=100, required=False)
    home = forms.CharField(
        label="Folder of the sign-in",
        max_length=500,
        required=False,
        help_text="Only for a second sign-in in a folder of its own; empty: the usual one.",
    )
    identity = forms.EmailField(
        label="Whose it is",
        max_length=254,
        required=False,
        help_text="An e-mail address, only where the sign-in doesn’t say it itself.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["label"].widget.attrs["placeholder"] = self.engine.label


class AgainForm(ConnectForm):
    """The same sign-in again: nothing to fill in."""


class AgainKeyForm(ConnectForm):
    """The same key again."""

    key = key_field()
