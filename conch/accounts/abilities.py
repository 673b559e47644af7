"""What a model of an account takes, beyond what its engine's list says (R9): learned, or set by the person.

What isn't known is taken as able. A provider that refuses a request for its images, its tools or its length is
believed from then on, for that account and model, until *Check now*; the person's own word goes before both. What a
provider counted as a prompt corrects what is counted here (R26). All of it runs inside a step.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from conch.engines.base import Rejected
from conch.models import Ability
from routing.choices import most_input
from routing.facts import Model

# What a list tells of a model, and the column of what refusals taught of the same.
LEARNED = {"tools": "tools", "images": "images", "context": "fits"}
# A shorter prompt says little: what a provider adds to every request would weigh too much.
LEAST_TO_LEARN_FROM = 4_000
# A correction beyond this is a fault in somebody's counting.
LEAST_RATIO, MOST_RATIO = 0.5, 2.0
# A correction is kept where it differs by more than this, so that most replies cost no statement.
WORTH_KEEPING = 0.03


def learn_refusal(account_id: int, model: str, error: Rejected, counted: int, now: datetime) -> None:
    """Remember why that model couldn't take a request of so many tokens, as the provider counts them."""
    if error.reason == "too_long":
        _keep(account_id, model, now, fits=fits(error.fits_tokens, counted))
    elif error.reason == "images":
        _keep(account_id, model, now, images=False)
    elif error.reason == "tools":
        _keep(account_id, model, now, tools=False)


def fits(said: int | None, counted: int) -> int:
    """What a request may hold where that many tokens were too many: by the size that the provider said, else half."""
    return counted // 2 if said is None else most_input(Model("", context=said)) or 0


def learn_count(account_id: int, model: str, counted: int, billed: int, known: float, now: datetime) -> None:
    """Correct the count of that model's prompts by what one came to; `counted`: tokens as counted here."""
    if counted < LEAST_TO_LEARN_FROM or billed <= 0:
        return
    ratio = min(MOST_RATIO, max(LEAST_RATIO, billed / counted))
    if abs(ratio - known) > WORTH_KEEPING * known:
        _keep(account_id, model, now, ratio=ratio)


def forget_refusals(account_id: int) -> None:
    """Take its models as able again (*Check now*); what the person set, and what counts came to, stays."""
    Ability.objects.filter(account_id=account_id).update(tools=None, images=None, fits=None)


def forget_what_changed(
    account_id: int, before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> None:
    """Where a list tells something else of a model than it did, what refusals taught of that is over.

    It was learned of the model as it was then. A model that is listed for the first time tells nothing else.
    """
    was = {told.get("id"): told for told in before}
    for told in after:
        known = was.get(told["id"])
        over = [] if known is None else [name for name in LEARNED if told.get(name) != known.get(name)]
        if over:
            learned = Ability.objects.filter(account_id=account_id, model=told["id"])
            learned.update(**{LEARNED[name]: None for name in over})


def set_by_person(account_id: int, model: str, now: datetime, said: Mapping[str, Any]) -> None:
    """The person's own word for a model: `tools_set`, `images_set`, `context_set`; None: as it is known otherwise."""
    _keep(account_id, model, now, **said)


def _keep(account_id: int, model: str, now: datetime, **columns: Any) -> None:
    Ability.objects.update_or_create(account_id=account_id, model=model, defaults=columns | {"at": now})
