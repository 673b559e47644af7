"""What calls take: a field that isn't known, or of another type, is refused (422)."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StringConstraints

# In micro-dollars at the finest, and no more than anybody means.
MOST_USD = Decimal(1_000_000)


def _no_float(value: Any) -> Any:
    """Money is a decimal string; a whole or decimal JSON number is taken by its digits, true is no number."""
    if isinstance(value, bool):
        raise ValueError("an amount is a decimal string")  # noqa: TRY004  pydantic wants a ValueError
    return str(value) if isinstance(value, int | float) else value


Usd = Annotated[Decimal, BeforeValidator(_no_float), Field(ge=0, le=MOST_USD, decimal_places=9, examples=["10.00"])]
Slug = Annotated[str, StringConstraints(min_length=1, max_length=64)]
ModelId = Annotated[str, StringConstraints(max_length=200)]
ToolNames = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=100)]


class Given(Schema):
    """A body: its fields and no others."""

    model_config = ConfigDict(extra="forbid")

    def said(self) -> dict[str, Any]:
        """The fields that were in the body, by name."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class AccountChange(Given):
    """What of an account can be changed here."""

    label: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)] = ""
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] = ""
    carries_on: StrictBool = True
    own_limit: Usd | None = None


class PreferencesChange(Given):
    """The preferences, by the names of the product."""

    default_account: Slug | None = None
    default_model: ModelId | None = None
    limit_fallback: Slug = "auto"
    limit_order: Annotated[list[Slug], Field(max_length=1000, default_factory=list)]
    limit_return: StrictBool = True
    limit_paid: StrictBool = False
    offline_fallback: StrictBool | None = None
    month_budget: Usd | None = None
    time_zone: Annotated[str, StringConstraints(max_length=64)] | None = None
    hour_cycle: Literal["h12", "h23"] | None = None


class ConversationStart(Given):
    """A new chat; what isn't said is as the person's defaults."""

    account: Slug | None = None
    model: ModelId | None = None
    agent: int | None = None
    tools: ToolNames = Field(default_factory=list)
    spend_cap: Usd | None = None


class ConversationChange(Given):
    """What of a chat can be changed."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = ""
    account: Slug = ""
    model: ModelId = ""
    tools: ToolNames = Field(default_factory=list)
    spend_cap: Usd | None = None


class ImageGiven(Given):
    """A picture: PNG, JPEG, WebP or GIF by content, at most 8 MiB, in base64."""

    media_type: str
    data: str


class MessageGiven(Given):
    """A message. The same `idempotency_key` again is the same turn."""

    text: str
    images: list[ImageGiven] = Field(default_factory=list)
    idempotency_key: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class AnswerWith(Given):
    """The account that answers this message now."""

    account: Slug


class Allow(Given):
    """The word on a call that asks: this once, from now on always, or no."""

    allow: Literal["once", "always", "no"]
