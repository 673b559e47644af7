"""From a connected account to what an engine needs to speak for it."""

from conch.accounts.seal import unseal
from conch.engines.base import Access
from conch.models import Account


def access_for(account: Account) -> Access:
    """What the account's engine needs, the secret opened. Raises CantUnseal. Asks the database for nothing more."""
    return Access(
        slug=account.slug,
        base_url=account.base_url,
        key=unseal(account.sealed_key),
        home=account.home,
        identity=account.identity,
        model=account.model,
    )
