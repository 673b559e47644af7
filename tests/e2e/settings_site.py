"""The settings pages over a real server, in a real browser, for tests that need both."""

import json
import os
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.test import Client
from django.utils import timezone
from playwright.sync_api import sync_playwright

from conch.models import Preferences
from conch.money import to_nano
from tests import chromium
from tests.api.site import served
from tests.conftest import make_account, make_person
from tests.settings_ui.conftest import window


@pytest.fixture(scope="module")
def browser():
    # Playwright runs a loop in this thread, and Django asks whether it is called from one.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium.path(), args=chromium.ARGUMENTS)
        yield launched
        launched.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def address(django_db_setup, django_db_blocker):
    from conch.asgi import application

    with django_db_blocker.unblock(), served(ASGIStaticFilesHandler(application)) as base:
        yield base


@pytest.fixture
def ada(transactional_db):
    """Ada: Codex at its limit, a second Codex sign-in with room, two keys, and a budget."""
    person = make_person("ada", is_owner=True, is_staff=True, is_superuser=True)
    now = timezone.now()
    Preferences.objects.filter(person=person).update(month_budget_nano=to_nano(Decimal(10)), time_zone="Europe/Berlin")
    models = [{"id": "gpt-5.5", "label": "GPT-5.5"}]
    full = make_account(
        person, label="Codex", whose="ada@work.example", identity="1:a", known_models=models, read_at=now
    )
    other = make_account(
        person,
        slug="codex-2",
        label="Codex",
        whose="ada@home.example",
        identity="2:b",
        known_models=models,
        read_at=now,
    )
    window(full, 100, now, hours=2)
    window(other, 28, now)
    make_account(person, "anthropic", label="Anthropic", model="claude-sonnet-4-5", key_hint="4f2a", read_at=now)
    make_account(person, "openrouter", label="OpenRouter", model="made/up", key_hint="9c1d", read_at=now)
    return person


@contextmanager
def opened(browser, address, person, path="/settings/providers", **options):
    """A page of that person's, at that address, with every message of the console kept in `page.said`."""
    client = Client()
    client.force_login(person)
    context = browser.new_context(base_url=address, **options)
    context.add_cookies([{"name": "conch_session", "value": client.cookies["conch_session"].value, "url": address}])
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    try:
        page.goto(path)
        yield page
    finally:
        context.close()


def violations(page, within=None):
    """What axe finds against WCAG 2.0–2.2 A and AA and its best practices, in few words; `within`: in that part."""
    found = Axe().run(page, context=within).response["violations"]
    return json.dumps([[one["id"], [node["html"][:160] for node in one["nodes"]][:3]] for one in found], indent=1)


def later(**span):
    return timezone.now() + timedelta(**span)
