"""From a connected account to what an engine needs to speak for it."""

from conch.accounts.seal import unseal
from conch.engines.base import Access
from conch.models import Account


def access_for(account: Account) -> Access:
    """What the account's engine needs, the secret opened. Raises CantUnseal.

    An address of a guest's own must be one of the internet, whatever its name resolves to (SEC-04).
    """
    return Access(
        slug=account.slug,
        base_url=account.base_url,
        key=unseal(account.sealed_key),
        home=account.home,
        identity=account.identity,
        model=account.model,
        public_only=bool(account.base_url) and not account.person.is_owner,
    )
