"""The forms of agents, background tasks and routines."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings

from conch.accounts.defaults import LOCAL, billing_of
from conch.copy import tasks as copy
from conch.models import Agent, ToolServer
from conch.tasks import schedule
from conch.tasks.agents import Accounts
from conch.tasks.schedule import Plan
from conch.turns.accept import clean
from settings_ui.forms import ConchForm

INSTRUCTIONS = 20_000
MODELS_OFFERED = 400


def account_names(accounts: Accounts, unset: str = "Whoever new chats start with") -> Iterator[tuple[str, str]]:
    """Who can answer, by slug, with who pays, to choose from: unset first, the model on this computer last."""
    yield "", unset
    for account in accounts.there:
        label = f"{account.label} · {account.whose}" if account.whose else account.label
        yield account.slug, copy.answered_by(label, billing_of(account.engine).value)
    yield LOCAL, copy.answered_by("The model on this computer", LOCAL)


class _WhoForm(ConchForm):
    """A form that says who answers. An account that is gone stays to be seen, and is refused when it is sent."""

    account = forms.ChoiceField(label="Answered by", required=False)
    unset = "Whoever new chats start with"

    def __init__(self, *args: Any, accounts: Accounts, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.accounts = accounts
        choices = [*account_names(accounts, self.unset)]
        kept = str(self.initial.get("account") or "")
        if kept and kept not in dict(choices):
            choices.append((kept, f"{accounts.gone.get(kept, kept)} (not connected any more)"))
        field = self.fields["account"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices
        field.error_messages["invalid_choice"] = "That account isn’t connected. Choose who answers."

    def clean_account(self) -> str:
        """An account that is there, or none."""
        slug = str(self.cleaned_data["account"])
        if slug and slug != LOCAL and self.accounts.find(slug) is None:
            raise forms.ValidationError("That account isn’t connected any more. Choose who answers.")
        return slug


class AgentForm(_WhoForm):
    """An agent: what its chats are told, who answers them, with which model."""

    name = forms.CharField(label="Name", max_length=100, error_messages={"required": "Give it a name."})
    instructions = forms.CharField(
        label="Instructions",
        required=False,
        max_length=INSTRUCTIONS,
        help_text="Told to the model at the start of each of its chats.",
        widget=forms.Textarea(attrs={"rows": 8, "dir": "auto"}),
        error_messages={"max_length": f"At most {INSTRUCTIONS:,} characters."},
    )
    model = forms.CharField(
        label="Model",
        required=False,
        max_length=200,
        help_text="Empty: the one that the account answers with.",
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off", "spellcheck": "false"}),
    )
    tools = forms.MultipleChoiceField(
        label="Tools",
        required=False,
        help_text="Turned on in each of its chats.",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"invalid_choice": "That server isn’t connected any more."},
    )
    field_order = ("name", "instructions", "account", "model", "tools")

    def __init__(self, *args: Any, servers: Sequence[ToolServer] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["tools"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [(server.slug, server.name) for server in servers]
        if not servers:
            del self.fields["tools"]

    @property
    def models(self) -> Sequence[str]:
        """Models to choose from: what the accounts list."""
        listed = (str(one["id"]) for account in self.accounts.there for one in account.known_models if one.get("id"))
        return [*dict.fromkeys(listed)][:MODELS_OFFERED]

    def clean_instructions(self) -> str:
        """As a message may be kept."""
        return clean(str(self.cleaned_data["instructions"]))

    def clean(self) -> dict[str, Any]:
        """A model is one of that account's, where its list is known."""
        given: dict[str, Any] = super().clean() or {}
        model, account = str(given.get("model", "")), self.accounts.find(str(given.get("account", "")))
        if not model or "account" not in given:
            return given
        if account is None and given["account"] != LOCAL:
            self.add_error("model", "Choose an account for this model.")
        elif account is not None:
            known = [str(one.get("id")) for one in account.known_models]
            if known and model not in {*known, str(self.initial.get("model") or "")}:
                self.add_error("model", f"{account.label} doesn’t list that model.")
        return given


class _PromptForm(_WhoForm):
    """A prompt that runs without a page, perhaps with an agent."""

    agent = forms.ModelChoiceField(
        label="Agent",
        required=False,
        queryset=Agent.objects.none(),
        empty_label="None",
        error_messages={"invalid_choice": "There is no such agent. Choose another."},
    )
    text = forms.CharField(
        label="Prompt",
        max_length=settings.MESSAGE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 4, "dir": "auto"}),
        error_messages={
            "required": "Write what it is to do.",
            "max_length": f"At most {settings.MESSAGE_CHARACTERS:,} characters.",
        },
    )

    def __init__(self, *args: Any, agents: Sequence[Agent], person_id: int, **kwargs: Any) -> None:
        self.unset = "As its agent, or as new chats" if agents else self.unset
        super().__init__(*args, **kwargs)
        field = self.fields["agent"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Agent.objects.filter(person_id=person_id).order_by("name", "pk")
        if not agents:
            del self.fields["agent"]

    def clean_text(self) -> str:
        """As a message may be kept."""
        return clean(str(self.cleaned_data["text"]))


class TaskForm(_PromptForm):
    """A background task. `key`: pressed twice, it is one task."""

    key = forms.CharField(widget=forms.HiddenInput(), max_length=100)
    field_order = ("text", "agent", "account", "key")


class RoutineForm(_PromptForm):
    """A prompt on a schedule: chosen in words, or as a cron expression."""

    name = forms.CharField(label="Name", max_length=100, error_messages={"required": "Give it a name."})
    kind = forms.ChoiceField(
        label="How often",
        choices=[
            (schedule.DAY, "Every day"),
            (schedule.WEEKDAYS, "Every weekday, Monday to Friday"),
            (schedule.WEEK, "Every week"),
            (schedule.MONTH, "Every month"),
            (schedule.CRON, "By a cron expression"),
        ],
    )
    at = forms.TimeField(
        label="At",
        required=False,
        widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"}),
        error_messages={"invalid": "Write a time, such as 09:00."},
    )
    weekday = forms.ChoiceField(label="On", required=False, choices=[])
    monthday = forms.ChoiceField(label="On day", required=False, choices=[])
    cron = forms.CharField(
        label="Cron expression",
        required=False,
        max_length=100,
        help_text="Minute, hour, day of the month, month, day of the week: 0 9 * * 1-5 is every weekday at 9.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    field_order = ("name", "text", "agent", "account", "kind", "at", "weekday", "monthday", "cron")

    def __init__(self, *args: Any, now: datetime, zone: ZoneInfo, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now, self.zone = now, zone
        days = [(str(number), copy.WEEKDAYS[number]) for number in (1, 2, 3, 4, 5, 6, 0)]
        months = [(str(number), str(number)) for number in range(1, 32)]
        for name, choices in (("weekday", days), ("monthday", [*months, (schedule.LAST_DAY, "The last")])):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = choices

    def clean(self) -> dict[str, Any]:
        """The schedule as one expression, `cron`; what is wrong with it stands beside its field."""
        given: dict[str, Any] = super().clean() or {}
        kind, at = given.get("kind"), given.get("at")
        if kind is None:
            return given
        if kind == schedule.CRON:
            wrong = schedule.trouble(str(given.get("cron", "")), self.now, self.zone)
            if wrong and "cron" in given:
                self.add_error("cron", wrong)
        elif at is None and "at" in given:
            self.add_error("at", "Choose a time.")
        if not self.errors:
            clock = f"{at:%H:%M}" if at is not None else ""
            plan = Plan(kind, clock, given["weekday"] or "1", given["monthday"] or "1", given["cron"])
            given["cron"] = schedule.cron_of(plan)
        return given
