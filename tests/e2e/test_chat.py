"""The chat in a real browser over the real server, with providers that the simulator speaks for."""

import re

import pytest
from playwright.sync_api import expect

from conch.models import Account, Attempt, Conversation, Line, Preferences, Turn
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import say, shown, two_codex, violations

pytestmark = pytest.mark.django_db(transaction=True)


def answer(page, number=-1):
    return page.locator(".turn").nth(number).locator(".msg:not(.you) .md").first


def test_a_refusal_is_carried_on_in_the_same_turn_with_the_line_and_switch_back(browser, address, world):
    """R17, R22, R23: by keyboard alone."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit")
    second.key.replies("Then the **statistics** are the problem.\n\n1. Refresh them.\n", pieces=4, times=3)
    with shown(browser, address, world.person) as page:
        say(page, "It plans for 120 rows and gets 1.4 million. Now what?")

        expect(page.locator(".line")).to_contain_text("is answering.")
        expect(answer(page).locator("strong")).to_have_text("statistics")
        expect(page.locator("#pays")).to_contain_text("In your ChatGPT plan. Back to Codex")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        page.get_by_role("button", name="Switch back").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".line.calm")).to_contain_text("this chat waits for it")
        expect(page.locator(".line.calm")).to_be_focused()
        expect(page.locator("#pays")).to_contain_text("messages wait for it")
        page.get_by_role("button", name="Carry on with").click()
        expect(page.locator(".line")).to_contain_text("is answering.")
        assert page.said == []
        assert violations(page) == "[]"


def test_a_message_waits_by_choice_and_goes_out_with_another_at_a_press(browser, address, world):
    """R16: Send with B now."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit", times=5)
    second.key.replies("Here I am.")
    Preferences.objects.update(limit_fallback="wait")
    with shown(browser, address, world.person) as page:
        say(page, "Anyone?")
        expect(page.locator(".line.warn")).to_contain_text("This chat waits until")
        expect(page.locator("#live")).to_contain_text("reached its limit. This chat waits")
        page.get_by_role("button", name=re.compile("^Send with")).click()
        expect(answer(page)).to_contain_text("Here I am.")
        expect(page.locator(".line.warn")).to_have_count(0)
        assert page.said == []


def test_a_waiting_message_is_taken_back(browser, address, world):
    first, _ = two_codex(world)
    first.key.refuses("usage_limit", times=5)
    Preferences.objects.update(limit_fallback="wait")
    with shown(browser, address, world.person) as page:
        say(page, "Never mind")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".line")).to_contain_text("You cancelled this message.")
        assert Turn.objects.get().state == "stopped"


def test_a_key_answers_one_message_by_a_yes_for_it_alone(browser, address, world):
    """R13, R27: consent `once`."""
    first, key = world.account("codex"), world.account("openai", label="OpenAI")
    first.key.refuses("usage_limit", times=5)
    key.key.replies("Paid for.")
    with shown(browser, address, world.person) as page:
        say(page, "Use the key")
        expect(page.locator(".line.warn")).to_contain_text("Pay-per-use keys are off.")
        page.get_by_role("button", name="Use it for this message").click()
        expect(answer(page)).to_contain_text("Paid for.")
    assert Attempt.objects.get(account="openai").consent == "once"
    assert not Preferences.objects.get().limit_paid


def test_escape_stops_the_answer_and_what_had_arrived_is_kept(browser, address, world):
    account = world.account("codex")
    account.key.replies("One word. " * 400, pieces=400, delay=0.05)
    with shown(browser, address, world.person) as page:
        say(page, "Tell me a long story")
        expect(answer(page)).to_contain_text("One word.")
        expect(page.get_by_role("button", name="Stop answering")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".line")).to_contain_text("You stopped this answer.")
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        expect(page.get_by_role("button", name="Stop answering")).to_have_count(0)
        expect(answer(page)).to_contain_text("One word.")
    turn = Turn.objects.get()
    assert turn.state == "stopped"
    assert turn.answer.startswith("One word.")


def test_a_message_sent_while_another_is_answered_goes_next_or_now(browser, address, world):
    """R35."""
    account = world.account("codex")
    account.key.replies("Slowly. " * 400, pieces=400, delay=0.05).replies("The second answer.").replies("The third.")
    with shown(browser, address, world.person) as page:
        say(page, "First")
        expect(answer(page)).to_contain_text("Slowly.")
        say(page, "Second")
        expect(page.locator(".line.calm")).to_contain_text("Goes out after the answer above.")
        page.get_by_role("button", name="Send now instead").click()
        expect(answer(page)).to_contain_text("The second answer.")
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn").first).to_contain_text("You stopped this answer.")
        assert page.said == []


def test_what_came_of_a_press_is_shown_though_the_end_of_the_answer_took_its_button_away(browser, address, world):
    """A press whose answer is slow: by then its own form has left the page."""
    account = world.account("codex")
    account.key.replies("Slowly. " * 400, pieces=400, delay=0.05).replies("The second answer.").replies("The third.")
    late = []
    with shown(browser, address, world.person) as page:
        page.route("**/send-now", lambda route: late.append((route, route.fetch())), times=1)
        say(page, "First")
        expect(answer(page)).to_contain_text("Slowly.")
        say(page, "Second")
        page.get_by_role("button", name="Send now instead").click()
        expect(answer(page)).to_contain_text("The second answer.")
        ((route, response),) = late
        with page.expect_response("**/now?*"):
            route.fulfill(response=response)
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn").first).to_contain_text("You stopped this answer.")
        expect(answer(page)).to_contain_text("The second answer.")
        say(page, "And more")
        expect(answer(page)).to_contain_text("The third.")
        assert page.said == []


def test_a_queued_message_goes_by_itself_when_the_one_before_has_its_answer(browser, address, world):
    """R35: once, in order, on the page that is open."""
    account = world.account("codex")
    account.key.replies("The first answer.", hold_after=1).replies("The second answer.")
    with shown(browser, address, world.person) as page:
        say(page, "First")
        expect(page.locator("[data-live]")).to_have_count(1)
        say(page, "Second")
        expect(page.locator(".line.calm")).to_contain_text("Goes out after")
        account.key.release()
        expect(answer(page, 0)).to_contain_text("The first answer.")
        expect(answer(page, 1)).to_contain_text("The second answer.")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
    assert list(Turn.objects.order_by("pk").values_list("text", flat=True)) == ["First", "Second"]


def test_pressed_many_times_a_message_is_sent_once(browser, address, world):
    """STR-05."""
    world.account("codex").key.replies("Once.", times=50)
    with shown(browser, address, world.person) as page:
        page.get_by_label("Message", exact=True).fill("Only once")
        page.evaluate("for (let i = 0; i < 100; i++) document.querySelector('#send .go').click()")
        expect(answer(page)).to_contain_text("Once.")
    assert (Turn.objects.count(), Conversation.objects.count()) == (1, 1)


def test_the_account_picker_works_at_a_limit(browser, address, world):
    first, second = two_codex(world)
    first.key.refuses("usage_limit", times=3)
    second.key.replies("From the second.", times=3)
    Preferences.objects.update(limit_fallback="wait")
    with shown(browser, address, world.person) as page:
        say(page, "Waiting")
        expect(page.locator(".line.warn")).to_contain_text("This chat waits")
        page.get_by_role("button", name=re.compile("^Answering")).press("Enter")
        expect(page.get_by_role("dialog", name="Who answers in this chat")).to_be_visible()
        page.locator("#who .row[value=codex-2]").press("Enter")
        expect(answer(page)).to_contain_text("From the second.")
        expect(page.locator("#pick")).to_contain_text("codex-2@work.example")
    assert Conversation.objects.get().account == "codex-2"


def test_a_provider_that_cant_be_reached_is_said_as_an_alert_and_tried_again(browser, address, world):
    account = world.account("codex")
    Account.objects.filter(pk=account.row.pk).update(base_url="http://127.0.0.1:9/backend-api")
    other = world.account("openai", label="OpenAI")
    other.key.replies("hi")
    with shown(browser, address, world.person) as page:
        say(page, "Hello?")
        alert = page.locator(".line.bad[role=alert]")
        expect(alert).to_be_visible(timeout=90_000)
        Account.objects.filter(pk=account.row.pk).update(base_url=world.simulator.base_urls["codex"])
        account.key.replies("Here.")
        alert.get_by_role("button", name="Try again").click()
        expect(answer(page)).to_contain_text("Here.")


def test_lines_are_kept_as_they_were_said(browser, address, world):
    """R20, R22: carried on, said once, then back with what it missed."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit").replies("Back again.", times=3)
    second.key.replies("Meanwhile.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "One")
        expect(answer(page)).to_contain_text("Meanwhile.")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        say(page, "Two")
        expect(page.locator(".turn")).to_have_count(2)
        expect(answer(page)).to_contain_text("Meanwhile.")
        assert page.locator(".line").count() == 1
    assert [line.kind for line in Line.objects.all()] == ["limit.routed"]


def test_a_silent_answer_says_what_it_does_and_for_how_long(browser, address, world):
    """No silent second over two (copy.md 2.4)."""
    account = world.account("codex")
    account.key.replies("At last.", wait=4)
    with shown(browser, address, world.person) as page:
        say(page, "Think hard")
        expect(page.locator(".work .now")).to_contain_text("Waiting for Codex")
        expect(page.locator(".work .t")).to_have_text(re.compile(r"\d s"))
        expect(answer(page)).to_contain_text("At last.")
        expect(page.locator(".work")).to_have_count(0)
