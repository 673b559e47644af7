"""Who a new chat starts with (product.md, Preferences)."""

from collections.abc import Sequence
from dataclasses import dataclass

from conch.engines import local_models
from conch.engines.base import Billing
from conch.engines.registry import UnknownEngine, engine
from conch.models import Account, Preferences

LOCAL = "local"
OUT = (Account.State.SIGNED_OUT, Account.State.WRONG_KEY, Account.State.DISABLED)


@dataclass(frozen=True, slots=True)
class Start:
    """The account and the model of a new chat. `replaced`: the person's own default is gone or signed out."""

    account: str
    model: str
    replaced: bool = False


def billing_of(engine_id: str) -> Billing:
    """How an account of that engine is paid; one whose engine isn't installed any more counts as a key: it may cost."""
    if engine_id == LOCAL:
        return Billing.LOCAL
    try:
        return engine(engine_id).billing
    except (UnknownEngine, ImportError, AttributeError):
        return Billing.KEY


def connected(person_id: int) -> list[Account]:
    """The person's accounts that are there, in the order they were connected."""
    return list(Account.objects.filter(person_id=person_id, removed_at=None).order_by("connected_at", "pk"))


def start_of(preferences: Preferences, accounts: Sequence[Account]) -> Start:
    """Who a new chat starts with: the person's default; unset, the first plan, else the first key, else `local`.

    A default that is gone or signed out is replaced by the next plan, else by `local`: never by a key.
    """
    signed_in = [account for account in accounts if account.state not in OUT]
    wanted = preferences.default_account
    if wanted == LOCAL:
        return Start(LOCAL, preferences.default_model or local_model())
    for account in signed_in:
        if account.slug == wanted:
            return Start(wanted, preferences.default_model or account.model)
    plans = [account for account in signed_in if billing_of(account.engine) is Billing.PLAN]
    keys = [account for account in signed_in if billing_of(account.engine) is Billing.KEY]
    for account in plans or (keys if not wanted else []):
        has_it = preferences.default_model in {str(model.get("id")) for model in account.known_models}
        model = preferences.default_model if has_it and not wanted else account.model
        return Start(account.slug, model, replaced=bool(wanted))
    return Start(LOCAL, local_model(), replaced=bool(wanted))


def starting(person_id: int) -> Start:
    """The same, read for that person."""
    return start_of(Preferences.objects.get(pk=person_id), connected(person_id))


def local_model() -> str:
    """The id of the model on this computer; nothing where there is none or its server chooses."""
    return local_models.facts(local_models.setup()).model_id
