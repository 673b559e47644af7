"""What happens while nobody presses anything: a reset that passes, a server that goes away and comes back, steps."""

import os
import re
import socket
import subprocess
import sys
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from conch.models import Conversation, Preferences, Refusal, Turn, Window
from conch.settings import CONCH_DATA
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import a_chat, say, shown, two_codex

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
SERVER = """
import sys
import uvicorn
from conch.asgi import application
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
uvicorn.run(ASGIStaticFilesHandler(application), port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


def answer(page, number=-1):
    return page.locator(".turn").nth(number).locator(".msg:not(.you) .md").first


def written_down(page, text):
    """Wait until the database holds it: text is written down every 250 ms (design.md, A turn)."""
    for _ in range(200):
        if text in Turn.objects.latest("pk").answer:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{text!r} was never written down")


def test_a_waiting_message_is_answered_at_the_reset_on_the_page_that_is_open(browser, server, world):
    """R16: by itself, once, and the page shows it without a press."""
    first, _ = two_codex(world)
    first.key.refuses("usage_limit").replies("Here at last.", times=3)
    Preferences.objects.update(limit_fallback="wait")
    with shown(browser, server.address, world.person) as page:
        say(page, "I can wait")
        expect(page.locator(".line.warn")).to_contain_text("This chat waits until")
        first.key.resets_early()
        passed = timezone.now() - timedelta(seconds=5)
        Window.objects.update(resets_at=passed)
        Refusal.objects.update(at=passed - timedelta(hours=1), until=passed, retry_at=passed)
        Turn.objects.update(until=passed, wake_at=passed)
        expect(answer(page)).to_contain_text("Here at last.")
        expect(page.locator(".line.calm")).to_contain_text("Your message went out at")
        expect(page.locator(".line.warn")).to_have_count(0)
        expect(page.locator(".turn")).to_have_count(1)
        assert page.said == []
    assert len(world.simulator.requests(first.key.secret)) == 2


class Server:
    """A serving process of its own, with its worker, on one port over the tests' database and data."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._process = None

    def up(self):
        name = connection.settings_dict["NAME"]
        url = (
            f"sqlite:///{name}"
            if connection.vendor == "sqlite"
            else re.sub(r"/[^/]*$", f"/{name}", os.environ["DATABASE_URL"])
        )
        environment = os.environ | {"DATABASE_URL": url, "CONCH_TEST_DATA": str(CONCH_DATA)}
        environment |= {"DJANGO_SETTINGS_MODULE": "tests.settings", "CONCH_WORKER": "on"}
        self._process = subprocess.Popen([sys.executable, "-c", SERVER, str(self.port)], cwd=ROOT, env=environment)
        while not self._answers():
            assert self._process.poll() is None, "the server ended"

    def _answers(self):
        asking = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            asking.request("GET", "/healthz")
            return asking.getresponse().status == 200
        except OSError:
            return False
        finally:
            asking.close()

    def down(self):
        """kill -9: nothing is told to anybody."""
        self._process.kill()
        self._process.wait()


@pytest.fixture
def server():
    serving = Server()
    serving.up()
    yield serving
    serving.down()


def test_a_server_that_goes_away_in_mid_stream_and_comes_back_says_what_is_safe(browser, server, world):
    """What had arrived is kept, what was typed stays, nothing is sent again by itself (R34)."""
    account = world.account("codex")
    account.key.falls_silent("The first half. ").replies("The whole answer.", times=3)
    with shown(browser, server.address, world.person) as page:
        say(page, "Tell me")
        expect(answer(page)).to_contain_text("The first half.")
        written_down(page, "The first half.")
        server.down()
        say(page, "And then?")
        expect(page.locator("#problem")).to_contain_text("Conch can’t be reached. What you typed is still here.")
        expect(page.get_by_label("Message", exact=True)).to_have_value("And then?")
        expect(answer(page)).to_contain_text("The first half.")
        server.up()
        expect(page.locator(".line.bad")).to_contain_text("What had arrived is kept.", timeout=90_000)
        expect(answer(page)).to_contain_text("The first half.")
        assert len(world.simulator.requests(account.key.secret)) == 1
        page.get_by_role("button", name="Try again").first.click()
        expect(answer(page)).to_contain_text("The whole answer.")
        expect(page.locator(".turn")).to_have_count(1)
        page.get_by_label("Message", exact=True).press("Enter")
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator("#problem")).to_have_text("")
    assert list(Turn.objects.order_by("pk").values_list("text", flat=True)) == ["Tell me", "And then?"]


def test_what_was_answered_meanwhile_is_marked_and_counted_in_the_tabs_title(browser, address, world):
    chat, other = a_chat(world.person, title="Here"), a_chat(world.person, title="Elsewhere")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        expect(page).to_have_title("Here · Conch")
        Conversation.objects.filter(pk=other.pk).update(unread=True)
        page.evaluate("document.body.dispatchEvent(new Event('conch:look'))")  # as every 30 s
        expect(page).to_have_title("(1) Here · Conch")
        page.locator("#chats a.unread").press("Enter")
        expect(page).to_have_title("Elsewhere · Conch")
        assert page.said == []


def test_a_chat_at_its_cap_is_raised_by_a_press_and_goes_on(browser, address, world):
    """R18."""
    key = world.account("openai", label="OpenAI")
    key.key.replies("Affordable.", times=3)
    chat = a_chat(world.person, account="openai", spend_cap_nano=10**9, spent_nano=10**9)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        say(page, "One more")
        expect(page.locator(".line.bad")).to_contain_text("This chat reached the $1.00 you set for it.")
        page.get_by_role("button", name="Raise to $2.00").press("Enter")
        expect(answer(page)).to_contain_text("Affordable.")
        expect(page.locator(".line.bad")).to_have_count(0)
    assert Conversation.objects.get().spend_cap_nano == 2 * 10**9


def test_the_steps_of_long_work_are_folded_under_what_is_done_now(browser, address, world):
    """copy.md 2.4: one row with what now and for how long; no silent second over two."""
    account = world.account("codex")
    account.key.refuses("overloaded", times=2).replies("Done.", wait=3, thinking="hm")
    with shown(browser, address, world.person) as page:
        say(page, "Work hard")
        expect(page.locator(".work .now")).to_contain_text("Trying again")
        expect(page.locator(".work .t")).to_have_text(re.compile(r"^\d+ s$"))
        expect(page.locator("details.work summary")).to_be_visible()
        page.locator("details.work summary").click()
        expect(page.locator("details.work li").first).to_be_visible()
        expect(answer(page)).to_contain_text("Done.")
        expect(page.locator(".work")).to_have_count(0)
