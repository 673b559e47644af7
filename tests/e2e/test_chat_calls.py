"""A tool that asks, in Chromium: answered by keyboard, in one of two tabs, on a phone, without script; calls folded."""

import re

import pytest
from playwright.sync_api import expect

from conch.models import Turn
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import PHONE, a_chat, say, shown, violations
from tests.turns.tools import Ledger, call

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ledger(world, tmp_path):
    return Ledger(world.person, tmp_path)


@pytest.fixture
def chat(world, ledger):
    """A chat whose model looks something up, then answers."""
    account = world.account("codex")
    account.key.replies("Let me look.", calls=[call("look_up", "tides")]).replies("The moon **moves** them.")
    return a_chat(world.person, tools=["ledger"])


def asks(page):
    return page.locator(".line.warn", has_text="wants to run")


def answer(page):
    return page.locator(".turn").last.locator(".msg:not(.you) .md").first


def test_a_call_is_allowed_by_keyboard_and_folded_with_what_it_gave(browser, address, world, ledger, chat):
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        say(page, "What moves the tides?")
        expect(asks(page)).to_contain_text("Codex wants to run look up in Ledger.")
        expect(page.locator("#live")).to_contain_text("wants to run look up in Ledger.")
        assert ledger.ran == []
        assert violations(page) == "[]"

        page.get_by_role("button", name="Allow once").focus()
        page.keyboard.press("Enter")

        expect(answer(page).locator("strong")).to_have_text("moves")
        expect(asks(page)).to_have_count(0)
        expect(page.get_by_role("button", name="Try again", exact=True)).to_be_visible()
        expect(page.locator(".htmx-settling")).to_have_count(0)
        fold = page.locator("details.call")
        expect(fold.locator("summary")).to_have_text(re.compile(r"look up in Ledger: done in \d+\.\d\ss"))
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(fold.get_by_role("group", name="Arguments")).to_contain_text('"what": "tides"')
        expect(fold.get_by_role("group", name="Outcome")).to_have_text("All that is known of tides.")
        assert ledger.ran == ["look_up tides"]
        assert violations(page) == "[]"
        assert page.said == []


def test_what_is_unfolded_while_the_answer_is_written_stays_so_when_it_ends(browser, address, world, ledger):
    key = world.account("codex").key
    key.replies("Let me look.", calls=[call("look_up", "tides")])
    key.replies("The moon moves them.", pieces=2, hold_after=1)
    chat = a_chat(world.person, tools=["ledger"])
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        say(page, "What moves the tides?")
        page.get_by_role("button", name="Allow once").click()
        expect(answer(page)).to_contain_text("The moon")
        page.locator("details.call summary").click()
        outcome = page.locator("details.call").get_by_role("group", name="Outcome")
        expect(outcome).to_be_visible()

        key.release()

        expect(page.get_by_role("button", name="Try again", exact=True)).to_be_visible()
        expect(outcome).to_be_visible()
        assert page.said == []


def test_answered_in_one_tab_the_other_shows_what_came_of_it(browser, address, world, ledger, chat):
    path = f"/c/{chat.pk}"
    with shown(browser, address, world.person, path) as page, shown(browser, address, world.person, path) as other:
        say(page, "What moves the tides?")
        expect(asks(page)).to_be_visible()
        other.reload()
        expect(asks(other)).to_be_visible()

        page.get_by_role("button", name="No", exact=True).click()
        expect(answer(page)).to_contain_text("The moon moves them.")
        other.get_by_role("button", name="Always").click()

        expect(answer(other)).to_contain_text("The moon moves them.")
        expect(other.locator("details.call summary")).to_have_text("look up in Ledger: not allowed")
        assert (ledger.ran, ledger.permission("look_up"), Turn.objects.get().run) == ([], "ask", 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_scrolls_sideways_whatever_a_tool_gave(browser, address, world, ledger, scheme):
    account = world.account("codex")
    account.key.replies("", calls=[call("look_up", "x" * 300), call("write_down", "it")]).replies("There.")
    ledger.permits("always", "look_up")
    chat = a_chat(world.person, tools=["ledger"])
    with shown(browser, address, world.person, f"/c/{chat.pk}", viewport=PHONE, color_scheme=scheme) as page:
        say(page, "Look")
        expect(asks(page)).to_contain_text("write down in Ledger")
        page.locator("details.call summary").first.click()

        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page) == "[]"
        page.get_by_role("button", name="Always").click()
        expect(answer(page)).to_contain_text("There.")
        assert ledger.permission("write_down") == "always"


def test_without_script_the_answers_are_forms(browser, address, world, ledger, chat):
    with shown(browser, address, world.person, f"/c/{chat.pk}", script=False) as page:
        page.get_by_label("Message", exact=True).fill("What moves the tides?")
        page.get_by_role("button", name="Send").click()
        page.wait_for_timeout(500)
        while not asks(page).count():
            page.reload()
        page.get_by_role("button", name="Allow once").click()
        while "The moon" not in page.content():
            page.reload()
        assert ledger.ran == ["look_up tides"]
