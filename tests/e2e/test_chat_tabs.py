"""A tab that nobody looks at, clocks that jump, what is given to the box and taken from the page, in Chromium."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from conch.models import Conversation, Preferences, Turn
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import a_chat, a_turn, say, shown, two_codex

pytestmark = pytest.mark.django_db(transaction=True)

HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""
LOOK = "document.body.dispatchEvent(new Event('conch:look'))"  # as it does by itself every half minute
GIVE = """([kind, files]) => {
  const given = new DataTransfer();
  for (const [name, type, data] of files) {
    const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
    given.items.add(new File([bytes], name, {type}));
  }
  const how = {bubbles: true, cancelable: true};
  const event = kind === 'paste'
    ? new ClipboardEvent('paste', {...how, clipboardData: given})
    : new DragEvent('drop', {...how, dataTransfer: given});
  document.querySelector('#say').dispatchEvent(event);
}"""
RED = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


def answer(page, number=-1):
    return page.locator(".turn").nth(number).locator(".msg:not(.you) .md").first


def test_a_hidden_tab_counts_its_own_chat_until_it_is_looked_at(browser, address, world):
    """While you were away: what was answered in it meanwhile is unread, here and in other tabs."""
    account = world.account("codex")
    account.key.replies("Slowly but surely.", pieces=3, hold_after=1)
    with shown(browser, address, world.person) as page:
        say(page, "Take your time")
        expect(answer(page)).to_contain_text("Slowly")
        expect(page).to_have_title("Take your time · Conch")
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/stream")):  # it is let go
            page.evaluate(HIDE, True)
        page.wait_for_timeout(2_000)  # until the server has noticed; nothing that a page shows tells that
        account.key.release()
        while Turn.objects.get().state not in Turn.ENDS:
            page.wait_for_timeout(50)
        page.evaluate(LOOK)
        expect(page).to_have_title("(1) Take your time · Conch")
        assert Conversation.objects.get().unread
        page.evaluate(LOOK)
        page.wait_for_timeout(200)
        expect(page).to_have_title("(1) Take your time · Conch")
        page.evaluate(HIDE, False)
        expect(page).to_have_title("Take your time · Conch")
        expect(answer(page)).to_have_text("Slowly but surely.")
        expect(page.locator(".turn")).to_have_count(1)
        assert not Conversation.objects.get().unread
        assert page.said == []


def test_a_clock_that_jumps_while_the_page_is_open_loses_and_doubles_nothing(browser, address, world, monkeypatch):
    """The browser's to and fro while an answer streams; the server's back while a message waits."""
    first, second = two_codex(world)
    first.key.replies("One.\n\nTwo.\n\nThree.", pieces=6, hold_after=3).refuses("usage_limit", times=9)
    second.key.replies("From the other.", times=3)
    Preferences.objects.update(limit_fallback="wait")
    with shown(browser, address, world.person, "/?new") as page:
        page.clock.install()
        page.goto("/?new")
        say(page, "Count")
        expect(answer(page)).to_contain_text("One.")
        for jump in (timedelta(days=400), timedelta(days=-400)):
            page.clock.set_system_time(timezone.now() + jump)
        first.key.release()
        expect(answer(page)).to_contain_text("Three.")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        assert answer(page).inner_text().split() == ["One.", "Two.", "Three."]
        say(page, "And on")
        expect(page.locator(".line.warn")).to_contain_text("This chat waits until")

        now = timezone.now
        monkeypatch.setattr(timezone, "now", lambda: now() - timedelta(hours=3))
        other = page.context.new_page()
        other.goto(page.url)
        other.get_by_role("button", name="Send with").press("Enter")
        expect(answer(other)).to_contain_text("From the other.")
        page.evaluate(LOOK)
        expect(answer(page)).to_contain_text("From the other.")
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".line.warn")).to_have_count(0)
        assert page.said == []
    assert [turn.text for turn in Turn.objects.order_by("pk")] == ["Count", "And on"]


def pasted(page, holds):
    """What there is to paste, once that holds for it; waiting for a function that is async doesn't wait."""
    for _ in range(600):
        text = page.evaluate("navigator.clipboard.readText()")
        if holds(text):
            return text
        page.wait_for_timeout(50)
    raise AssertionError(text)


def test_what_is_copied_is_the_message_the_reply_and_the_code_alone(browser, address, world):
    chat = a_chat(world.person)
    reply = "It is:\n\n```sql\nSELECT 1\n  FROM dual;\n```\n\n**Done.**"
    a_turn(chat, "Was  ist\n<b>das</b>?", reply)
    with shown(
        browser, address, world.person, f"/c/{chat.pk}", permissions=["clipboard-read", "clipboard-write"]
    ) as page:
        for name, copied in (
            ("Copy message", "Was  ist\n<b>das</b>?"),
            ("Copy code", "SELECT 1\n  FROM dual;"),
        ):
            page.get_by_role("button", name=name).press("Enter")
            expect(page.locator("#live")).to_have_text("Copied.")
            pasted(page, lambda text, copied=copied: text.strip() == copied)
        page.evaluate("navigator.clipboard.writeText('')")
        page.get_by_role("button", name="Copy reply").press("Enter")
        assert pasted(page, bool) == reply, "in Markdown, as it was written"
        page.evaluate("window.ClipboardItem = undefined")  # as without HTTPS
        page.get_by_role("button", name="Copy reply").press("Enter")
        assert "FROM dual;" in pasted(page, lambda text: "```" not in text)
        assert page.said == []


@pytest.mark.parametrize("kind", ["paste", "drop"])
def test_what_is_pasted_or_dropped_goes_along_with_the_message(browser, address, world, kind):
    """An image and a text file, beside one that was chosen before; shown by name, gone after it was sent."""
    account = world.account("codex")
    account.key.replies("Red, and three.", times=3)
    with shown(browser, address, world.person) as page:
        names = page.locator("#files button")
        page.evaluate(GIVE, [kind, [["red.png", "image/png", RED]]])
        expect(names).to_have_text("red.png")
        page.evaluate(GIVE, [kind, [["orders.csv", "text/csv", "aWQsdG90YWwKMSwzCg=="]]])
        expect(names).to_have_text(["red.png", "orders.csv"])
        say(page, "What is it?")
        expect(answer(page)).to_contain_text("Red, and three.")
        expect(page.locator(".pics img")).to_have_count(1)
        expect(page.locator(".you .body")).to_contain_text("id,total")
        expect(names).to_have_count(0)
        say(page, "Again, without")
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn").last.locator(".pics")).to_have_count(0)
        assert page.said == []


def test_pasted_text_is_typed_as_it_is(browser, address, world):
    with shown(browser, address, world.person, permissions=["clipboard-read", "clipboard-write"]) as page:
        box = page.get_by_label("Message", exact=True)
        box.focus()
        page.evaluate("navigator.clipboard.writeText('<b hx-get=\"/x\">hi</b>\\n\\u202edrow')")
        page.keyboard.press("Control+v")
        expect(box).to_have_value('<b hx-get="/x">hi</b>\n\u202edrow')


def test_a_session_that_ended_while_editing_keeps_what_was_typed(browser, address, world):
    """The edit form stays, with its words, and says what to do; signed in again, it goes out."""
    world.account("codex").key.replies("Anew.", times=3)
    chat = a_chat(world.person)
    a_turn(chat, "one", "The first answer.")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        page.get_by_role("link", name="Edit and resend").press("Enter")
        edited = page.get_by_label("Edit your message")
        edited.fill("one, much better")
        cookies = page.context.cookies()
        page.context.clear_cookies(name="conch_session")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#problem")).to_contain_text("Sign in again")
        expect(edited).to_have_value("one, much better")
        page.reload()
        page.context.add_cookies(cookies)
        page.goto(f"/c/{chat.pk}")
        page.get_by_role("link", name="Edit and resend").press("Enter")
        expect(edited).to_have_value("one, much better")
        page.keyboard.press("Control+Enter")
        expect(answer(page)).to_contain_text("Anew.")
        expect(page.locator(".you .body")).to_have_text("one, much better")
        page.reload()
        page.get_by_role("link", name="Edit and resend").press("Enter")
        expect(edited).to_have_value("one, much better")
    assert Turn.objects.filter(replaced_by=None).count() == 1
