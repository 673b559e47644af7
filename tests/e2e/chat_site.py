"""A person's chats over a real server, in a real browser, with providers that the simulator speaks for."""

from contextlib import contextmanager

import pytest
from django.test import Client
from playwright.sync_api import expect

from conch.models import Account, Conversation, Line, Preferences, Turn
from tests.conftest import NOW, make_person
from tests.e2e.settings_site import address, browser, violations  # noqa: F401  fixtures are found by name
from tests.turns.conftest import World

# Patience of a busy machine; it holds for every browser test, whichever module is read first.
expect.set_options(timeout=45_000)

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def world(transactional_db, simulator, tmp_path):
    person = make_person("ada", is_owner=True)
    Preferences.objects.filter(person=person).update(time_zone="Europe/Berlin", hour_cycle="h12")
    return World(person, simulator, tmp_path)


@contextmanager
def shown(browser, address, person, path="/", *, script=True, **options):  # noqa: F811  the fixtures' own values
    """That person's page there; what its console says, and every host that it asks, are kept."""
    client = Client()
    client.force_login(person)
    options = {"viewport": DESK, "color_scheme": "light"} | options
    context = browser.new_context(base_url=address, java_script_enabled=script, **options)
    context.set_default_timeout(30_000)
    context.add_cookies([{"name": "conch_session", "value": client.cookies["conch_session"].value, "url": address}])
    page = context.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    try:
        page.goto(path)
        yield page
    finally:
        context.close()


def say(page, text):
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def a_chat(person, account="codex", title="Slow query on orders", **fields):
    return Conversation.objects.create(
        person=person,
        account=account,
        model="gpt-5.5",
        title=title,
        **({"created_at": NOW, "updated_at": NOW} | fields),
    )


def a_turn(chat, text="hi", answer="Hello.", state="done", **fields):
    given = {"account": chat.account, "model": "gpt-5.5", "created_at": NOW, "ended_at": NOW} | fields
    return Turn.objects.create(conversation=chat, text=text, answer=answer, state=state, **given)


def a_line(turn, kind, data):
    return Line.objects.create(conversation=turn.conversation, turn=turn, kind=kind, data=data, at=NOW)


def two_codex(world):
    """Two Codex sign-ins of two people."""
    first, second = world.account("codex"), world.account("codex", "codex-2")
    Account.objects.filter(engine="codex").update(label="Codex")
    return first, second
