"""The people of this Conch: the owner, made at the first start, and those who are added."""

from django.db import IntegrityError, transaction

from conch.accounts.zones import preferences_of
from conch.models import Person

OWNER = "owner"


class NoSuchPerson(LookupError):
    """There is nobody of that name."""


def make_owner() -> Person:
    """The owner of the machine: the first person, made at the first start (product.md, Words)."""
    owner = Person.objects.filter(is_owner=True).first()
    if owner is None:
        owner = _make(OWNER, is_owner=True, is_staff=True, is_superuser=True)
    preferences_of(owner)
    return owner


def make_person(name: str) -> Person:
    """Somebody new. Raises ValueError where the name is taken or can't be one."""
    Person.username_validator(name)
    if len(name) > 150 or Person.objects.filter(username=name).exists():
        raise ValueError(f"{name!r} can't be made: there is somebody of that name already")
    person = _make(name)
    preferences_of(person)
    return person


def person_named(name: str | None) -> Person:
    """The person of that name; without one, the owner. Raises NoSuchPerson."""
    if name is None:
        return make_owner()
    person = Person.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise NoSuchPerson(f"there is nobody called {name!r}; `manage.py signin --user {name} --new` makes them")
    return person


def _make(name: str, **rights: bool) -> Person:
    try:
        with transaction.atomic():
            person = Person(username=name, **rights)
            person.set_unusable_password()
            person.save()
            return person
    except IntegrityError:
        # Two processes started at once; the other one made them.
        return Person.objects.get(is_owner=True) if rights else Person.objects.get(username=name)
