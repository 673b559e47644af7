"""Nobody answers: for whom the turn waits, until when, and when it is asked again (R16, R25, R36)."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from routing.facts import Chat, LastRoute, Needs, Run
from tests.routing.world import (
    GPT,
    LOCAL,
    MONTH_END,
    NOW,
    at_limit,
    blocked,
    budget,
    decided,
    earlier,
    key,
    later,
    no_reset,
    plan,
    refused,
    window,
)

CLAUDE, CODEX, OPENAI = plan("claude"), plan("codex"), key("openai")
FULL = at_limit(CLAUDE)
MARGIN = timedelta(seconds=5)
DEAF = replace(GPT, tools=False)


def wait(*ways, **asked):
    decision = decided(*ways, **asked)
    assert decision.kind == "wait"
    return decision.wait


def test_it_waits_for_the_earliest_over_all_who_could_then_answer():
    """R16, ACC-05."""
    waits = wait(at_limit(CLAUDE, later(hours=6)), at_limit(CODEX, later(hours=1)), at_limit(plan("c"), later(hours=3)))

    assert (waits.for_, waits.until, waits.wake_at, waits.why) == (
        "room",
        later(hours=1),
        later(hours=1) + MARGIN,
        "room",
    )
    assert (waits.next.slug, waits.next.label) == ("codex", "Codex")


def test_alone_it_waits_for_its_own_account():
    """R16."""
    waits = wait(FULL)

    assert (waits.for_, waits.until, waits.next.slug, waits.could) == ("claude", later(hours=2), "claude", None)
    assert waits.tries_at is None


def test_who_is_passed_over_for_good_is_not_waited_for():
    """R16: only who could then answer."""
    nobody = [
        at_limit(plan("left", carries_on=False), later(minutes=1)),
        at_limit(plan("out", state="signed_out"), later(minutes=1)),
        at_limit(plan("deaf", model=DEAF), later(minutes=1)),
        at_limit(key("openai"), later(minutes=1)),
    ]
    waits = wait(FULL, *nobody, needs=Needs(tools=True))

    assert (waits.for_, waits.until) == ("claude", later(hours=2))


def test_a_key_past_its_own_limit_counts_where_keys_may_answer():
    """R16."""
    spent = key("openai", cap=Decimal(1), cap_left=Decimal(0), cap_resets_at=later(minutes=30))

    assert wait(FULL, spent, limit_paid=True).until == later(minutes=30)
    assert wait(FULL, spent).until == later(hours=2)


def test_under_a_pick_it_waits_for_its_own_account_and_the_pick():
    """R14, R16."""
    pick = {"limit_fallback": "codex"}

    assert wait(FULL, at_limit(CODEX, later(hours=1)), at_limit(plan("c"), later(minutes=5)), **pick).until == later(
        hours=1
    )
    assert wait(FULL, at_limit(replace(CODEX, carries_on=False), later(hours=1)), **pick).until == later(hours=1)


def test_under_wait_it_waits_for_its_own_account_alone():
    """R16."""
    waits = wait(FULL, at_limit(CODEX, later(hours=1)), limit_fallback="wait")

    assert (waits.for_, waits.until, waits.could) == ("claude", later(hours=2), None)
    assert wait(FULL, OPENAI, CODEX, limit_fallback="wait").could.slug == "codex"


@pytest.mark.parametrize(("wakes", "minutes"), [(1, 30), (2, 60), (3, 60), (40, 60)])
def test_with_no_reset_known_it_is_asked_less_and_less_often(wakes, minutes):
    """R16: after 15 minutes, then 30, then every hour."""
    waits = wait(no_reset(CLAUDE), run=Run(waiting=True, waiting_since=earlier(hours=1), wakes=wakes))

    assert (waits.until, waits.wake_at, waits.tries_at) == (None, later(minutes=minutes), later(minutes=minutes))
    assert waits.why == "no_reset"


def test_at_first_it_is_asked_when_the_quarter_of_an_hour_since_the_refusal_is_over():
    """R8, R16."""
    assert wait(no_reset(CLAUDE)).wake_at == later(minutes=10) + MARGIN


def test_a_full_window_without_a_reset_is_asked_after_a_quarter_of_an_hour():
    """R16."""
    waits = wait(plan("claude", windows=(window(100.0),)))

    assert (waits.wake_at, waits.next) == (later(minutes=15), None)


def test_where_one_reset_is_known_and_one_is_not_it_is_asked_for_both():
    """R16."""
    waits = wait(FULL, no_reset(CODEX))

    assert (waits.until, waits.wake_at) == (later(hours=2), later(minutes=10) + MARGIN)


def test_it_is_never_asked_at_once_again():
    """R16: a few seconds after the reset."""
    waits = wait(at_limit(CLAUDE, later(seconds=1)))

    assert waits.wake_at == later(seconds=6)


# At most eight days, a day for want of credit.


@pytest.mark.parametrize(
    ("ahead", "since", "kind"),
    [
        (timedelta(days=8), None, "wait"),
        (timedelta(days=8, seconds=1), None, "fail"),
        (timedelta(days=3), earlier(days=5), "wait"),
        (timedelta(days=3, seconds=1), earlier(days=5), "fail"),
    ],
)
def test_a_turn_waits_at_most_eight_days(ahead, since, kind):
    """R16: where the earliest reset is further off it fails, saying when and what would help."""
    decision = decided(at_limit(CLAUDE, NOW + ahead), OPENAI, local=LOCAL, run=Run(waiting_since=since))

    assert decision.kind == kind
    if kind == "fail":
        assert (decision.failure.code, decision.failure.until) == ("no_room", NOW + ahead)
        assert [offer.slug for offer in decision.failure.offers] == ["openai", "local"]


def test_without_a_known_reset_it_fails_after_eight_days():
    """R16."""
    assert decided(no_reset(CLAUDE), run=Run(waiting_since=earlier(days=8))).failure.code == "no_room"
    assert decided(no_reset(CLAUDE), run=Run(waiting_since=earlier(days=7, hours=23))).kind == "wait"


def test_for_want_of_credit_it_waits_a_day():
    """R16."""
    broke = key("openai", refusals=(refused(reason="money"),))

    assert decided(broke, run=Run(waiting_since=earlier(hours=23))).kind == "wait"
    assert decided(broke, run=Run(waiting_since=earlier(days=1))).failure.code == "no_room"
    assert decided(broke, at_limit(CODEX), run=Run(waiting_since=earlier(days=1))).wait.for_ == "codex"


def test_another_that_is_back_in_time_keeps_it_waiting():
    """R16."""
    waits = wait(at_limit(CLAUDE, later(days=20)), at_limit(CODEX, later(days=2)))

    assert (waits.for_, waits.until) == ("codex", later(days=2))


def test_a_spent_month_that_ends_too_late_fails_for_the_budget():
    """R16, copy.md "over budget, for long"."""
    decision = decided(OPENAI, money=budget("10", "10"), local=LOCAL)

    assert (decision.failure.code, decision.failure.reason, decision.failure.budget) == ("no_room", "budget", 10)
    assert decision.failure.until == MONTH_END


def test_where_only_holds_are_in_the_way_it_waits_however_far_the_months_end_is():
    """R16: nothing says that the month is spent."""
    waits = wait(OPENAI, money=budget("10", "4", "6"), run=Run(waiting_since=earlier(days=9)))

    assert (waits.why, waits.until, waits.wake_at, waits.budget) == ("holds", None, later(minutes=15), 10)
    both = wait(FULL, OPENAI, money=budget("10", "4", "6"), limit_paid=True)
    assert (both.why, both.until, both.wake_at) == ("holds", None, later(minutes=15))


# Why, in a code.


@pytest.mark.parametrize(
    ("ways", "asked", "why", "could"),
    [
        ((FULL, at_limit(CODEX)), {}, "room", None),
        ((FULL, plan("left", carries_on=False)), {}, "room", None),
        ((no_reset(CLAUDE), no_reset(CODEX)), {}, "no_reset", None),
        ((FULL, OPENAI), {}, "only_keys", "openai"),
        ((FULL, key("dear", "3"), OPENAI), {}, "only_keys", "openai"),
        ((FULL, OPENAI), {"run": Run(unattended=True)}, "only_keys", "openai"),
        ((FULL, OPENAI), {"run": Run(unattended=True), "limit_paid": True}, "needs_budget", "openai"),
        ((FULL, key("mine", None)), {"limit_paid": True, "money": budget("9")}, "room", None),
        ((FULL, plan("deaf", model=DEAF)), {"needs": Needs(tools=True)}, "tools", "deaf"),
        ((FULL, OPENAI), {"limit_paid": True, "money": budget("1", "1")}, "room", None),
        ((FULL, CODEX), {"limit_fallback": "wait"}, "chosen", "codex"),
        ((FULL, CODEX), {"limit_fallback": "claude"}, "pick_is_limit", "codex"),
        ((FULL, CODEX), {"limit_fallback": "gone"}, "pick_gone", "codex"),
        ((FULL, CODEX, plan("out", state="signed_out")), {"limit_fallback": "out"}, "pick_gone", "codex"),
        ((FULL, CODEX, at_limit(plan("c"))), {"limit_fallback": "c"}, "pick_no_room", "codex"),
        (
            (FULL, CODEX, plan("deaf", model=DEAF)),
            {"limit_fallback": "deaf", "needs": Needs(tools=True)},
            "tools",
            "deaf",
        ),
        ((FULL, OPENAI), {"limit_fallback": "openai", "run": Run(unattended=True)}, "needs_budget", "openai"),
        ((FULL, OPENAI), {"limit_fallback": "openai", "money": budget("1", "0", "1")}, "holds", None),
    ],
)
def test_why_it_waits(ways, asked, why, could):
    """Copy 4.2: each waiting line has its own reason, and its button."""
    waits = wait(*ways, **asked)

    assert (waits.why, waits.could.slug if waits.could else None) == (why, could)


def test_a_spent_budget_is_said_where_it_alone_keeps_a_key_from_answering():
    """Copy 4.2 "over budget": the month ends within eight days, or a plan is back before."""
    soon = replace(budget("1", "1"), ends_at=later(days=3))
    waits = wait(OPENAI, at_limit(CODEX), money=soon)

    assert (waits.why, waits.until, waits.budget) == ("budget", later(hours=2), 1)


def test_the_pick_is_named_where_the_words_need_it():
    """Copy 4.2."""
    assert wait(FULL, CODEX, limit_fallback="gone").pick.label == "gone"
    assert wait(FULL, CODEX, limit_fallback="claude").pick.label == "Claude"
    assert wait(FULL, at_limit(CODEX), limit_fallback="codex").pick.label == "Codex"
    assert wait(FULL, limit_fallback="wait").pick is None


def test_the_model_on_this_computer_is_offered_where_it_was_not_allowed_by_itself():
    """Copy 4.2 "the tiny model could"."""
    assert wait(FULL, local=LOCAL).local.label == "Tiny"
    assert wait(FULL, local=LOCAL, needs=Needs(tools=True)).local is None
    assert wait(FULL).local is None


def test_after_switch_back_the_one_that_carried_on_is_offered_again():
    """R23: *Carry on with {B}*."""
    chat = Chat("", waits_until=later(hours=1), last_route=LastRoute("claude", "other", None, folded=True))

    assert wait(FULL, CODEX, plan("other"), chat=chat).could.slug == "other"
    assert wait(FULL, CODEX, at_limit(plan("other")), chat=chat).could.slug == "codex"
    assert wait(FULL, CODEX, chat=replace(chat, last_route=None)).could.slug == "codex"


# Offline, and messages that nobody takes.


def test_a_turn_that_wakes_while_nothing_can_be_reached_waits_on():
    """R16."""
    run = Run(offline=True, waiting=True, waiting_since=earlier(hours=1), wakes=1)
    waits = wait(FULL, CODEX, run=run)

    assert (waits.why, waits.until, waits.wake_at) == ("offline", None, later(minutes=30))
    late = decided(FULL, run=replace(run, waiting_since=earlier(days=8)))
    assert (late.failure.code, late.failure.until) == ("no_room", None)


def test_a_message_that_the_own_account_could_not_take_either_does_not_wait():
    """R11: it is said before anything is sent."""
    decision = decided(at_limit(plan("claude", model=DEAF)), OPENAI, needs=Needs(tools=True))

    assert (decision.kind, decision.failure.code) == ("fail", "cannot_carry_tools")


def test_a_waiting_line_is_kept_as_data():
    """The shape of limit.waiting."""
    data = wait(FULL, OPENAI, local=LOCAL).data()

    assert data == {
        "why": "only_keys",
        "from": "claude",
        "from_label": "Claude",
        "for": "claude",
        "until": "2026-10-09T14:00:00Z",
        "tries_at": None,
        "next": {"slug": "claude", "label": "Claude", "until": "2026-10-09T14:00:00Z"},
        "could": {"slug": "openai", "label": "Openai", "per_reply": "0.02", "billing": "key"},
        "pick": None,
        "budget": None,
        "local": {"label": "Tiny"},
    }


def test_so_are_a_routed_line_and_a_failure():
    """The shapes of limit.routed and of a turn's failure."""
    routed = decided(FULL, OPENAI, at_limit(CODEX), limit_paid=True, money=budget("10", "3.1")).routed.data()
    failure = decided(OPENAI, money=budget("10", "10")).failure.data()

    assert routed == {
        "from": "claude",
        "to": "openai",
        "until": "2026-10-09T14:00:00Z",
        "from_model": "gpt-5.5",
        "to_model": "gpt-5.5",
        "stayed": False,
        "from_label": "Claude",
        "to_label": "Openai",
        "from_model_label": "GPT-5.5",
        "to_model_label": "GPT-5.5",
        "to_billing": "key",
        "window": None,
        "reason": "window",
        "per_reply": "0.02",
        "month_left": "6.9",
        "unpriced": False,
        "passed": [
            {
                "slug": "codex",
                "label": "Codex",
                "code": "at_limit",
                "until": "2026-10-09T14:00:00Z",
                "retry_at": None,
            }
        ],
        "by": "auto",
        "switch_back": True,
        "folded": None,
    }
    assert failure["code"] == "no_room"
    assert (failure["budget"], failure["until"], failure["offers"]) == ("10", "2026-11-01T00:00:00Z", [])


def test_a_blocked_account_that_gave_no_time_is_waited_for_without_one():
    """R8: the 15 minutes are never shown as a reset."""
    waits = wait(plan("claude", windows=(), refusals=(blocked(),)), OPENAI)

    assert (waits.until, waits.next, waits.tries_at) == (None, None, later(minutes=10) + MARGIN)
