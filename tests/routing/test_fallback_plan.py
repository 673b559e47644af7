"""The FallbackPlan (doors.md), and the sentences of each choice (copy.md 4.1)."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from conch.copy import choices as words
from conch.copy.clock import Viewer
from conch.models import Conversation, Preferences, Turn, Window
from routing.api import as_json, fallback_plan
from routing.facts import Chat, Model, Needs, Run
from routing.plan import plan as plan_of
from tests.conftest import NOW as THEN
from tests.conftest import make_account
from tests.routing.world import (
    GPT,
    LOCAL,
    MONTH_END,
    NOW,
    at_limit,
    blocked,
    budget,
    earlier,
    key,
    later,
    plan,
    question,
    refused,
    weekly,
    window,
)

VIEWER = Viewer(NOW)
CLAUDE = plan("claude-code", label="Claude Code", windows=(window(100.0, resets=later(hours=4)),))


def planned(*ways, settings=False, **asked):
    """The plan of the first account, in a chat or (Settings) without one."""
    given = question(*ways, **asked)
    return plan_of(replace(given, chat=None) if settings else given, NOW)


def first(*ways, **asked):
    found = planned(CLAUDE, *ways, **asked)
    return found.choices[0], found


def plain(text):
    return text.replace("\u00a0", " ")


def test_the_plan_of_the_contract():
    """doors.md: its own example, key by key."""
    codex = plan("codex", whose="ada@work.example", shares_account="openai-codex", identity="a")
    cli = plan("codex-cli", label="Codex CLI", shares_account="openai-codex", identity="a")
    router = key(
        "openrouter", "0.021", label="OpenRouter", cap=Decimal(10), cap_left=Decimal(9), model=Model("sonnet", "Sonnet")
    )
    local = replace(LOCAL, model=Model("tiny", "Tiny"))
    found = as_json(planned(CLAUDE, codex, cli, router, local=local, offline_fallback=True), VIEWER)

    assert found == {
        "engine": "claude-code",
        "label": "Claude Code",
        "limit": {"at": True, "until": "2026-10-09T16:00:00Z", "reason": "window"},
        "preference": "auto",
        "answers": "codex",
        "choices": [
            {
                "id": "codex",
                "label": "Codex",
                "kind": "plan",
                "ways": ["codex", "codex-cli"],
                "account": "ada@work.example",
                "answers_by": "codex",
                "model": {"id": "gpt-5.5", "label": "GPT-5.5"},
                "room": {
                    "state": "ok",
                    "percent_left": 72,
                    "resets_at": "2026-10-09T16:00:00Z",
                    "window": "5-hour",
                },
                "per_reply": None,
                "skip": None,
                "facts": "72% left · resets 4:00\u00a0PM · Included in your plan · Answers with GPT-5.5",
            },
            {
                "id": "openrouter",
                "label": "OpenRouter",
                "kind": "key",
                "ways": ["openrouter"],
                "account": "key ending 4f2a",
                "answers_by": "openrouter",
                "model": {"id": "sonnet", "label": "Sonnet"},
                "room": {"state": "low", "percent_left": 90, "resets_at": None, "window": "key limit"}
                | {"state": "ok"},
                "per_reply": "0.021",
                "skip": {"code": "paid_off", "text": "Passed over: pay-per-use keys are off"},
                "facts": "About $0.02 a reply · No budget set · Answers with Sonnet",
            },
        ],
        "local": {"account": "local", "model": {"id": "tiny", "label": "Tiny"}, "allowed": True, "skip": None},
        "wait": {"until": "2026-10-09T16:00:00Z"},
    }


@pytest.mark.parametrize(
    ("preferences", "answers"),
    [
        ({}, "codex"),
        ({"limit_fallback": "wait"}, None),
        ({"limit_fallback": "codex-cli"}, "codex"),
        ({"limit_fallback": "openai"}, "openai"),
        ({"limit_fallback": "gone"}, None),
        ({"limit_fallback": "gone", "offline_fallback": True}, "local"),
        ({"limit_order": ("openai",), "limit_paid": True}, "openai"),
    ],
)
def test_who_would_answer_were_it_at_its_limit(preferences, answers):
    """doors.md `answers`: also where it isn't."""
    ways = (
        plan("claude"),
        plan("codex", shares_account="x", identity="a"),
        plan("codex-cli", shares_account="x", identity="a"),
        key("openai"),
    )

    assert planned(*ways, local=LOCAL, **preferences).answers == answers


def test_in_a_chat_that_was_switched_back_nobody_would():
    """R23."""
    assert planned(CLAUDE, plan("codex"), chat=Chat("", waits_until=later(hours=1))).answers is None


def test_an_account_with_room_says_when_its_tightest_window_resets():
    """doors.md: limit.until and wait.until."""
    found = as_json(planned(plan("codex"), CLAUDE), VIEWER)

    assert found["limit"] == {"at": False, "until": "2026-10-09T16:00:00Z", "reason": None}
    assert found["wait"] == {"until": "2026-10-09T16:00:00Z"}
    assert [choice["skip"]["code"] for choice in found["choices"]] == ["at_limit"]


def test_the_model_on_this_computer_has_every_account_as_a_choice():
    """doors.md: for any engine slug."""
    found = as_json(planned(plan("codex"), own="local", local=LOCAL), VIEWER)

    assert (found["engine"], found["label"], [choice["id"] for choice in found["choices"]]) == (
        "local",
        "Tiny",
        ["codex"],
    )
    assert found["limit"] == {"at": False, "until": None, "reason": None}


def test_why_the_model_on_this_computer_could_not_answer():
    """R15."""
    missing, deaf = planned(CLAUDE), planned(CLAUDE, local=LOCAL, needs=Needs(tools=True))

    assert as_json(missing, VIEWER)["local"]["skip"] == {
        "code": "no_model",
        "text": "There’s no model on this computer yet",
    }
    assert as_json(deaf, VIEWER)["local"]["skip"]["code"] == "cannot_carry_tools"
    assert words.local_skip_text(planned(CLAUDE, local=LOCAL).local) == ""


KEY_ON = {"limit_paid": True, "money": budget("10", "3.1")}
MODEL = "Answers with GPT-5.5"


@pytest.mark.parametrize(
    ("way", "asked", "facts", "tag", "reason", "order"),
    [
        (
            plan("c"),
            {},
            f"72% left · resets 4:00 PM · Included in your plan · {MODEL}",
            None,
            None,
            "72% left, resets 4:00 PM",
        ),
        (
            plan("c", windows=(window(94.0, resets=later(days=6)),)),
            {},
            f"6% left · resets Thu 12:00 PM · Included in your plan · {MODEL}",
            "Low",
            None,
            "Low: 6% left, resets Thu 12:00 PM",
        ),
        (
            at_limit(plan("c"), later(hours=4)),
            {},
            f"At its limit · resets 4:00 PM · Included in your plan · {MODEL}",
            "None left",
            "Passed over until 4:00 PM.",
            "At its limit until 4:00 PM",
        ),
        (
            plan("c", windows=(), refusals=(blocked(),)),
            {},
            f"At its limit · Included in your plan · {MODEL}",
            "None left",
            "Passed over until it answers again.",
            "At its limit",
        ),
        (
            plan("c", windows=(window(5.0, resets=later(hours=1)), weekly(100.0, resets=later(days=1)))),
            {},
            f"At its weekly limit · resets tomorrow 12:00 PM · Included in your plan · {MODEL}",
            "None left",
            "Passed over until tomorrow 12:00 PM.",
            "At its weekly limit until tomorrow 12:00 PM",
        ),
        (
            plan("c", windows=(), refusals=(refused(later(hours=4), at=earlier(minutes=5)),)),
            {},
            f"Doesn’t say how much is left · Included in your plan · {MODEL}",
            "Refused",
            "It refused for a limit at 11:55 AM. Passed over until 4:00 PM.",
            "Refused for a limit. Passed over until 4:00 PM",
        ),
        (
            plan("c", windows=(), refusals=(refused(at=earlier(minutes=5)),)),
            {},
            f"Doesn’t say how much is left · Included in your plan · {MODEL}",
            "Refused",
            "It refused for a limit at 11:55 AM. Conch tries it again at 12:10 PM.",
            "Refused for a limit. Tried again at 12:10 PM",
        ),
        (
            plan("c", windows=(window(100.0, resets=earlier(minutes=1)),)),
            {},
            f"Resets now · Included in your plan · {MODEL}",
            None,
            None,
            "Resets now",
        ),
        (
            plan("c", windows=()),
            {},
            f"Doesn’t say how much is left · Included in your plan · {MODEL}",
            None,
            None,
            "Doesn’t say how much is left",
        ),
        (
            plan("c", carries_on=False),
            {},
            f"72% left · resets 4:00 PM · Included in your plan · {MODEL}",
            None,
            "Left out by you.",
            "Left out by you",
        ),
        (
            plan("c", state="signed_out", windows=()),
            {},
            f"Doesn’t say how much is left · Included in your plan · {MODEL}",
            "Signed out",
            "Sign in again to use it.",
            "Signed out",
        ),
        (
            plan("c", model=replace(GPT, tools=False), windows=()),
            {"needs": Needs(tools=True)},
            f"Doesn’t say how much is left · Included in your plan · {MODEL}",
            None,
            "Passed over for chats that use tools: it can’t run them here.",
            "Can’t carry on chats that use tools",
        ),
        (
            key("k"),
            {},
            f"About $0.02 a reply · No budget set · {MODEL}",
            None,
            "Automatic passes it over: pay-per-use keys are off.",
            "Passed over: pay-per-use keys are off",
        ),
        (
            key("k"),
            KEY_ON,
            f"About $0.02 a reply · $6.90 of $10.00 left this month · {MODEL}",
            None,
            None,
            "About $0.02 a reply",
        ),
        (
            key("k"),
            {"limit_paid": True, "money": budget("10", "9.4")},
            f"About $0.02 a reply · $0.60 of $10.00 left this month · {MODEL}",
            "Low",
            None,
            "Low: 6% left, resets Nov 1",
        ),
        (
            key("k"),
            {"limit_paid": True, "money": budget("10", "10")},
            f"About $0.02 a reply · {MODEL}",
            "Over budget",
            "This month’s $10.00 is spent. Passed over until Nov 1.",
            "Over this month’s budget until Nov 1",
        ),
        (
            key("k"),
            {"limit_paid": True, "money": budget("10", "4", "6")},
            f"About $0.02 a reply · {MODEL}",
            "Over budget",
            "Answers that are running may use what is left of this month’s $10.00.",
            "Held by answers that are running",
        ),
        (
            key("openrouter", label="OpenRouter", cap=Decimal(5), cap_left=Decimal(0)),
            {},
            f"About $0.02 a reply · {MODEL}",
            "Key limit reached",
            "The limit set at OpenRouter is reached.",
            "Over its key’s own limit",
        ),
        (
            key("k", own_limit=Decimal(5), spent=Decimal(5)),
            {},
            f"About $0.02 a reply · {MODEL}",
            "Key limit reached",
            "The $5.00 you set for it is spent.",
            "Over its key’s own limit",
        ),
        (
            key("k", own_limit=Decimal(5), held=Decimal(5)),
            {},
            f"About $0.02 a reply · {MODEL}",
            "Key limit reached",
            "Answers that are running may use what is left of its limit.",
            "Over its key’s own limit",
        ),
        (
            key("k", price=None),
            {},
            f"Pay per use · Conch can’t price it · {MODEL}",
            None,
            "Automatic passes it over: pay-per-use keys are off.",
            "Passed over: pay-per-use keys are off",
        ),
        (
            key("k", price=None),
            {"limit_paid": True},
            f"Pay per use · Conch can’t price it · {MODEL}",
            None,
            None,
            "Pay per use",
        ),
        (
            key("k", price=None),
            {"money": budget("10")},
            f"Pay per use · Conch can’t price it, so no budget bounds it · {MODEL}",
            None,
            "Automatic passes it over: pay-per-use keys are off.",
            "Pay per use, price unknown",
        ),
        (
            key("k", price=None),
            KEY_ON,
            f"Pay per use · Conch can’t price it, so no budget bounds it · {MODEL}",
            None,
            "Automatic passes it over: Conch can’t price it, so no budget bounds it.",
            "Pay per use, price unknown",
        ),
        (
            key("k", refusals=(blocked(later(hours=4)),)),
            KEY_ON,
            f"At its limit · resets 4:00 PM · About $0.02 a reply · {MODEL}",
            "None left",
            "Passed over until 4:00 PM.",
            "At its limit until 4:00 PM",
        ),
        (
            key("k"),
            {"limit_paid": True, "run": Run(unattended=True)},
            f"About $0.02 a reply · No budget set · {MODEL}",
            None,
            "Passed over for messages that go out while you’re away: no month’s budget is set.",
            "Needs a month’s budget while you’re away",
        ),
        (
            key("k", price="0"),
            {"limit_paid": True},
            f"About $0.00 a reply · No budget set · {MODEL}",
            None,
            None,
            "About $0.00 a reply",
        ),
    ],
)
def test_every_state_of_a_choice_in_words(way, asked, facts, tag, reason, order):
    """Copy 4.1: the two tables."""
    choice, found = first(way, **asked)
    said = words.reason(choice, found, VIEWER)
    tagged = words.tag(choice)

    assert plain(words.facts_text(choice, found, VIEWER)) == facts
    assert (tagged.text if tagged else None) == tag
    assert (plain(said.text) if said else None) == reason
    assert plain(words.in_the_order(choice, VIEWER)) == order


@pytest.mark.parametrize(
    ("way", "asked", "act"),
    [
        (plan("c", carries_on=False), {}, "let"),
        (plan("c", state="signed_out"), {}, "sign_in"),
        (key("k"), {"limit_paid": True, "run": Run(unattended=True)}, "budget"),
        (key("k"), {"limit_paid": True, "money": budget("1", "1")}, "change_budget"),
        (key("k"), {}, ""),
    ],
)
def test_what_can_be_done_about_it(way, asked, act):
    """Copy 4.1: the buttons beside the reasons."""
    choice, found = first(way, **asked)

    assert words.reason(choice, found, VIEWER).act == act


def test_times_are_said_in_the_readers_zone_and_hours():
    """Copy 2.5."""
    choice, found = first(plan("codex"))
    viewer = Viewer(NOW, ZoneInfo("Europe/Berlin"), "h23")

    assert words.facts(choice, found, viewer)[:2] == ("72% left", "resets 18:00")


def test_a_plan_whose_model_is_not_known_names_none():
    """R10."""
    choice, found = first(plan("codex", model=Model("")))

    assert words.facts(choice, found, VIEWER)[-1] == "Included in your plan"


def test_over_the_budget_without_an_end_or_an_amount_is_still_said():
    """R7."""
    choice, found = first(key("k"), limit_paid=True, money=replace(budget("1", "1"), ends_at=None))

    assert words.reason(choice, found, VIEWER).text == "This month’s $1.00 is spent."
    assert MONTH_END > NOW


# From the database to JSON.


@pytest.fixture
def connected(ada):
    codex = make_account(ada, "codex", label="Codex")
    Window.objects.create(
        account=codex, name="5-hour", used_percent=28, resets_at=THEN + timedelta(hours=4), read_at=THEN
    )
    make_account(ada, "openai", label="OpenAI", model="gpt-5.5")
    Preferences.objects.filter(pk=ada.pk).update(time_zone="Europe/Berlin", hour_cycle="h23", month_budget_nano=10**10)
    return ada


def test_a_persons_plan_is_json_in_their_own_words(connected):
    """doors.md."""
    found = fallback_plan(connected, "openai", None, THEN)

    assert json.loads(json.dumps(found)) == found
    assert [choice["id"] for choice in found["choices"]] == ["codex"]
    assert found["choices"][0]["facts"].startswith("72% left · resets 18:00 · ")
    assert found["answers"] == "codex"


def test_in_a_chat_the_price_is_for_its_length(connected):
    """R5."""
    chat = Conversation.objects.create(person=connected, account="codex", created_at=THEN, updated_at=THEN)
    Turn.objects.create(conversation=chat, text="x" * 60_000, answer="y" * 60_000, created_at=THEN)
    typical, here = (
        next(choice for choice in fallback_plan(connected, "codex", asked, THEN)["choices"] if choice["kind"] == "key")
        for asked in (None, chat.pk)
    )

    assert Decimal(here["per_reply"]) > Decimal(typical["per_reply"]) > 0


def test_the_plan_of_a_chat_whose_account_is_gone(connected):
    """R36."""
    chat = Conversation.objects.create(person=connected, account="gone", created_at=THEN, updated_at=THEN)
    found = fallback_plan(connected, "gone", chat.pk, THEN)

    assert (found["label"], found["limit"]["at"], len(found["choices"])) == ("gone", False, 2)


@pytest.mark.parametrize("slug", ["gone", "", "auto"])
def test_an_unknown_account_is_a_lookup_error(connected, slug):
    """doors.md: 404."""
    with pytest.raises(LookupError):
        fallback_plan(connected, slug, None, THEN)


def test_a_zone_that_this_machine_does_not_know_is_utc(connected):
    """Times."""
    Preferences.objects.filter(pk=connected.pk).update(time_zone="Nowhere/Land", hour_cycle="")

    assert "resets 4:00\u00a0PM" in fallback_plan(connected, "openai", None, THEN)["choices"][0]["facts"]
