"""Every button of the lines of copy.md 4.2, pressed as a page without script presses it, with what came of it."""

import asyncio
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.test import AsyncClient, Client
from django.utils import timezone

from conch.db import look
from conch.models import Account, Attempt, Conversation, Turn, Window
from conch.turns.run import all_ended
from routing import known
from tests.pages.conftest import a_chat, a_line, a_turn
from tests.pages.test_lines import offer, passed, waiting
from tests.turns.conftest import world  # noqa: F401  a fixture, found by name

pytestmark = pytest.mark.django_db(transaction=True)
PRICE = "about $0.01"
B, KEY, HERE = offer("Codex-2"), offer("OpenAI", "key", "0.0123"), offer("Here", "local")
HERE |= {"slug": "local"}
NO_ACCOUNT = {"code": "no_account", "offers": [B]}


class Forms(HTMLParser):
    """The forms of a page: where each goes, what it sends along, and its buttons by their words; and its links."""

    def __init__(self, page):
        super().__init__()
        self.buttons, self.links, self._form, self._words = {}, {}, None, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag == "form":
            self._form = (facts.get("action", ""), {})
        elif tag == "input" and self._form is not None and facts.get("type") == "hidden":
            self._form[1][facts["name"]] = facts.get("value", "")
        elif tag in {"button", "a"}:
            self._words = (tag, facts, [])

    def handle_data(self, data):
        if self._words is not None:
            self._words[2].append(data)

    def handle_endtag(self, tag):
        if tag == "form":
            self._form = None
        elif self._words is not None and tag == self._words[0]:
            _, facts, words = self._words
            if tag == "a":
                self.links["".join(words).strip()] = facts.get("href", "")
            elif self._form is not None:
                self.buttons["".join(words).strip()] = self._form
            self._words = None


@pytest.fixture
def people(world, monkeypatch):  # noqa: F811
    """Ada with a chat of Codex, which is at its limit; a second Codex, a key and a model here could answer."""
    monkeypatch.setenv("CONCH_LOCAL_URL", world.simulator.base_urls["openai"])
    monkeypatch.setenv("CONCH_LOCAL_MODEL", "here")
    known.forget_local()
    world.first, world.second = (
        world.account("codex", label="Codex"),
        world.account("codex", "codex-2", label="Codex-2"),
    )
    world.paid = world.account("openai", label="OpenAI")
    for slug, account in (("codex", world.first), ("codex-2", world.second), ("openai", world.paid)):
        account.key.replies(f"By {slug}.", times=9)
    world.simulator.key("none").replies("By local.", times=9)
    world.until = timezone.now() + timedelta(hours=2)
    world.chat = a_chat(world.person)
    client = Client()
    client.force_login(world.person)
    world.client = AsyncClient()
    world.client.cookies = client.cookies
    yield world
    known.forget_local()


def at_its_limit(world):  # noqa: F811
    Window.objects.create(
        account=world.first.row,
        name="5-hour",
        used_percent=100,
        length_minutes=300,
        read_at=timezone.now(),
        resets_at=world.until,
    )


def waits(world, data, state="waiting"):  # noqa: F811
    at_its_limit(world)
    turn = a_turn(world.chat, "Well?", "", state, ended_at=None, account="", until=world.until, waits_for="room")
    kind = "limit.capped" if state == "capped" else "limit.waiting"
    a_line(turn, kind, {"from": "codex", "from_label": "Codex", "until": world.until.isoformat()} | data)
    return turn


def failed(world, failure):  # noqa: F811
    answer = "Half " if failure["code"] == "cut" else ""
    return a_turn(world.chat, "Well?", answer, "failed", failure_code=failure["code"], failure=failure)


async def page_of(world):  # noqa: F811
    return (await world.client.get(f"/c/{world.chat.pk}")).content.decode()


async def pressed(world, words):  # noqa: F811
    """Press the button; afterwards nothing runs."""
    buttons = Forms(await page_of(world)).buttons
    assert words in buttons, sorted(buttons)
    address, fields = buttons[words]
    response = await world.client.post(address, fields)
    await asyncio.wait_for(all_ended(), 60)
    assert response.status_code == 302, response.content
    return await page_of(world)


WAITING = {
    "chosen": {"could": B},
    "room": {"next": passed("Codex-2", "at_limit"), "local": {"label": "Here"}},
    "only_keys": {"could": KEY},
    "no_reset": {"until": None},
    "tools": {"could": B},
    "budget": {"budget": "10"},
    "holds": {"budget": "10"},
    "needs_budget": {"could": KEY},
    "pick_is_limit": {"could": B},
    "pick_gone": {"could": B, "pick": offer("Gone")},
    "pick_no_room": {"could": KEY, "pick": offer("Gemini")},
    "signed_out": {},
    "offline": {},
}


@pytest.mark.parametrize("why", WAITING)
async def test_whatever_waits_is_taken_back(people, why):
    """R16: Cancel, on every waiting line; nothing was sent."""
    turn = await look(waits, people, waiting(why, **WAITING[why]))

    page = await pressed(people, "Cancel")

    assert "You cancelled this message." in page
    assert (await look(Turn.objects.get, pk=turn.pk)).state == "stopped"
    assert people.simulator.requests() == []


@pytest.mark.parametrize(
    ("why", "words", "by", "consent"),
    [
        ("chosen", "Send with Codex-2 now", "codex-2", ""),
        ("room", "Answer with Here now", "local", ""),
        ("only_keys", "Use it for this message", "openai", "once"),
        ("needs_budget", "Use it for this message", "openai", "once"),
        ("pick_is_limit", "Carry on with Codex-2", "codex-2", ""),
        ("pick_gone", "Carry on with Codex-2", "codex-2", ""),
        ("pick_no_room", f"Carry on with OpenAI, {PRICE}", "openai", "once"),
    ],
)
async def test_whom_a_waiting_line_offers_answers_at_a_press(people, why, words, by, consent):
    """R23, R27: for a key a yes for this message alone; the chat stays its own account's."""
    await look(waits, people, waiting(why, **WAITING[why]))

    page = await pressed(people, words)

    assert f"By {by}." in page
    assert "goes out then" not in page
    attempt = await look(Attempt.objects.get)
    assert (attempt.account, attempt.consent or "") == (by, consent)
    assert (await look(Conversation.objects.get)).account == "codex"


async def test_a_message_that_waits_while_offline_is_tried_again_at_a_press(people):
    """R16, R19."""
    await look(waits, people, waiting("offline"))
    await look(Window.objects.all().delete)

    assert "By codex." in await pressed(people, "Try again")


@pytest.mark.parametrize(("words", "state"), [("Raise to $4.00", "done"), ("Stop here", "stopped")])
async def test_a_capped_chat_is_raised_or_stopped(people, words, state):
    """R18."""
    turn = await look(waits, people, {"cap": "2", "spent": "1.98", "raise_to": "4.00"}, "capped")
    await look(Window.objects.all().delete)
    await look(Conversation.objects.update, spend_cap_nano=2 * 10**9, spent_nano=2 * 10**9)

    await pressed(people, words)

    assert (await look(Turn.objects.get, pk=turn.pk)).state == state
    cap = (await look(Conversation.objects.get)).spend_cap_nano
    assert cap == (4 if state == "done" else 2) * 10**9


@pytest.mark.parametrize(
    ("failure", "words", "by"),
    [
        ({"code": "unreachable", "label": "Codex", "offers": [KEY]}, f"Answer with OpenAI, {PRICE}", "openai"),
        ({"code": "unreachable", "label": "Codex", "offers": [B]}, "Try again", "codex"),
        ({"code": "offline"}, "Try again", "codex"),
        ({"code": "interrupted"}, "Try again", "codex"),
        ({"code": "cut", "label": "Codex"}, "Try again", "codex"),
        ({"code": "cut", "label": "Codex", "arrived": False, "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "provider_error", "label": "Codex", "said": "It broke"}, "Try again", "codex"),
        ({"code": "throttled", "label": "Codex", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "overloaded", "label": "Codex", "offers": [B]}, "Try again", "codex"),
        ({"code": "cannot_carry_images", "model": "gpt", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "cannot_carry_tools", "label": "Codex", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "too_long", "model": "gpt", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "model_gone", "label": "Codex", "model": "gpt", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "signed_out", "label": "Codex", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        (NO_ACCOUNT, "Answer with Codex-2", "codex-2"),
        ({"code": "no_room", "offers": [HERE]}, "Answer with Here", "local"),
        ({"code": "no_room", "reason": "budget", "budget": "10", "offers": [HERE]}, "Answer with Here", "local"),
        ({"code": "wrong_payer", "label": "Codex", "offers": [B]}, "Try again", "codex"),
        ({"code": "limit", "label": "Codex", "offers": [B]}, "Answer with Codex-2", "codex-2"),
        ({"code": "internal"}, "Try again", "codex"),
    ],
)
async def test_what_a_failure_offers_answers_the_same_message_at_a_press(people, failure, words, by):
    """R11, R16, R19, R34, R36: in the same turn; the failure is gone."""
    turn = await look(failed, people, failure)

    page = await pressed(people, words)

    assert f"By {by}." in page
    assert page.count('class="msg you"') == 1
    after = await look(Turn.objects.get, pk=turn.pk)
    assert (after.state, after.account, after.failure_code) == ("done", by, "")


@pytest.mark.parametrize("how", ["cut", "length"])
async def test_continue_is_a_message_of_the_persons(people, how):
    """R31."""
    if how == "cut":
        await look(failed, people, {"code": "cut", "label": "Codex"})
    else:
        await look(a_turn, people.chat, "Well?", "To its cap", ending="length")

    page = await pressed(people, "Continue")

    assert page.count('class="msg you"') == 2
    assert "By codex." in page
    assert await look(lambda: list(Turn.objects.order_by("pk").values_list("text", flat=True))) == [
        "Well?",
        "Continue.",
    ]


@pytest.mark.parametrize(("words", "state"), [("Send now instead", "done"), ("Cancel", "stopped")])
async def test_a_message_behind_another_goes_now_or_not_at_all(people, words, state):
    """R35."""
    await look(a_turn, people.chat, "First", "", "waiting", ended_at=None, account="")
    behind = await look(a_turn, people.chat, "Second", "", "queued", ended_at=None, account="")

    await pressed(people, words)

    assert (await look(Turn.objects.get, pk=behind.pk)).state == state


@pytest.mark.parametrize(
    ("make", "facts", "words"),
    [
        (waits, waiting("budget", budget="10"), "Change the budget"),
        (waits, waiting("needs_budget", could=KEY), "Set a budget"),
        (waits, waiting("signed_out"), "Sign in"),
        (failed, {"code": "signed_out", "label": "Codex", "account": "codex", "offers": []}, "Sign in"),
        (failed, {"code": "signed_out", "label": "OpenAI", "account": "openai", "billing": "key"}, "Change the key"),
        (failed, NO_ACCOUNT, "Connect one"),
        (failed, {"code": "no_room", "offers": []}, "Connect another"),
        (failed, {"code": "no_room", "reason": "budget", "budget": "10", "offers": []}, "Change the budget"),
        (failed, {"code": "no_model", "offers": []}, "Get a model"),
    ],
)
async def test_what_needs_a_page_of_its_own_leads_there(people, make, facts, words):
    await look(make, people, facts)

    links = Forms(await page_of(people)).links
    response = await people.client.get(links[words], follow=True)

    assert response.status_code == 200
    assert "/settings/" in links[words]


async def test_a_model_that_is_gone_opens_the_account_picker(people):
    await look(failed, people, {"code": "model_gone", "label": "Codex", "model": "gpt", "offers": []})

    assert 'popovertarget="who">Pick another model</button>' in await page_of(people)


async def test_a_press_after_another_tab_has_answered_changes_nothing_more(people):
    """R27, R34: the yes for one message is one payment; the second page is shown what came of it."""
    turn = await look(waits, people, waiting("only_keys", could=KEY))
    address, fields = Forms(await page_of(people)).buttons["Use it for this message"]

    await pressed(people, "Use it for this message")
    again = await people.client.post(address, fields, headers={"HX-Request": "true"})
    await asyncio.wait_for(all_ended(), 60)

    assert "By openai." in again.content.decode()
    assert len(people.simulator.requests(people.paid.key.secret)) == 1
    assert (await look(Turn.objects.get, pk=turn.pk)).state == "done"
    assert await look(Account.objects.count) == 3
