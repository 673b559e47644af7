"""The form of a price: its unit is fixed and shown, and a price that can hardly be meant is asked for again."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from conch.models import PriceOverride
from conch.money import shown

# Django's forms and admins take their model as a type parameter only for the type checker.
if TYPE_CHECKING:
    ModelForm = forms.ModelForm[PriceOverride]
else:
    ModelForm = forms.ModelForm

MOST_PER_MILLION = Decimal(1000)
MOST_A_REPLY = Decimal(5)
# A typical reply (R5): 1,500 tokens in, 500 out.
TYPICAL_IN, TYPICAL_OUT = Decimal(1500), Decimal(500)
UNIT = "USD per 1,000,000 tokens"


class PriceForm(ModelForm):
    """Prices per million tokens; `confirm` is asked for only where the prices are odd."""

    confirm = forms.BooleanField(required=False, label="Yes, these prices are right", widget=forms.HiddenInput)

    class Meta:
        model = PriceOverride
        fields: ClassVar = ["engine", "model", "input_per_million", "cached_input_per_million", "output_per_million"]
        labels: ClassVar = {
            "input_per_million": f"Input, {UNIT}",
            "cached_input_per_million": f"Cached input, {UNIT}",
            "output_per_million": f"Output, {UNIT}",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("input_per_million", "cached_input_per_million", "output_per_million"):
            self.fields[name].widget.attrs["min"] = "0"

    def clean(self) -> dict[str, Any]:
        """No price below zero; an odd one only with the second yes."""
        cleaned = super().clean() or {}
        for name, price in list(cleaned.items()):
            if isinstance(price, Decimal) and price < 0:
                self.add_error(name, "A price can't be below zero.")
        doubt = odd(cleaned.get("input_per_million"), cleaned.get("output_per_million"))
        if doubt and not cleaned.get("confirm"):
            self.fields["confirm"].widget = forms.CheckboxInput()
            self.add_error("confirm", f"{doubt} If that is right, tick this and save again.")
        return cleaned


def odd(price_in: Decimal | None, price_out: Decimal | None) -> str:
    """Why these prices per million tokens are asked for again; "" where they aren't."""
    if price_in is None or price_out is None:
        return ""
    if not price_in and not price_out:
        return "At this price every reply would be booked as free."
    reply = (price_in * TYPICAL_IN + price_out * TYPICAL_OUT) / 1_000_000
    if max(price_in, price_out) > MOST_PER_MILLION:
        return f"The unit is {UNIT}: a typical reply would cost {shown(reply)}."
    return f"A typical reply would cost {shown(reply)}." if reply > MOST_A_REPLY else ""
