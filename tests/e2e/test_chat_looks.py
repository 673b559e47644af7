"""How the chat's page holds together: nothing out of sight, covered, jumping, or on the wrong side."""

import pytest
from playwright.sync_api import expect

from conch.models import Account, Preferences
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import DESK, PHONE, a_chat, a_turn, say, shown, two_codex, violations

pytestmark = pytest.mark.django_db(transaction=True)


def edges(page, selector):
    return page.locator(selector).first.evaluate(
        "e => (({left, right, top, bottom}) => ({left, right, top, bottom}))(e.getBoundingClientRect())"
    )


@pytest.mark.parametrize("text", ["100%", "200%"])
def test_a_long_title_is_cut_and_pushes_nothing_out_of_the_window(browser, address, world, text):
    world.account("codex")
    chat = a_chat(world.person, title="A title that goes on and on " * 7)
    a_turn(chat, "Why?", "Because.")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        page.evaluate("size => { document.documentElement.style.fontSize = size; }", text)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for selector in ("#send .go", ".msg.you .body", ".more"):
            assert edges(page, selector)["right"] <= DESK["width"], selector


def test_the_box_stays_where_it_is_when_an_answer_begins_and_ends(browser, address, world):
    """What may be pressed while it answers is said where it fits, never as a line more under the box."""
    first, second = two_codex(world)
    Account.objects.filter(pk=first.row.pk).update(label="Codex for the whole of the family")
    first.key.refuses("usage_limit", times=9)
    second.key.replies("One word and another.", hold_after=1)
    with shown(browser, address, world.person) as page:
        say(page, "Begin")
        expect(page.locator("#foot")).to_contain_text("Esc to stop")
        expect(page.locator("#foot")).to_contain_text("Back to Codex")
        while_it_answers = edges(page, "#composer")
        second.key.release()
        expect(page.locator("#stop")).to_have_count(0)
        assert edges(page, "#composer") == while_it_answers
        assert page.said == []


def test_one_can_write_at_once_where_there_is_a_keyboard(browser, address, world):
    chat = a_chat(world.person)
    a_turn(chat)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
    with shown(browser, address, world.person, "/?new", viewport=PHONE, has_touch=True, is_mobile=True) as page:
        expect(page.get_by_label("Message", exact=True)).not_to_be_focused()


RIGHT_TO_LEFT = """- أول
- ثانٍ

1. أول

2. ثانٍ

> اقتباس

| الاسم | القيمة |
|---|---|
| واحد | 1 |
"""


def test_what_runs_from_right_to_left_has_its_markers_bars_and_columns_there(browser, address, world):
    chat = a_chat(world.person)
    a_turn(chat, "مرحبا", RIGHT_TO_LEFT)
    a_turn(chat, "Hello", "- one\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    with shown(browser, address, world.person, f"/c/{chat.pk}", viewport=PHONE, has_touch=True) as page:
        runs = "(all) => all.map(e => getComputedStyle(e).direction)"
        for selector in ("ul", "ol", "ol > li", "blockquote", "table"):
            assert set(page.locator(f".turn:first-child .md {selector}").evaluate_all(runs)) == {"rtl"}, selector
        for selector in ("ul", "blockquote", "table"):
            assert page.locator(f".turn:last-child .md {selector}").evaluate_all(runs) == ["ltr"], selector
        for selector in ("ul > li", "ol > li"):
            assert edges(page, f".turn:first-child .md {selector}")["right"] <= PHONE["width"] - 16 - 16, selector
        assert page.evaluate("document.querySelector('#scroll').scrollWidth") <= PHONE["width"]


def test_a_file_chosen_by_mistake_is_taken_off_and_one_more_comes_beside_it(browser, address, world, tmp_path):
    world.account("codex").key.replies("Read.")
    names = ["one.md", "two.md", "three.md"]
    for name in names:
        (tmp_path / name).write_text(f"This is {name}.")
    with shown(browser, address, world.person) as page:
        for name in names:
            page.get_by_label("Attach images").set_input_files(tmp_path / name)
        expect(page.locator("#files button")).to_have_text(names)
        assert violations(page) == "[]"
        page.get_by_role("button", name="Remove two.md").press("Enter")
        expect(page.locator("#files button")).to_have_text(["one.md", "three.md"])
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        say(page, "What is in them?")
        expect(page.locator(".turn .body")).to_contain_text("This is three.md.")
        expect(page.locator(".turn .body")).not_to_contain_text("two.md")
        page.goto("/?new")
        expect(page.locator("#files")).to_be_hidden()


def test_a_file_dropped_beside_the_box_is_attached_and_the_page_stays(browser, address, world):
    chat = a_chat(world.person)
    a_turn(chat)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        dropped = page.evaluate_handle(
            "() => { const all = new DataTransfer(); all.items.add(new File(['x'], 'notes.txt')); return all; }"
        )
        page.dispatch_event("#log", "drop", {"dataTransfer": dropped})
        expect(page.get_by_role("button", name="Remove notes.txt")).to_be_visible()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_way_back_from_deleting_covers_no_part_of_the_box(browser, address, world, size):
    chat = a_chat(world.person, title="A rather long title of a chat that is to be deleted")
    a_turn(chat)
    with shown(browser, address, world.person, f"/c/{chat.pk}", viewport=size, has_touch=size is PHONE) as page:
        page.locator("[popovertarget=more]:visible").click()
        page.get_by_role("button", name="Delete this chat").click()
        expect(page.get_by_role("button", name="Undo")).to_be_visible()
        assert edges(page, ".toasts .note")["bottom"] <= edges(page, "#composer")["top"]
        assert violations(page) == "[]"


def test_the_list_of_keys_has_room_around_it(browser, address, world):
    with shown(browser, address, world.person) as page:
        page.keyboard.press("Control+/")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
        assert edges(page, "#keys h2")["left"] - edges(page, "#keys")["left"] >= 16


def test_a_printed_chat_is_dark_on_light_and_shows_no_buttons(browser, address, world):
    Preferences.objects.update(theme="dark")
    chat = a_chat(world.person)
    a_turn(chat, "Why?", "```py\nx = 1\n```")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
        assert page.locator("button:visible").count() == 0


def test_a_folded_message_shows_how_it_begins_until_it_is_opened(browser, address, world):
    chat = a_chat(world.person)
    a_turn(chat, "Dear landlord, " + "the heating is cold. " * 300, "Send it.")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        expect(page.locator(".you summary")).to_contain_text("Dear landlord, the heating")
        assert edges(page, ".you .body")["bottom"] - edges(page, ".you .body")["top"] < 140
        page.locator(".you summary").press("Enter")
        expect(page.locator(".you .body .clip")).to_be_hidden()
        expect(page.locator(".you .body > div")).to_be_visible()
        assert violations(page) == "[]"


def test_what_a_tool_would_be_given_is_read_before_it_is_allowed(browser, address, world):
    world.person.is_staff = True
    world.person.save()
    with shown(browser, address, world.person, "/nacre") as page:
        expect(page.locator("#call-asked pre")).to_be_visible()
        expect(page.locator("#call-done pre").first).to_be_hidden()


def test_however_many_chats_there_are_a_new_one_and_the_settings_are_in_sight_and_so_is_the_open_one(
    browser, address, world
):
    world.account("codex")
    chats = [a_chat(world.person, title=f"Chat {number}") for number in range(60)]
    a_turn(chats[0])
    with shown(browser, address, world.person, f"/c/{chats[0].pk}") as page:
        for selector in ("#new", "#find", "#chats [aria-current]", "[aria-label=App] a"):
            assert 0 <= edges(page, selector)["top"] < edges(page, selector)["bottom"] <= DESK["height"], selector
        assert violations(page) == "[]"
