"""What a screen reader is given of the chat: landmarks, headings, names, live regions (copy.md 2.4, 5, 6)."""

import pytest
from playwright.sync_api import expect

from conch.models import Preferences
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import a_chat, a_turn, say, shown, two_codex

pytestmark = pytest.mark.django_db(transaction=True)

CODE = "So:\n\n```sql\nSELECT 1;\n```\n\nOr:\n\n```sql\nSELECT 2;\n```"


def test_a_chat_is_read_by_its_landmarks_its_headings_and_names(browser, address, world):
    """Each message an article with a heading; the account and the model are the answer's name."""
    world.account("codex", label="Codex")
    chat = a_chat(world.person, title="Slow query")
    a_turn(chat, "Why?", CODE)
    a_turn(chat, "And then?", "Nothing.")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        expect(page.locator("body")).to_match_aria_snapshot("""
          - link "Skip to the message box"
          - complementary "Chats and settings":
            - link "Conch"
            - link "New chat"
            - search:
              - searchbox "Search chats"
            - navigation "Chats":
              - link "Slow query"
            - navigation "App":
              - link "Settings"
          - main:
            - heading "Slow query" [level=1]
            - button "More for this chat"
            - group "Messages":
              - log "Conversation":
                - article:
                  - heading "You said" [level=2]
                  - text: Why?
                  - button "Copy message"
                  - link "Edit and resend"
                - article "Codex GPT-5.5":
                  - heading "Codex GPT-5.5" [level=2]
                  - paragraph: "So:"
                  - figure:
                    - button "Copy code"
                    - group "Code, sql"
                  - paragraph: "Or:"
                  - figure:
                    - button "Copy code"
                    - group "Code, sql"
                  - button "Copy reply"
                - article:
                  - heading "You said" [level=2]
                - article "Codex GPT-5.5":
                  - button "Copy reply"
                  - button "Try again"
                  - button "Try again with another account"
            - textbox "Message"
            - button "Attach images or text files"
            - 'button "Answering: Codex, GPT-5.5. Change"'
            - button "Send"
          - log "Replies read aloud"
          - status
          - alert
        """)
        box = page.get_by_label("Message", exact=True)
        described = "In your ChatGPT plan. Enter to send, Shift Enter for a new line"
        expect(box).to_have_accessible_description(described)
        assert page.locator("#log").get_attribute("aria-live") == "off"
        assert page.locator("h1").count() == 1


def test_what_happens_is_spoken_once_at_its_edges_and_never_in_fragments(browser, address, world):
    """copy.md 2.4: the log isn't the live region; started, the line, done; a stop is an alert of its own line."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit", times=3)
    second.key.replies("One two three four.", pieces=4, delay=0.05, times=3)
    with shown(browser, address, world.person, "/?new") as page:
        say(page, "Count")
        expect(page.locator(".turn .acts [aria-label='Copy reply']")).to_be_visible()
        page.evaluate("""() => {
          window.heard = [];
          new MutationObserver(() => {
            const said = document.querySelector('#live').textContent;
            if (said && heard.at(-1) !== said) heard.push(said);
          }).observe(document.querySelector('#live'), {childList: true, characterData: true, subtree: true});
        }""")
        say(page, "Count again")
        expect(page.locator(".turn")).to_have_count(2)
        while len(heard := page.evaluate("heard")) < 2:
            page.wait_for_timeout(50)
        assert heard == [f"Codex · codex-2@work.example {what}" for what in ("is answering.", "answered.")]
        assert page.locator("#aloud").inner_text() == ""


def test_replies_are_read_aloud_whole_where_that_is_asked_for(browser, address, world):
    """copy.md 2.4: the text goes once into a second log."""
    world.account("codex").key.replies("One two three four.", pieces=4, times=3)
    Preferences.objects.update(read_aloud=True)
    chat = a_chat(world.person)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        say(page, "Count")
        expect(page.get_by_role("log", name="Replies read aloud")).to_have_text("One two three four.")
        assert page.said == []
