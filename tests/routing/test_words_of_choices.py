"""The sentences of each choice (copy.md 4.1)."""

from dataclasses import replace
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from conch.copy import choices as words
from conch.copy.clock import Viewer
from routing.facts import Model, Needs, Run
from routing.plan import plan as plan_of
from tests.routing.world import (
    GPT,
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
