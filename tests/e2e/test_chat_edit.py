"""Editing, finding, attaching and keeping nothing: what people would miss, in a real browser, by keyboard."""

import json

import pytest
from playwright.sync_api import expect

from conch.models import Attempt, Conversation, Turn
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import PHONE, a_chat, a_turn, say, shown, violations

pytestmark = pytest.mark.django_db(transaction=True)


def answer(page, number=-1):
    return page.locator(".turn").nth(number).locator(".msg:not(.you) .md").first


def test_the_last_message_is_edited_and_sent_again_by_keyboard(browser, address, world):
    """copy.md 5: ↑ in an empty box, Ctrl+Enter, Esc; R31: the earlier version stays, folded."""
    world.account("codex").key.replies("First answer.").replies("Second answer.", times=9)
    with shown(browser, address, world.person) as page:
        say(page, "What is a conhc?")
        expect(answer(page)).to_contain_text("First answer.")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        box, edited = page.get_by_label("Message", exact=True), page.get_by_label("Edit your message")
        box.press("ArrowUp")
        expect(edited).to_be_focused()
        expect(edited).to_have_value("What is a conhc?")
        assert violations(page) == "[]"
        page.keyboard.press("Escape")
        expect(edited).to_have_count(0)
        expect(box).to_be_focused()
        box.press("ArrowUp")
        edited.fill("What is a conch?")
        page.keyboard.press("Control+Enter")
        expect(answer(page)).to_contain_text("Second answer.")
        expect(page.locator(".turn")).to_have_count(1)
        expect(box).to_be_focused()
        page.get_by_text("Earlier version").click()
        expect(page.locator(".earlier")).to_contain_text("First answer.")
        expect(page.locator("#title")).to_have_text("What is a conch?")
        assert violations(page) == "[]"
        assert page.said == []


def test_an_edit_survives_a_reload_and_a_typed_box_keeps_its_arrow(browser, address, world):
    chat = a_chat(world.person)
    a_turn(chat, "one", "An answer.")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        box, edited = page.get_by_label("Message", exact=True), page.get_by_label("Edit your message")
        box.fill("typed")
        box.press("ArrowUp")
        expect(edited).to_have_count(0)
        page.get_by_role("link", name="Edit and resend").press("Enter")
        edited.fill("one, better")
        page.reload()
        page.get_by_role("link", name="Edit and resend").press("Enter")
        expect(edited).to_have_value("one, better")
        page.get_by_role("link", name="Cancel").press("Enter")
        expect(box).to_have_value("typed")
        expect(page.locator("#said-" + str(Turn.objects.get().pk))).to_be_visible()
        assert page.said == []


def test_a_running_answer_makes_room_for_the_edited_message_in_two_tabs(browser, address, world):
    """R35: one at a time; the other tab agrees."""
    account = world.account("codex")
    account.key.replies("Slowly. " * 400, pieces=400, delay=0.05).replies("Quickly.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "Slow")
        expect(answer(page)).to_contain_text("Slowly.")
        other = page.context.new_page()
        other.goto(page.url)
        page.bring_to_front()
        page.get_by_label("Message", exact=True).press("ArrowUp")
        page.get_by_label("Edit your message").fill("Fast")
        page.get_by_role("button", name="Send again").press("Enter")
        expect(answer(page)).to_contain_text("Quickly.")
        expect(page.locator(".turn")).to_have_count(1)
        other.bring_to_front()
        expect(answer(other)).to_contain_text("Quickly.")
        expect(other.locator(".turn")).to_have_count(1)
        assert page.said == []


def test_another_tab_drops_what_was_edited(browser, address, world):
    world.account("codex").key.replies("Anew.", times=3)
    chat = a_chat(world.person)
    a_turn(chat, "one", "The first answer.")
    a_turn(chat, "two", "The second answer.")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        other = page.context.new_page()
        other.goto(page.url)
        page.get_by_role("link", name="Edit and resend").first.press("Enter")
        page.get_by_label("Edit your message").fill("one, better")
        page.get_by_role("button", name="Send again").press("Enter")
        expect(answer(page)).to_contain_text("Anew.")
        expect(answer(other)).to_contain_text("Anew.")
        for tab in (page, other):
            expect(tab.locator(".turn")).to_have_count(1)
        assert page.said == []


def test_editing_works_without_script(browser, address, world):
    world.account("codex").key.replies("Without.", times=3)
    chat = a_chat(world.person)
    a_turn(chat, "one", "An answer.")
    with shown(browser, address, world.person, f"/c/{chat.pk}", script=False) as page:
        page.get_by_role("link", name="Edit and resend").click()
        page.get_by_label("Edit your message").fill("two")
        page.get_by_role("button", name="Send again").click()
        page.wait_for_timeout(1500)
        page.reload()
        expect(page.locator(".turn")).to_have_count(1)
        expect(page.locator(".turn")).to_contain_text("two")
        page.get_by_text("Earlier version").click()
        page.get_by_role("link", name="Read it").click()
        expect(page.locator("main")).to_contain_text("An answer.")


def test_what_is_found_leads_to_where_it_was_said(browser, address, world):
    chat = a_chat(world.person, title="Long")
    turns = [a_turn(chat, f"message {number}") for number in range(60)]
    Turn.objects.filter(pk=turns[2].pk).update(state="done", answer="Here is the needle.")
    a_chat(world.person, title="Latest")
    with shown(browser, address, world.person, viewport=PHONE, has_touch=True) as page:
        page.get_by_role("button", name="Menu").click()
        page.get_by_label("Search chats").fill("need")
        expect(page.locator("#chats mark")).to_have_text("need")
        assert violations(page) == "[]"
        page.locator("#chats a").click()
        expect(page.locator(f"#turn-{turns[2].pk}")).to_be_in_viewport()
        page.goto("/chats?q=need")
        expect(page.get_by_role("navigation", name="Found").get_by_role("link")).to_have_count(1)
        assert violations(page) == "[]"
        assert page.said == []


def test_a_temporary_chat_says_so_and_is_in_no_list(browser, address, world):
    world.account("codex").key.replies("Between us.", times=3)
    with shown(browser, address, world.person) as page:
        switch = page.get_by_role("switch", name="Temporary chat")
        switch.focus()
        page.keyboard.press("Space")
        expect(switch).to_be_checked()
        assert violations(page) == "[]"
        say(page, "Forget this")
        expect(answer(page)).to_contain_text("Between us.")
        expect(page.locator("#log")).to_contain_text("This chat is temporary")
        expect(page.locator("#chats")).not_to_contain_text("Forget this")
        page.locator(".more").click()
        expect(page.get_by_role("link", name="Export as Markdown")).to_have_count(0)
        assert violations(page) == "[]"
        assert page.said == []
    assert Conversation.objects.get().temporary


def test_a_text_file_goes_along_as_text(browser, address, world, tmp_path):
    account = world.account("codex")
    account.key.replies("Three.")
    path = tmp_path / "orders.csv"
    path.write_text("id,total\n1,3\n")
    with shown(browser, address, world.person) as page:
        page.get_by_label("Attach images or text files").set_input_files(path)
        expect(page.locator("#files")).to_have_text("orders.csv")
        say(page, "Add it up")
        expect(answer(page)).to_contain_text("Three.")
        expect(page.locator(".you .body")).to_contain_text("id,total")
    sent = json.dumps(world.simulator.requests(account.key.secret)[0].json)
    assert json.dumps("orders.csv:\n```csv\nid,total\n1,3\n```")[1:-1] in sent


def test_two_hundred_thousand_characters_pasted_are_sent_folded_and_stay_usable(browser, address, world):
    """doors.md, Limits on input: the page stays quick enough to type in."""
    account = world.account("codex")
    account.key.replies("Read it.", times=3)
    with shown(browser, address, world.person) as page:
        box = page.get_by_label("Message", exact=True)
        box.focus()
        page.evaluate("document.execCommand('insertText', false, 'word '.repeat(40000))")
        assert len(box.input_value()) == 200_000
        box.press("Enter")
        expect(answer(page)).to_contain_text("Read it.", timeout=60_000)
        expect(page.locator(".you summary .small")).to_have_text("A long message: 200,000 characters")
        expect(page.locator(".you summary .clip")).to_contain_text("word word")
        expect(box).to_have_value("")
        box.fill("and on")
        expect(box).to_have_value("and on")
        assert page.said == []
    assert len(Turn.objects.get().text) == 200_000


def test_an_answer_is_tried_again_with_another_account(browser, address, world):
    """R27: for a key a yes for this message alone; who answered is on the reply."""
    world.account("codex").key.replies("From the plan.", times=3)
    world.account("openai", label="OpenAI").key.replies("From the key.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "Who are you?")
        expect(answer(page)).to_contain_text("From the plan.")
        page.get_by_role("button", name="Try again with another account").press("Enter")
        again = page.get_by_role("dialog", name="Try again with")
        expect(again.get_by_role("button", name="OpenAI")).to_contain_text("a reply")
        assert violations(page) == "[]"
        again.get_by_role("button", name="OpenAI").press("Enter")
        expect(answer(page)).to_contain_text("From the key.")
        expect(page.locator(".turn .by").last).to_contain_text("OpenAI")
        assert page.said == []
    assert Attempt.objects.get(account="openai").consent == "once"
