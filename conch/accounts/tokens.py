"""API tokens: made once, shown once, kept as a digest."""

import secrets
from datetime import datetime, timedelta
from hashlib import sha256

from django.db.models import Q

from conch import sql
from conch.db import step_now
from conch.models import ApiToken, Person

PREFIX = "conch_"
USED_AT_MOST_EVERY = timedelta(minutes=1)
# Written by hand: it comes before every call.
_LIVE = (
    "SELECT token.id, token.person_id, token.last_used_at FROM conch_apitoken AS token JOIN conch_person AS person"
    " ON person.id = token.person_id WHERE token.digest = %s AND token.revoked_at IS NULL AND person.is_active"
)


def make(person: Person, name: str, now: datetime) -> str:
    """A new token for the API; only its digest is kept."""
    token = PREFIX + secrets.token_urlsafe(32)
    ApiToken.objects.create(person=person, name=name[:100], digest=digest(token), hint=token[-4:], created_at=now)
    return token


def digest(token: str) -> str:
    """What is kept of a token or link: enough to know it again, useless to whoever reads the database."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def person_of(token: str, now: datetime) -> int | None:
    """Whose token that is; None for one that is unknown, revoked, or of a person who is switched off.

    When it was last used is written at most once a minute, so that a call costs one read.
    """
    found = sql.row(_LIVE, digest(token))
    if found is None:
        return None
    token_id, person_id, last_used = int(found[0]), int(found[1]), sql.instant(found[2])
    if last_used is None or now - last_used >= USED_AT_MOST_EVERY:
        step_now(_used, token_id, now)
    return person_id


def _used(token_id: int, now: datetime) -> None:
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_AT_MOST_EVERY)
    ApiToken.objects.filter(stale, pk=token_id).update(last_used_at=now)
