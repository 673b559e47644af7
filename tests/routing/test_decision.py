"""Who answers a turn at a limit (R11-R15, R32, R33)."""

from dataclasses import replace
from decimal import Decimal

import pytest

from routing.facts import Chat, Needs
from tests.routing.world import (
    GPT,
    LOCAL,
    OPUS,
    at_limit,
    blocked,
    budget,
    decided,
    key,
    later,
    plan,
    refused,
    skips,
    weekly,
    window,
)

CLAUDE, CODEX, OPENAI = plan("claude", model=OPUS), plan("codex"), key("openai")
FULL = at_limit(CLAUDE)
DEAF = replace(GPT, tools=False, images=False)


# The chat's own account (R11).


def test_the_chats_own_account_answers_whenever_it_has_room():
    """R11: whoever stands before it in the order."""
    decision = decided(CODEX, CLAUDE, OPENAI, own="claude", limit_order=("codex",), limit_paid=True)

    assert (decision.kind, decision.answers, decision.model.id) == ("answer", "claude", "claude-opus-4-8")
    assert (decision.routed, decision.say, decision.returned, decision.stay) == (None, False, False, None)
    assert (decision.consent, decision.billing) == ("", "plan")


def test_a_low_account_still_answers():
    """R6, WIN-09: low is no limit."""
    assert decided(plan("claude", windows=(window(99.0, resets=later(hours=1)),)), CODEX).answers == "claude"


def test_a_key_of_the_chats_own_is_used_by_its_own_consent():
    """R13, R27."""
    decision = decided(OPENAI, CODEX)

    assert (decision.answers, decision.consent, decision.billing) == ("openai", "own", "key")


def test_what_the_own_account_cannot_take_is_said_and_nothing_is_switched():
    """R11: with who could."""
    own = plan("claude", model=DEAF)
    decision = decided(own, CODEX, OPENAI, needs=Needs(images=True))

    assert (decision.kind, decision.failure.code, decision.failure.model) == ("fail", "cannot_carry_images", "GPT-5.5")
    assert [offer.slug for offer in decision.failure.offers] == ["codex", "openai"]
    assert decided(own, CODEX, needs=Needs(tools=True)).failure.code == "cannot_carry_tools"


def test_a_message_that_alone_does_not_fit_is_too_long():
    """R9, R31: the newest message is never cut."""
    small = plan("claude", model=replace(GPT, context=1_000))

    assert decided(small, needs=Needs(tokens=900, newest_tokens=900)).failure.code == "too_long"


def test_a_chat_that_is_too_long_for_its_own_account_is_shortened_not_switched():
    """R9, R31."""
    small = plan("claude", model=replace(GPT, context=1_000))
    decision = decided(small, CODEX, needs=Needs(tokens=5_000, newest_tokens=10))

    assert (decision.answers, decision.shortened) == ("claude", True)


def test_older_images_become_a_note_for_a_model_that_sees_none():
    """R9."""
    seen = Needs(older_images=True)

    assert decided(plan("claude", model=DEAF), needs=seen).drop_images
    assert not decided(CLAUDE, needs=seen).drop_images
    assert not decided(plan("claude", model=DEAF)).drop_images


# Automatic (R12, R13, R15).


def test_at_a_limit_the_first_in_order_with_room_answers():
    """R12, R22."""
    decision = decided(FULL, at_limit(plan("first")), CODEX, plan("last"))

    assert (decision.answers, decision.model.id, decision.label) == ("codex", "gpt-5.5", "Codex")
    assert (decision.routed.from_, decision.routed.to, decision.routed.until) == ("claude", "codex", later(hours=2))
    assert (decision.routed.by, decision.routed.reason, decision.routed.switch_back) == ("auto", "window", True)
    assert [(one.slug, one.code) for one in decision.routed.passed] == [("first", "at_limit")]
    assert decision.say


def test_the_line_names_the_window_that_binds_where_it_is_not_the_shortest():
    """Copy 0.7."""
    own = plan("claude", windows=(window(10.0, resets=later(hours=1)), weekly(100.0, resets=later(days=3))))

    assert decided(own, CODEX).routed.window == "weekly"
    assert decided(FULL, CODEX).routed.window is None


def test_without_the_switch_automatic_uses_no_key_not_even_a_free_one():
    """R13."""
    decision = decided(FULL, OPENAI, key("free", "0"))

    assert decision.kind == "wait"
    assert skips(decision) == {"free": "paid_off", "openai": "paid_off"}


def test_with_the_switch_a_key_answers_after_the_plans():
    """R13, R27."""
    decision = decided(FULL, OPENAI, limit_paid=True, money=budget("10", "3.1"))

    assert (decision.answers, decision.consent) == ("openai", "paid_on")
    assert (decision.routed.per_reply, decision.routed.month_left) == (Decimal("0.02"), Decimal("6.9"))
    assert decided(FULL, OPENAI, CODEX, limit_paid=True).answers == "codex"


def test_a_key_that_cannot_be_priced_is_passed_over_where_a_budget_or_a_cap_should_bound_it():
    """R33, R18."""
    unpriced = key("mine", price=None)

    assert skips(decided(FULL, unpriced, limit_paid=True, money=budget("10"))) == {"mine": "unpriced"}
    assert skips(decided(FULL, unpriced, limit_paid=True, chat=Chat("", cap=Decimal(2)))) == {"mine": "unpriced"}
    assert decided(FULL, unpriced, limit_paid=True).routed.unpriced


def test_an_account_left_out_of_automatic_is_not_asked_but_may_be_named():
    """R10."""
    quiet = plan("codex", carries_on=False)

    assert skips(decided(FULL, quiet)) == {"codex": "left_out"}
    assert decided(FULL, quiet, limit_fallback="codex").answers == "codex"


def test_the_one_that_carries_on_must_take_the_chat():
    """R9, R12."""
    decision = decided(FULL, plan("deaf", model=DEAF), CODEX, needs=Needs(tools=True))

    assert decision.answers == "codex"
    assert decision.routed.passed == ()


def test_first_who_takes_the_whole_chat_then_who_takes_its_end():
    """R9."""
    small, smaller = (
        plan("small", model=replace(GPT, context=4_000)),
        plan("smaller", model=replace(GPT, context=2_000)),
    )
    long = Needs(tokens=50_000, newest_tokens=500)
    whole, end = decided(FULL, small, CODEX, needs=long), decided(FULL, small, smaller, needs=long)

    assert (whole.answers, whole.shortened) == ("codex", False)
    assert (end.answers, end.shortened) == ("small", True)


def test_the_model_on_this_computer_is_last_and_only_where_it_is_allowed():
    """R15."""
    allowed = decided(FULL, at_limit(CODEX), local=LOCAL, offline_fallback=True)

    assert (allowed.answers, allowed.billing, allowed.routed.to_billing) == ("local", "local", "local")
    assert [one.slug for one in allowed.routed.passed] == ["codex"]
    assert decided(FULL, at_limit(CODEX), local=LOCAL).kind == "wait"
    assert decided(FULL, at_limit(CODEX), offline_fallback=True).kind == "wait"
    assert decided(FULL, CODEX, local=LOCAL, offline_fallback=True).answers == "codex"


def test_the_model_on_this_computer_must_take_the_chat_too():
    """R15, R9."""
    tools = decided(FULL, local=LOCAL, offline_fallback=True, needs=Needs(tools=True))
    long = decided(FULL, local=LOCAL, offline_fallback=True, needs=Needs(tokens=9_000, newest_tokens=10))
    pictures = decided(FULL, local=LOCAL, offline_fallback=True, needs=Needs(older_images=True))

    assert tools.kind == "wait"
    assert (long.answers, long.shortened) == ("local", True)
    assert pictures.drop_images


# A pick and waiting (R14, R15).


def test_a_named_account_answers_while_it_has_room():
    """R14: whatever the order says."""
    decision = decided(FULL, CODEX, plan("other"), limit_fallback="other")

    assert (decision.answers, decision.routed.by) == ("other", "named")


def test_naming_a_key_is_a_choice_to_pay():
    """R13, R27, R33: also one that can't be priced."""
    assert decided(FULL, CODEX, OPENAI, limit_fallback="openai").consent == "named"
    assert decided(FULL, key("mine", price=None), limit_fallback="mine", money=budget("10")).answers == "mine"
    assert decided(FULL, OPENAI, limit_fallback="openai", money=budget("10", "10")).kind == "wait"


def test_any_way_into_a_choice_names_it():
    """R14."""
    twins = (plan("codex", identity="a", shares_account="x"), plan("codex-cli", identity="a", shares_account="x"))

    assert decided(FULL, *twins, limit_fallback="codex-cli").answers == "codex"


def test_where_the_pick_cannot_nobody_else_is_asked_but_this_computer():
    """R14, R15."""
    full = at_limit(plan("other"))
    local = decided(FULL, CODEX, full, limit_fallback="other", local=LOCAL, offline_fallback=True)

    assert decided(FULL, CODEX, full, limit_fallback="other").kind == "wait"
    assert local.answers == "local"
    assert [one.slug for one in local.routed.passed] == ["other"]


@pytest.mark.parametrize("pick", ["claude", "gone", "", "local"])
def test_a_pick_that_is_the_limit_itself_or_gone_answers_nothing(pick):
    """R14; bad input: a preference naming a disconnected account."""
    assert decided(FULL, CODEX, limit_fallback=pick).kind == "wait"


def test_under_wait_nobody_else_is_asked_this_computer_neither():
    """R15, R16."""
    decision = decided(FULL, CODEX, limit_fallback="wait", local=LOCAL, offline_fallback=True)

    assert (decision.kind, decision.wait.why, decision.wait.until) == ("wait", "chosen", later(hours=2))


# Limits of every kind are limits (R6-R8, R32).


@pytest.mark.parametrize(
    ("own", "reason", "until"),
    [
        (FULL, "window", later(hours=2)),
        (plan("claude", refusals=(blocked(later(hours=3)),)), "blocked", later(hours=3)),
        (plan("claude", refusals=(refused(),)), "refused", None),
        (key("mine", own_limit=Decimal(1), spent=Decimal(1)), "key_limit", later(days=22, hours=12)),
    ],
)
def test_each_kind_of_limit_switches_and_says_its_reason(own, reason, until):
    """R11, doors.md limit.reason; R8: the 15 minutes are no reset."""
    decision = decided(own, CODEX)

    assert decision.answers == "codex"
    assert (decision.limit.at, decision.limit.reason, decision.limit.until) == (True, reason, until)
    assert (decision.routed.reason, decision.routed.until) == (reason, until)


def test_a_key_past_the_months_budget_is_at_its_limit():
    """R7, R12: a plan carries it on."""
    decision = decided(OPENAI, CODEX, money=budget("10", "10"))

    assert (decision.answers, decision.limit.reason) == ("codex", "budget")


def test_full_windows_are_a_limit_whatever_limit_paid_says():
    """R32: extra usage is never Conch's doing."""
    over = plan("claude", windows=(window(104.0, resets=later(hours=2)),))

    assert decided(over, CODEX, limit_paid=True).answers == "codex"
    assert decided(over, limit_paid=True).kind == "wait"


def test_an_account_that_is_not_at_its_limit_says_when_its_tightest_window_resets():
    """doors.md limit.until."""
    assert decided(CLAUDE).limit == (False, later(hours=4), None, None, None)
