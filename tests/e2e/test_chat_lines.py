"""The lines of a chat (copy.md 4.2) as they come about in Chromium, and their buttons, pressed by keyboard."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from conch.models import Account, Attempt, Conversation, Line, MonthTotal, Preferences, Refusal, Turn, Window
from conch.money import to_nano
from routing import known
from tests.e2e.chat_site import *  # noqa: F403  fixtures are found by name
from tests.e2e.chat_site import a_chat, a_turn, say, shown, two_codex

pytestmark = pytest.mark.django_db(transaction=True)
NOWHERE = "http://no-such-host.invalid/backend-api"


def answer(page, number=-1):
    return page.locator(".turn").nth(number).locator(".msg:not(.you) .md").first


def answered(page, text):
    """The newest answer is there, whole, and nothing runs."""
    expect(answer(page)).to_contain_text(text)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def line(page, kind=""):
    return page.locator(f".line{kind}").last


def press(page, name):
    """The button of that name, by keyboard."""
    page.get_by_role("button", name=name).last.press("Enter")


def the_worker_looks(world):
    """One look of the worker, beside the loop that Playwright runs in this thread."""
    with ThreadPoolExecutor(1) as beside:
        beside.submit(asyncio.run, world.worker_looks()).result(60)


@pytest.fixture
def here(world, monkeypatch):
    """A model server on this computer that may answer when nothing else can."""
    monkeypatch.setenv("CONCH_LOCAL_URL", world.simulator.base_urls["openai"])
    monkeypatch.setenv("CONCH_LOCAL_MODEL", "llama-3.2-3b")
    known.forget_local()
    yield world.simulator.key("none").replies("From this computer.", times=9)
    known.forget_local()


def test_a_weekly_limit_is_named_with_its_day(browser, address, world):
    """R6, R22: the window that binds."""
    first, second = two_codex(world)
    first.key.window(300, used=3, resets_in=3600).refuses("weekly")
    second.key.replies("Meanwhile.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "This week?")
        answered(page, "Meanwhile.")
        expect(line(page)).to_contain_text(re.compile(r"reached its weekly limit until [A-Z][a-z]{2}\s\d"))
        expect(page.locator("#pays")).to_contain_text(re.compile(r"Back to Codex .*[A-Z][a-z]{2}\s\d"))
        assert page.said == []


def test_a_limit_without_a_reset_says_so_and_can_be_waited_for(browser, address, world):
    """R8, R22, R23: no time is made up."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit", times=9, resets_in=None)
    second.key.replies("Meanwhile.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "Until when?")
        answered(page, "Meanwhile.")
        expect(line(page)).to_contain_text("reached its limit.")
        expect(line(page)).to_contain_text("didn’t say when it resets.")
        press(page, "Switch back")
        expect(line(page, ".calm")).to_contain_text("this chat waits for it")
        say(page, "And now?")
        expect(line(page, ".warn")).to_contain_text("doesn’t say until when. Your message goes out once it answers")
        press(page, re.compile("^Cancel"))
        expect(line(page)).to_contain_text("You cancelled this message.")
        assert page.said == []


@pytest.mark.parametrize(
    ("model", "words", "pays"),
    [
        ("gpt-5.5", re.compile(r"About \$0\.\d\d a reply, \$\d+\.\d\d left this month\."), "left this month."),
        ("made/up", "It charges per reply; Conch can’t price it.", "Conch can’t price it."),
    ],
)
def test_a_key_that_carries_on_says_its_price_or_that_it_has_none(browser, address, world, model, words, pays):
    """R13, R33: amber; a model without a price only where no budget could be passed."""
    first = world.account("codex", label="Codex")
    key = world.account("openai", label="OpenAI", model=model, known_models=[{"id": model, "label": model}])
    first.key.refuses("usage_limit", times=3)
    key.key.replies("Paid for.", times=3)
    budget = to_nano(Decimal(10)) if model == "gpt-5.5" else None
    Preferences.objects.update(limit_paid=True, month_budget_nano=budget)
    with shown(browser, address, world.person) as page:
        say(page, "Use what I pay for")
        answered(page, "Paid for.")
        expect(line(page, ".warn")).to_contain_text("OpenAI is answering.")
        expect(line(page, ".warn")).to_contain_text(words)
        expect(page.locator("#pays")).to_contain_text(pays)
        press(page, "Switch back")
        expect(line(page, ".calm")).to_contain_text("this chat waits for it until")
        expect(page.get_by_role("button", name=re.compile("^Carry on with OpenAI, "))).to_be_visible()
        assert page.said == []
    assert Attempt.objects.get(account="openai").consent == "paid_on"


def test_several_are_passed_over_and_the_one_that_is_next_is_named(browser, address, world):
    """R17, R22: one line that a second move rewrites; also after a reload."""
    first, second = two_codex(world)
    third = world.account("codex", "codex-3", label="Third")
    first.key.refuses("usage_limit", resets_in=3 * 3600)
    second.key.refuses("usage_limit", resets_in=2 * 3600)
    third.key.replies("The third.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "Anyone?")
        answered(page, "The third.")
        for _ in range(2):
            expect(page.locator(".line")).to_have_count(1)
            said = re.compile("Codex.* and Codex.* are at their limits. Third is answering.")
            expect(line(page)).to_contain_text(said)
            expect(line(page)).to_contain_text(re.compile(r"Codex.*codex-2@work\.example is next, (?:at|tomorrow)\s"))
            page.reload()
    assert [each.kind for each in Line.objects.all()] == ["limit.routed"]


def test_the_model_on_this_computer_answers_when_no_account_has_room(browser, address, world, here):
    """R15; R21: the chat stays its own account's."""
    first = world.account("codex", label="Codex")
    first.key.refuses("usage_limit", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "Anybody at all?")
        answered(page, "From this computer.")
        expect(line(page)).to_contain_text("llama-3.2-3b on this computer is answering. No account has room.")
        expect(page.locator("#pays")).to_contain_text("Free, on this computer.")
        expect(page.locator(".turn .by").last).to_contain_text("llama-3.2-3b")
        assert page.said == []
    assert Conversation.objects.get().account == "codex"


def test_offline_the_model_on_this_computer_answers_and_says_so(browser, address, world, here):
    """R19: no account is marked, nobody who costs money is asked."""
    world.account("codex", label="Codex")
    Account.objects.update(base_url=NOWHERE)
    with shown(browser, address, world.person) as page:
        say(page, "No network here")
        answered(page, "From this computer.")
        expect(line(page)).to_contain_text("You’re offline. llama-3.2-3b on this computer is answering.")
        assert page.said == []
    assert not Refusal.objects.exists()
    assert [each.kind for each in Line.objects.all()] == ["offline.routed"]


def test_offline_with_nobody_else_nothing_was_sent_and_it_is_tried_again(browser, address, world):
    """R19: at once, red, as an alert."""
    account = world.account("codex", label="Codex")
    Account.objects.update(base_url=NOWHERE)
    account.key.replies("Back online.")
    with shown(browser, address, world.person) as page:
        say(page, "Hello?")
        expect(page.locator(".line.bad[role=alert]")).to_contain_text("You seem to be offline. Nothing was sent.")
        Account.objects.update(base_url=world.simulator.base_urls["codex"])
        press(page, "Try again")
        answered(page, "Back online.")
        expect(page.locator(".line.bad")).to_have_count(0)
        assert page.said == []


def test_over_the_budget_it_waits_for_a_plan_and_goes_out_when_the_budget_is_raised(browser, address, world):
    """R7, R16: the budget is changed in Settings, and the open page shows the answer by itself."""
    plan = world.account("codex", label="Codex")
    key = world.account("openai", label="OpenAI")
    now = timezone.now()
    Window.objects.create(
        account=plan.row,
        name="5-hour",
        used_percent=100,
        length_minutes=300,
        read_at=now,
        resets_at=now + timedelta(hours=2),
    )
    Preferences.objects.update(month_budget_nano=to_nano(Decimal(10)))
    month = f"{now:%Y-%m}"
    MonthTotal.objects.create(person=world.person, month=month, account="", spent_nano=to_nano(Decimal(10)))
    key.key.replies("Within the budget.", times=3)
    chat = a_chat(world.person, account="openai")
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        say(page, "One more")
        expect(line(page, ".warn")).to_contain_text("This month’s $10.00 is spent. No plan has room until")
        expect(line(page, ".warn")).to_contain_text("Your message goes out then.")
        page.get_by_role("link", name="Change the budget").press("Enter")
        page.locator("#budget input[inputmode]").fill("20")
        page.locator("#budget input[inputmode]").press("Enter")
        expect(page.locator("#budget")).to_contain_text("$20.00")
        page.goto(f"/c/{chat.pk}")
        the_worker_looks(world)
        answered(page, "Within the budget.")
        expect(page.locator(".line.warn")).to_have_count(0)
    assert Turn.objects.get().account == "openai"


def test_through_three_accounts_and_back_nothing_is_missing_and_nothing_twice(browser, address, world):
    """R20, R31: the one that comes back is handed what it missed, each message and answer once, in order."""
    first, second = two_codex(world)
    third = world.account("codex", "codex-3", label="Third")
    first.key.replies("Answer one.").refuses("usage_limit").replies("Answer four.", times=3)
    second.key.replies("Answer two.").refuses("usage_limit", times=3)
    third.key.replies("Answer three.", times=3)
    with shown(browser, address, world.person) as page:
        for number, text in enumerate(("one", "two", "three"), 1):
            say(page, f"Question {text}?")
            expect(page.locator(".turn")).to_have_count(number)
            answered(page, f"Answer {text}.")
        first.key.resets_early()
        passed = timezone.now() - timedelta(minutes=1)
        Window.objects.filter(account=first.row).update(resets_at=passed)
        Refusal.objects.filter(account=first.row).update(at=passed, until=passed, retry_at=passed)
        say(page, "Question four?")
        answered(page, "Answer four.")
        expect(line(page, ".calm")).to_contain_text("is back, with what it missed.")
        words = page.locator("#log").inner_text()
        said = [f"{kind} {text}" for text in ("one", "two", "three", "four") for kind in ("Question", "Answer")]
        assert re.findall(r"(?:Question|Answer) (?:one|two|three|four)", words) == said
        assert page.said == []
    asked = str(world.simulator.requests(first.key.secret)[-1].json)
    assert re.findall(r"(?:Question|Answer) (?:one|two|three|four)", asked) == said[:-1]


def test_a_message_that_cant_be_taken_is_answered_by_whom_the_line_offers(browser, address, world, tmp_path):
    """R11: said before anything is sent; nothing is switched."""
    from PIL import Image

    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.png")
    blind = [{"id": "gpt-5.5", "label": "GPT-5.5", "images": False}]
    first = world.account("codex", label="Codex", known_models=blind)
    other = world.account("codex", "codex-2", label="Seeing")
    other.key.replies("It is red.", times=3)
    with shown(browser, address, world.person) as page:
        page.get_by_label("Attach images").set_input_files(tmp_path / "red.png")
        say(page, "Which colour?")
        expect(line(page, ".bad")).to_contain_text("GPT-5.5 can’t see images. Nothing was sent.")
        press(page, "Answer with Seeing")
        answered(page, "It is red.")
        assert page.said == []
    assert world.simulator.requests(first.key.secret) == []
    assert Conversation.objects.get().account == "codex"


def test_an_answer_that_is_cut_goes_on_and_one_that_never_began_says_so(browser, address, world):
    """R30, R31, R34: Continue is a message of the person's; nothing is sent again by itself."""
    account = world.account("codex", label="Codex")
    account.key.cuts("The first half ").replies("and the second.").hangs_up().replies("Here it is.", times=3)
    with shown(browser, address, world.person) as page:
        say(page, "Go on")
        expect(line(page, ".bad")).to_contain_text("Codex stopped before the end. What had arrived is kept.")
        expect(answer(page)).to_contain_text("The first half")
        press(page, "Continue")
        answered(page, "and the second.")
        expect(page.locator(".you").last).to_contain_text("Continue.")
        say(page, "More")
        expect(line(page, ".bad")).to_contain_text("Codex broke off before it had written anything.")
        press(page, "Try again")
        answered(page, "Here it is.")
        assert page.said == []
    assert len(world.simulator.requests(account.key.secret)) == 4


def test_an_account_that_is_gone_leaves_the_choice_to_the_person(browser, address, world):
    """R36: nothing is routed past it by itself."""
    world.account("codex", label="Codex", removed_at=timezone.now())
    other = world.account("codex", "codex-2", label="Other")
    other.key.replies("I can.", times=3)
    chat = a_chat(world.person)
    a_turn(chat)
    with shown(browser, address, world.person, f"/c/{chat.pk}") as page:
        say(page, "Still there?")
        expect(line(page, ".bad")).to_contain_text("This chat’s account isn’t connected any more. Nothing was sent.")
        expect(page.get_by_role("link", name="Connect one")).to_have_attribute("href", "/settings/connect")
        press(page, "Answer with Other")
        answered(page, "I can.")
        assert page.said == []


def test_a_pick_that_is_gone_is_named_and_another_carries_on(browser, address, world):
    """R14: the words say so, by the name it had."""
    first, second = two_codex(world)
    world.account("codex", "codex-3", label="Picked", removed_at=timezone.now())
    first.key.refuses("usage_limit", times=3)
    second.key.replies("I carry on.", times=3)
    Preferences.objects.update(limit_fallback="codex-3")
    with shown(browser, address, world.person) as page:
        say(page, "Who?")
        expect(line(page, ".warn")).to_contain_text("Picked, your pick, isn’t connected any more. This chat waits.")
        press(page, re.compile("^Carry on with Codex"))
        answered(page, "I carry on.")
        assert page.said == []


def test_a_chat_that_stays_says_so_and_is_switched_back(browser, address, world):
    """R21, R23."""
    first, second = two_codex(world)
    first.key.refuses("usage_limit", times=9)
    second.key.replies("I stay.", times=9)
    Preferences.objects.update(limit_return=False)
    with shown(browser, address, world.person) as page:
        say(page, "Stay?")
        answered(page, "I stay.")
        expect(line(page)).to_contain_text(re.compile("reached its limit until .* This chat stays with Codex"))
        assert Conversation.objects.get().account == "codex-2"
        press(page, "Switch back")
        expect(line(page, ".calm")).to_contain_text("this chat waits for it until")
        assert page.said == []
    assert Conversation.objects.get().account == "codex"
