"""Who may reach what: another person's thing is not there (404, never 403)."""

from django.shortcuts import get_object_or_404

from conch.models import Account, ApiToken, Person


def own_account(person: Person, slug: str) -> Account:
    """The person's connected account of that slug, or 404."""
    return get_object_or_404(Account, person=person, slug=slug, removed_at=None)


def own_accounts(person: Person) -> list[Account]:
    """The person's connected accounts in the order they were connected, with windows and refusals; three queries."""
    mine = Account.objects.filter(person=person, removed_at=None).order_by("connected_at", "pk")
    return list(mine.prefetch_related("windows", "refusals"))


def own_token(person: Person, token_id: int) -> ApiToken:
    """The person's token, revoked or not, or 404."""
    return get_object_or_404(ApiToken, person=person, pk=token_id)
