"""The forms of the settings pages: what a field takes, said beside it where it doesn't."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import available_timezones

from django import forms

from conch.accounts.defaults import LOCAL
from conch.accounts.zones import is_zone
from conch.copy.composer import not_listed
from conch.engines.local import Found
from conch.models import Account, Person

MOST_USD = Decimal(1_000_000)


class ConchForm(forms.Form):
    """A form whose fields look like the sheet's and say what is wrong beside themselves."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for field in self.fields.values():
            if not isinstance(field.widget, (forms.CheckboxInput, forms.RadioSelect)):
                field.widget.attrs.setdefault("class", "input")


def dollars(label: str, *, required: bool = False, help_text: str = "", most: Decimal = MOST_USD) -> forms.DecimalField:
    """A sum in USD, to the cent."""
    return forms.DecimalField(
        label=label,
        required=required,
        min_value=Decimal("0.01"),
        max_value=most,
        decimal_places=2,
        help_text=help_text,
        widget=forms.NumberInput(attrs={"inputmode": "decimal", "step": "0.01", "autocomplete": "off"}),
        error_messages={
            "invalid": "Write an amount in dollars, such as 10.00.",
            "min_value": "At least $0.01; leave it empty for none.",
            "max_value": f"At most ${most:,.2f}.",
            "max_decimal_places": "To the cent: two digits after the point.",
        },
    )


class BudgetForm(ConchForm):
    """The month's budget; empty: none."""

    budget = dollars("Up to, USD a month", help_text="Empty: no budget.")


class StartForm(ConchForm):
    """Who a new chat starts with; unset: the first plan that is signed in."""

    account = forms.ChoiceField(label="New chats start with", required=False)

    def __init__(self, *args: Any, accounts: Sequence[Account], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "The first plan that is signed in")]
        choices += [
            (account.slug, f"{account.label} · {account.whose}" if account.whose else account.label)
            for account in accounts
        ]
        field = self.fields["account"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [*choices, (LOCAL, "The model on this computer")]


class UpToForm(ConchForm):
    """The month's budget that *Pay-per-use keys too* asks for."""

    up_to = dollars("Up to, USD a month", required=True)


class LabelForm(ConchForm):
    """What an account is called."""

    label = forms.CharField(label="Name", max_length=100, error_messages={"required": "Give it a name."})


class ModelForm(ConchForm):
    """The default model of an account, one of its own list where that is known."""

    model = forms.CharField(label="Answers with", max_length=200, required=False)

    def __init__(self, *args: Any, models: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = [str(model["id"]) for model in models if model.get("id")]
        if self.known:
            choices = [
                (str(model["id"]), str(model.get("label") or model["id"])) for model in models if model.get("id")
            ]
            given = str(self.initial.get("model") or "")
            if given and given not in self.known:
                choices.insert(0, (given, not_listed(given)))
            self.fields["model"].widget = forms.Select(choices=choices, attrs={"class": "input"})
        else:
            self.fields["model"].help_text = "Its list of models isn’t known; write a model’s id."

    def clean_model(self) -> str:
        """A model that the account has, or the one it has been answering with."""
        model = str(self.cleaned_data["model"]).strip()
        if self.known and model not in {*self.known, str(self.initial.get("model") or "")}:
            raise forms.ValidationError("That model isn’t in this account’s list.")
        return model


class LimitForm(ConchForm):
    """A key's own limit in a calendar month; empty: none."""

    own_limit = dollars("Own limit, USD a month", help_text="Empty: none. The provider’s own cap counts too.")


class TimesForm(ConchForm):
    """How times are shown."""

    time_zone = forms.CharField(label="Time zone", max_length=64, required=False, show_hidden_initial=True)
    hour_cycle = forms.ChoiceField(
        label="Hours",
        required=False,
        choices=[("", "Not set (6:00 PM)"), ("h12", "6:00 PM"), ("h23", "18:00")],
        show_hidden_initial=True,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = sorted(name for name in available_timezones() if "/" in name or name == "UTC")
        self.fields["time_zone"].widget = forms.Select(
            choices=[("", "Not set (UTC)"), *((name, name.replace("_", " ")) for name in names)],
            attrs={"class": "input"},
        )

    def clean_time_zone(self) -> str:
        """A zone that this machine knows, or none."""
        zone = str(self.cleaned_data["time_zone"])
        if zone and not is_zone(zone):
            raise forms.ValidationError("There is no such time zone.")
        return zone


class TokenForm(ConchForm):
    """A token for the API."""

    name = forms.CharField(
        label="What it is for",
        max_length=100,
        error_messages={"required": "Say what it is for, so that you know which one to revoke."},
    )


class LookForm(ConchForm):
    """How Conch looks and behaves. What the page showed goes along, so that only what was changed is written."""

    theme = forms.ChoiceField(
        label="Theme",
        required=False,
        choices=[("", "As this device"), ("light", "Light"), ("dark", "Dark")],
        show_hidden_initial=True,
    )
    shortcuts = forms.BooleanField(
        label="Keyboard shortcuts",
        required=False,
        show_hidden_initial=True,
        help_text="Off, no key does anything but what the browser gives it.",
    )
    read_aloud = forms.BooleanField(
        label="Read replies aloud when they’re done",
        required=False,
        show_hidden_initial=True,
        help_text="For screen readers: each reply once, when it is whole.",
    )


class PasswordForm(ConchForm):
    """A new password; the old one is asked for where there is one."""

    old = forms.CharField(
        label="Present password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = forms.CharField(
        label="New password",
        strip=False,
        min_length=10,
        max_length=256,
        help_text="Ten characters or more.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        error_messages={"min_length": "Ten characters or more."},
    )

    def __init__(self, *args: Any, person: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        if not person.has_usable_password():
            del self.fields["old"]

    def clean_old(self) -> str:
        """The present password, or it is somebody else at the keyboard."""
        if not self.person.check_password(self.cleaned_data["old"]):
            raise forms.ValidationError("That isn’t the present password.")
        return str(self.cleaned_data["old"])


class TryForm(ConchForm):
    """A question to the model on this computer."""

    text = forms.CharField(
        label="Ask it something",
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Write something first."},
    )


class ServerForm(ConchForm):
    """A server that runs on this computer, and which of its models answers."""

    url = forms.CharField(widget=forms.HiddenInput, max_length=500)
    model = forms.ChoiceField(label="Answers with")

    def __init__(self, *args: Any, server: Found, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["model"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(model, model) for model in server.models]


class DeleteForm(ConchForm):
    """The own name, typed, before everything is deleted."""

    name = forms.CharField(
        label="Your name", max_length=150, error_messages={"required": "Type your name to delete everything."}
    )

    def __init__(self, *args: Any, person: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person
        self.fields["name"].help_text = f"Type {person.username}."

    def clean_name(self) -> str:
        """The name, exactly."""
        if self.cleaned_data["name"] != self.person.username:
            raise forms.ValidationError("That isn’t your name. Nothing was deleted.")
        return str(self.cleaned_data["name"])
