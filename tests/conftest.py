"""What every test can ask for: people, accounts and a clock that stands still."""

from datetime import UTC, datetime

import pytest

from tests.programs import real_programs  # noqa: F401  a fixture for every test
from tests.simulator.fixtures import simulator, tls_simulator  # noqa: F401  fixtures for every test

NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)


@pytest.fixture
def now():
    return NOW


@pytest.fixture
def ada(db):
    return make_person("ada")


@pytest.fixture
def bob(db):
    return make_person("bob")


def make_person(name, **fields):
    from conch.models import Person, Preferences

    person = Person.objects.create(username=name, **fields)
    Preferences.objects.create(person=person)
    return person


def make_account(person, engine="codex", slug=None, **fields):
    from conch.models import Account

    given = {"label": engine.title(), "model": "gpt-5.5", "connected_at": NOW} | fields
    return Account.objects.create(person=person, engine=engine, slug=slug or engine, **given)


def make_attachment(person, turn=None, data=b"png", media_type="image/png", **fields):
    from conch.engines.base import Image
    from conch.models import Attachment
    from conch.turns.accept import kept

    picture = kept(person.pk, Image(media_type, data), NOW)
    return Attachment.objects.create(person=person, turn=turn, picture=picture, created_at=NOW, **fields)


@pytest.fixture(autouse=True)
def _prices_read_anew():
    """An override that another test set, and that was rolled back, is not remembered."""
    from conch.ledger import prices

    prices.forget_overrides()
