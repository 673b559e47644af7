"""What the model of an account can take, as it is known, and the person's own word for it (R9)."""

from datetime import datetime
from typing import Any

from django import forms

from conch.accounts import abilities
from conch.db import step_now
from conch.models import Ability, Account
from routing.facts import Model
from routing.known import question_for_settings
from settings_ui.forms import ConchForm
from settings_ui.viewing import Visit

AS_KNOWN, YES, NO = "", "yes", "no"
_SAID = {AS_KNOWN: None, YES: True, NO: False}
_WORD = {said: word for word, said in _SAID.items()}
LEAST_CONTEXT, MOST_CONTEXT = 1_000, 100_000_000


class AbilityForm(ConchForm):
    """Whether the model sees images and runs tools, and how much it reads; what isn't said here is as it is known."""

    images = forms.ChoiceField(
        label="Images",
        required=False,
        choices=[(AS_KNOWN, "As it is known"), (YES, "It sees images"), (NO, "It can’t see images")],
    )
    tools = forms.ChoiceField(
        label="Tools",
        required=False,
        choices=[(AS_KNOWN, "As it is known"), (YES, "It runs tools"), (NO, "It can’t run tools")],
    )
    context = forms.IntegerField(
        label="It reads, in tokens",
        required=False,
        min_value=LEAST_CONTEXT,
        max_value=MOST_CONTEXT,
        help_text="A chat and its answer together. Empty: as it is known.",
        widget=forms.NumberInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
        error_messages={"min_value": f"At least {LEAST_CONTEXT:,} tokens; leave it empty for what is known."},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("images", "tools"):
            self.fields[name].widget.attrs["class"] = "input"


def form_of(account: Account) -> AbilityForm:
    """The form with what the person said of the account's model."""
    row = Ability.objects.filter(account=account, model=account.model).first()
    if row is None:
        return AbilityForm()
    said = {"images": _WORD[row.images_set], "tools": _WORD[row.tools_set], "context": row.context_set}
    return AbilityForm(initial=said)


def words_of(account: Account, here: Visit) -> str:
    """What its model takes, as Conch has it now."""
    ways = question_for_settings(here.person.pk, account.slug, None, here.viewer.now).ways
    model = next((way.default_model for way in ways if way.slug == account.slug), None) or Model("")
    name = model.label or model.id or "Its model"
    facts = [
        _able(model.images, "sees images", "can’t see images"),
        _able(model.tools, "runs tools", "can’t run tools"),
        "" if model.context is None else f"reads {model.context:,} tokens",
    ]
    known = [fact for fact in facts if fact]
    unknown = " What isn’t known is taken as able, until it turns out not to be." if len(known) < len(facts) else ""
    return (f"{name} {', '.join(known)}." if known else f"Nothing is known of what {name} takes.") + unknown


def _able(known: bool | None, yes: str, no: str) -> str:
    if known is None:
        return ""
    return yes if known else no


def keep(account: Account, form: AbilityForm, now: datetime) -> None:
    """Keep the person's word for the model that the account answers with."""
    said = {
        "images_set": _SAID[form.cleaned_data["images"]],
        "tools_set": _SAID[form.cleaned_data["tools"]],
        "context_set": form.cleaned_data["context"],
    }
    step_now(abilities.set_by_person, account.pk, account.model, now, said)
