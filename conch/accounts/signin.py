"""Signing in: by a link that works once, within ten minutes, or by a password; guessing is slowed down."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth import authenticate
from django.db.models import QuerySet

from conch.accounts.tokens import digest
from conch.models import Person, SigninFailure, SigninLink

LINK_LASTS = timedelta(minutes=10)
FAILURES_COUNT_FOR = timedelta(minutes=15)
MOST_FAILURES_A_NAME = 5
MOST_FAILURES_AN_ADDRESS = 20


def make_link(person: Person, now: datetime) -> str:
    """The secret part of a new one-time link: it goes into /signin/TOKEN. Only its digest is kept."""
    SigninLink.objects.filter(expires_at__lt=now - timedelta(days=1)).delete()
    token = secrets.token_urlsafe(24)
    SigninLink.objects.create(person=person, digest=digest(token), expires_at=now + LINK_LASTS)
    return token


def person_of_link(token: str, now: datetime) -> Person | None:
    """Use the link up: its person, once; None for a link that is unknown, too old, or was used before."""
    live = SigninLink.objects.filter(digest=digest(token), used_at=None, expires_at__gt=now, person__is_active=True)
    person_id = live.values_list("person_id", flat=True).first()
    # The update decides: of two who come at once, one gets in.
    if person_id is None or not live.update(used_at=now):
        return None
    return Person.objects.get(pk=person_id)


def is_live(token: str, now: datetime) -> bool:
    """Whether the link would still sign in; looking doesn't use it up."""
    return SigninLink.objects.filter(digest=digest(token), used_at=None, expires_at__gt=now).exists()


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a password: the person, or how long to wait before the next try is looked at (None: no wait)."""

    person: Person | None = None
    wait: timedelta | None = None


def try_password(name: str, password: str, address: str, now: datetime) -> Tried:
    """The person whose name and password these are. After too many failures nothing is looked at for a while.

    The try is written down before it is looked at, so that many at once don't all slip through.
    """
    SigninFailure.objects.filter(at__lt=now - FAILURES_COUNT_FOR).delete()
    this = SigninFailure.objects.create(name_digest=digest(name), address=address[:64], at=now)
    wait = _wait(name, address, now)
    if wait is not None:
        this.delete()  # a try that wasn't looked at doesn't make the wait longer
        return Tried(wait=wait)
    person = authenticate(username=name, password=password)
    if not isinstance(person, Person):
        return Tried()
    SigninFailure.objects.filter(name_digest=digest(name)).delete()
    return Tried(person)


def _wait(name: str, address: str, now: datetime) -> timedelta | None:
    of_name = SigninFailure.objects.filter(name_digest=digest(name))
    from_address = SigninFailure.objects.filter(address=address[:64])
    waits = (_over(of_name, MOST_FAILURES_A_NAME, now), _over(from_address, MOST_FAILURES_AN_ADDRESS, now))
    return max((wait for wait in waits if wait is not None), default=None)


def _over(tries: QuerySet[SigninFailure], most: int, now: datetime) -> timedelta | None:
    """How long until fewer than `most` other tries count; None where this one is allowed."""
    recent = tries.filter(at__gt=now - FAILURES_COUNT_FOR).order_by("-at", "-pk").values_list("at", flat=True)
    counted = list(recent[: most + 1])
    return counted[-1] + FAILURES_COUNT_FOR - now if len(counted) > most else None
