"""A person who is signed in, with accounts that pages can be asked about."""

from datetime import timedelta

import pytest
from django.test import Client

from conch.models import Refusal, Window
from tests.conftest import make_account, make_person


@pytest.fixture
def tables(db):
    """The database of pages that are looked at; modules whose presses wake turns take `transactional_db` instead."""


@pytest.fixture
def signed_in(tables):
    """Pages of ada, the owner."""
    person = make_person("ada", is_owner=True, is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(person)
    client.person = person
    return client


@pytest.fixture
def visitor(tables):
    """Pages of bob, who owns nothing here."""
    person = make_person("bob")
    client = Client()
    client.force_login(person)
    client.person = person
    return client


def window(account, used, now, hours=3, name="5-hour", minutes=300):
    return Window.objects.create(
        account=account,
        name=name,
        used_percent=used,
        resets_at=now + timedelta(hours=hours),
        length_minutes=minutes,
        read_at=now,
    )


def blocked(account, now, hours=2):
    until = now + timedelta(hours=hours)
    return Refusal.objects.create(account=account, kind="blocked", at=now, until=until, retry_at=until)


def three_accounts(person):
    """Codex, Anthropic and OpenRouter: a plan and two keys."""
    return (
        make_account(person, "codex", label="Codex", whose="ada@work.example", identity="acc-1:user-a"),
        make_account(person, "anthropic", label="Anthropic", model="claude-sonnet-4-5", key_hint="4f2a"),
        make_account(person, "openrouter", label="OpenRouter", model="made/up", key_hint="9c1d"),
    )
