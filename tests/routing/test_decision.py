"""Who answers a turn (R11-R15, R17-R25, R27, R32, R33, R36)."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from routing.decision import decide, hindrance
from routing.facts import Chat, LastRoute, Needs, Run, Tried
from tests.routing.world import (
    GPT,
    LOCAL,
    NOW,
    OPUS,
    at_limit,
    blocked,
    budget,
    decided,
    earlier,
    key,
    later,
    no_reset,
    plan,
    question,
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


# A refusal during the turn (R17).


def test_a_refused_account_is_tried_once_a_run_with_its_twins():
    """R17, R8: also where its facts show room again."""
    twin = replace(CODEX, slug="codex-cli")
    decision = decided(FULL, CODEX, twin, plan("other"), run=Run(tried=(Tried("codex", "refused"),)))

    assert decision.answers == "other"
    assert [(one.slug, one.code) for one in decision.routed.passed] == [("codex", "refused")]


def test_one_that_was_unable_is_passed_over_for_this_run_its_twin_is_not():
    """R17."""
    twin = replace(CODEX, slug="codex-cli", label="Codex CLI")
    run = Run(tried=(Tried("codex", "model_gone"),))

    assert decided(FULL, CODEX, twin, run=run).answers == "codex-cli"
    other = decided(FULL, CODEX, plan("other"), run=run)
    assert other.answers == "other"
    assert [(one.slug, one.code) for one in other.routed.passed] == [("codex", "model_gone")]


def test_the_own_account_refused_during_the_turn_is_at_a_limit():
    """R17."""
    decision = decided(CLAUDE, CODEX, run=Run(tried=(Tried("claude", "refused"),)))

    assert (decision.answers, decision.limit.reason) == ("codex", "refused")


def test_the_own_account_failing_for_another_reason_starts_no_switch():
    """R17, FBK-17."""
    decision = decided(CLAUDE, CODEX, run=Run(tried=(Tried("claude", "model_gone"),)))

    assert (decision.kind, decision.failure.code) == ("fail", "model_gone")
    assert [offer.slug for offer in decision.failure.offers] == ["codex"]


def test_the_default_model_stands_by_where_another_would_answer():
    """R17, FBK-05: one request more of the same try where the stored model is gone."""
    own = plan("codex", model=replace(GPT, id="old", label="Old"), default_model=GPT)

    assert decided(FULL, own).default_model == ("gpt-5.5", "GPT-5.5")
    assert decided(FULL, replace(own, model=GPT)).default_model is None


# The chat's own cap (R18).


def test_what_would_pass_the_chats_cap_is_held():
    """R18: what was spent, running holds and the smallest hold."""
    chat = Chat("", cap=Decimal(2), spent=Decimal("1.5"), held=Decimal("0.495"))
    decision = decided(OPENAI, CODEX, chat=chat)

    assert (decision.kind, decision.answers) == ("capped", "openai")
    assert decision.capped.data() == {"spent": "1.5", "cap": "2", "raise_to": "4"}
    assert decided(OPENAI, chat=replace(chat, held=Decimal("0.49"))).kind == "answer"


def test_the_cap_moves_no_route_and_does_not_touch_plans():
    """R18."""
    chat = Chat("", cap=Decimal(0))

    assert decided(FULL, OPENAI, plan("other"), chat=chat, limit_order=("openai",), limit_paid=True).kind == "capped"
    assert decided(CLAUDE, chat=chat).kind == "answer"


def test_a_cap_is_raised_to_what_is_enough():
    """R18."""
    dear = key("openai", "10")

    assert decided(dear, chat=Chat("", cap=Decimal(0))).capped.raise_to == 8
    assert decided(dear, chat=Chat("", cap=Decimal("NaN"))).capped.cap == 0


def test_a_cap_cannot_bound_a_key_that_cannot_be_priced():
    """R18: used by name or as the chat's own only."""
    unpriced, chat = key("mine", price=None), Chat("", cap=Decimal(1), spent=Decimal(5))

    assert decided(unpriced, chat=chat).kind == "answer"
    assert decided(FULL, unpriced, chat=chat, limit_fallback="mine").kind == "answer"


def test_a_capped_chat_does_not_move():
    """R18, R21."""
    decision = decided(FULL, OPENAI, chat=Chat("", cap=Decimal(0)), limit_paid=True, limit_return=False)

    assert (decision.kind, decision.stay) == ("capped", None)


# Offline (R19).


OFFLINE = Run(offline=True)


def test_offline_the_model_on_this_computer_answers_where_it_may():
    """R19: no account is marked, nobody who costs money is asked."""
    decision = decided(CLAUDE, CODEX, OPENAI, run=OFFLINE, local=LOCAL, offline_fallback=True, limit_paid=True)

    assert (decision.answers, decision.offline, decision.routed) == ("local", True, None)


def test_offline_and_nobody_here_the_turn_fails_saying_so():
    """R19."""
    decision = decided(CLAUDE, CODEX, run=OFFLINE, local=LOCAL)

    assert (decision.kind, decision.failure.code) == ("fail", "offline")
    assert [offer.slug for offer in decision.failure.offers] == ["local"]
    assert decided(CLAUDE, run=OFFLINE).failure.offers == ()


def test_offline_a_routine_is_answered_by_nobody():
    """R25: it carries on nowhere, nor to the model on this computer."""
    routine = replace(OFFLINE, routine=True)

    assert decided(CLAUDE, run=routine, local=LOCAL, offline_fallback=True).failure.code == "offline"


def test_a_chat_of_this_computer_is_never_offline():
    """R19."""
    decision = decided(CLAUDE, own="local", run=OFFLINE, local=LOCAL)

    assert (decision.answers, decision.offline) == ("local", False)


# Coming back (R20) and staying (R21).


ROUTE = LastRoute("claude", "codex", later(hours=2))


def test_the_own_account_comes_back_by_itself_and_that_is_said():
    """R20."""
    assert decided(CLAUDE, CODEX, chat=Chat("", last_route=ROUTE, last_answered_by="codex")).returned


@pytest.mark.parametrize(
    "chat",
    [
        Chat("", last_route=ROUTE, last_answered_by="claude"),
        Chat("", last_route=ROUTE, last_answered_by=""),
        Chat("", last_answered_by="codex"),
        Chat("", last_route=LastRoute("other", "codex"), last_answered_by="codex"),
    ],
)
def test_nothing_comes_back_that_was_not_away(chat):
    """R20."""
    assert not decided(CLAUDE, CODEX, chat=chat).returned


def test_with_return_off_the_chat_becomes_who_carried_it_on():
    """R21."""
    decision = decided(FULL, CODEX, limit_return=False)

    assert (decision.routed.stayed, decision.stay) == (True, ("codex", "gpt-5.5", ""))
    assert decided(FULL, OPENAI, limit_return=False, limit_paid=True).stay.consent == "paid_on"
    assert decided(FULL, OPENAI, limit_return=False, limit_fallback="openai").stay.consent == "named"


def test_one_used_by_a_yes_for_one_message_and_this_computer_never_stay():
    """R21."""
    once = decided(FULL, CODEX, limit_return=False, run=Run(once="codex"))
    local = decided(FULL, limit_return=False, local=LOCAL, offline_fallback=True)

    assert (once.stay, once.routed.stayed) == (None, False)
    assert (local.stay, local.routed.stayed) == (None, False)


def stayed(consent):
    return Chat("", stayed_from="claude", stayed_consent=consent)


def test_a_chat_that_stayed_with_a_key_uses_it_while_the_yes_stands():
    """R21, R27."""
    paid = decided(OPENAI, CLAUDE, chat=stayed("paid_on"), limit_paid=True)
    named = decided(OPENAI, CLAUDE, chat=stayed("named"), limit_fallback="openai")

    assert (paid.answers, paid.consent, paid.unstay) == ("openai", "paid_on", None)
    assert (named.answers, named.consent, named.unstay) == ("openai", "named", None)


@pytest.mark.parametrize(
    ("consent", "preferences"),
    [("paid_on", {}), ("named", {"limit_paid": True}), ("named", {"limit_fallback": "codex"})],
)
def test_once_the_yes_is_gone_the_chat_is_its_first_accounts_again(consent, preferences):
    """R21."""
    decision = decided(OPENAI, CLAUDE, chat=stayed(consent), **preferences)

    assert decision.answers == "claude"
    assert decision.unstay.data() == {
        "key": "openai",
        "key_label": "Openai",
        "account": "claude",
        "label": "Claude",
    }


def test_a_stay_that_ends_with_its_first_account_gone_asks_the_person():
    """R21, R36."""
    decision = decided(OPENAI, CODEX, chat=stayed("paid_on"))

    assert (decision.failure.code, decision.unstay.label) == ("no_account", "claude")


def test_a_chat_that_stayed_with_a_plan_needs_no_yes():
    """R21."""
    assert decided(CODEX, CLAUDE, chat=stayed("")).answers == "codex"
    assert decided(CODEX, chat=stayed("paid_on"), own="openai").failure.code == "no_account"


def test_a_key_that_the_chat_only_stayed_with_needs_a_budget_while_nobody_looks():
    """R25: it isn't the chat's own by choice."""
    away = {"chat": stayed("paid_on"), "limit_paid": True, "run": Run(unattended=True)}
    decision = decided(OPENAI, CLAUDE, **away)

    assert (decision.kind, decision.wait.why, decision.wait.could.slug) == ("wait", "needs_budget", "openai")
    assert decided(OPENAI, CLAUDE, **away, money=budget("10")).answers == "openai"


# Said once (R22).


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (None, True),
        (ROUTE, False),
        (replace(ROUTE, until=later(hours=2, seconds=59)), False),
        (replace(ROUTE, until=later(hours=2, seconds=61)), True),
        (replace(ROUTE, until=None), True),
        (replace(ROUTE, to="other"), True),
        (replace(ROUTE, from_="other"), True),
        (replace(ROUTE, folded=True), True),
    ],
)
def test_the_same_route_is_said_once(last, said):
    """R22: the same from, to and until; two resets within a minute are the same."""
    assert decided(FULL, CODEX, chat=Chat("", last_route=last)).say is said


def test_without_a_reset_the_same_route_is_said_once_too():
    """R22."""
    last = Chat("", last_route=replace(ROUTE, until=None))

    assert not decided(no_reset(CLAUDE), CODEX, chat=last).say


def test_a_retry_after_a_failure_says_it_again():
    """R22: it replaces the failure."""
    assert decided(FULL, CODEX, chat=Chat("", last_route=ROUTE), run=Run(after_failure=True)).say


# Switch back and carry on (R23).


BACK = Chat("", waits_until=later(hours=2), last_route=replace(ROUTE, folded=True))


def test_after_switch_back_this_chat_waits_until_then():
    """R23."""
    decision = decided(FULL, CODEX, chat=BACK)

    assert (decision.kind, decision.wait.why, decision.wait.could.slug) == ("wait", "switched_back", "codex")
    assert decided(FULL, CODEX, chat=replace(BACK, waits_until=NOW)).answers == "codex"
    assert decided(FULL, CODEX, chat=BACK, limit_fallback="codex").kind == "wait"
    assert decided(CLAUDE, CODEX, chat=BACK).answers == "claude"


def test_carry_on_asks_that_one_first():
    """R23: a plan, or a key that may answer by R13."""
    run = Run(carry_on="other")
    decision = decided(FULL, CODEX, plan("other"), run=run)

    assert (decision.answers, decision.routed.by, decision.routed.switch_back) == ("other", "carry_on", True)
    assert decided(FULL, CODEX, at_limit(plan("other")), run=run).answers == "codex"
    assert decided(FULL, CODEX, run=run).answers == "codex"
    assert decided(FULL, plan("other"), run=run, limit_fallback="wait").answers == "other"


def test_carry_on_with_a_key_needs_a_yes():
    """R23, R13, R27."""
    run = Run(carry_on="openai")

    assert decided(FULL, CODEX, OPENAI, run=run).answers == "codex"
    assert decided(FULL, CODEX, OPENAI, run=run, limit_paid=True).consent == "paid_on"
    assert decided(FULL, CODEX, OPENAI, run=run, limit_fallback="openai").consent == "named"


# Nobody is looking (R25).


def test_a_background_task_uses_a_key_only_with_a_months_budget():
    """R25, CON-06."""
    away = Run(unattended=True)

    assert skips(decided(FULL, OPENAI, run=away, limit_paid=True)) == {"openai": "needs_budget"}
    assert decided(FULL, OPENAI, run=away, limit_fallback="openai").wait.why == "needs_budget"
    assert decided(FULL, OPENAI, run=away, limit_paid=True, money=budget("10")).answers == "openai"
    assert decided(OPENAI, run=away).answers == "openai"
    assert decided(FULL, OPENAI, CODEX, run=away, limit_paid=True).answers == "codex"


@pytest.mark.parametrize(
    ("run", "answers"),
    [
        (Run(waiting=True, waiting_since=earlier(minutes=11)), None),
        (Run(waiting=True, waiting_since=earlier(minutes=10)), "openai"),
        (Run(waiting=False, waiting_since=earlier(minutes=11)), "openai"),
        (Run(waiting=True), "openai"),
        (Run(waiting=True, waiting_since=earlier(minutes=11), once="openai"), "openai"),
    ],
)
def test_a_turn_that_waited_over_ten_minutes_and_goes_out_by_itself_is_unattended(run, answers):
    """R25: a yes for that message stands whenever it was said."""
    assert decided(FULL, OPENAI, run=run, limit_paid=True).answers == answers


def test_a_routine_is_held_at_a_limit_and_carries_on_nowhere():
    """R25: nor to the model on this computer."""
    routine = {"run": Run(routine=True), "local": LOCAL, "offline_fallback": True}
    decision = decided(FULL, CODEX, **routine)

    assert (decision.kind, decision.wait.until, decision.wait.for_) == ("held", later(hours=2), "claude")
    assert decided(CLAUDE, **routine).answers == "claude"


# Answer with (R27, doors.md).


def test_answer_with_asks_that_very_account_by_a_yes_for_this_message():
    """R27; R23: such a line offers no Switch back."""
    decision = decided(FULL, CODEX, OPENAI, run=Run(once="openai"))

    assert (decision.answers, decision.consent) == ("openai", "once")
    assert (decision.routed.by, decision.routed.switch_back, decision.routed.passed) == ("once", False, ())


def test_answer_with_for_an_account_that_is_not_at_its_limit_says_no_limit():
    """R36: it is signed out, not at its limit."""
    decision = decided(plan("claude", state="signed_out"), CODEX, run=Run(once="codex"))

    assert (decision.answers, decision.routed) == ("codex", None)


def test_answer_with_the_chats_own_account_or_this_computer():
    """doors.md answer-with."""
    own = decided(OPENAI, CODEX, run=Run(once="openai"))
    local = decided(FULL, CODEX, local=LOCAL, run=Run(once="local"))
    plain = decided(CLAUDE, CODEX, local=LOCAL, run=Run(once="local"))

    assert (own.answers, own.consent) == ("openai", "own")
    assert (local.answers, local.routed.by, local.routed.switch_back) == ("local", "once", False)
    assert (plain.answers, plain.routed) == ("local", None)


def test_where_the_named_one_cannot_the_route_is_asked_as_usual():
    """R17."""
    assert decided(FULL, CODEX, at_limit(plan("other")), run=Run(once="other")).answers == "codex"
    assert decided(FULL, CODEX, run=Run(once="gone")).answers == "codex"
    assert decided(FULL, CODEX, run=Run(once="local")).answers == "codex"
    tried = Run(once="openai", tried=(Tried("openai", "refused"),))
    assert decided(FULL, CODEX, OPENAI, run=tried).answers == "codex"


@pytest.mark.parametrize(
    ("slug", "asked", "code"),
    [
        ("codex", {}, None),
        ("openai", {}, None),
        ("openai", {"run": Run(unattended=True)}, None),
        ("claude", {}, "at_limit"),
        ("twin", {}, "at_limit"),
        ("gone", {}, "no_account"),
        ("local", {}, "no_model"),
        ("local", {"local": LOCAL}, None),
        ("local", {"local": LOCAL, "needs": Needs(tools=True)}, "cannot_carry_tools"),
        ("codex", {"needs": Needs(tokens=10**6, newest_tokens=10**6)}, "too_long"),
        ("openai", {"money": budget("1", "1")}, "over_budget"),
        ("openai", {"chat": Chat("", cap=Decimal(0))}, "capped"),
        ("mine", {"chat": Chat("", cap=Decimal(0)), "money": budget("1")}, None),
        ("out", {}, "signed_out"),
    ],
)
def test_why_an_account_cannot_answer_now(slug, asked, code):
    """doors.md: answer-with never passes a limit, the budget or the cap; 409 with what would help."""
    ways = (
        FULL,
        replace(FULL, slug="twin"),
        plan("codex", carries_on=False),
        OPENAI,
        key("mine", price=None),
        plan("out", state="signed_out"),
    )
    skip = hindrance(question(*ways, **asked), slug, NOW)

    assert (skip.code if skip else None) == code


# Gone or signed out (R36).


def test_an_account_that_is_signed_out_fails_and_offers_who_could_answer():
    """R36: nothing is routed past it by itself, also where it is at its limit."""
    for own in (plan("claude", state="signed_out"), replace(FULL, state="wrong_key")):
        decision = decided(own, CODEX, OPENAI, at_limit(plan("full")), limit_paid=True)

        assert (decision.kind, decision.failure.code) == ("fail", "signed_out")
        assert [offer.slug for offer in decision.failure.offers] == ["codex", "openai"]


def test_another_way_into_the_same_account_is_offered_first():
    """R36."""
    twin = plan("claude-2", shares_account="claude", identity=CLAUDE.identity, carries_on=False)
    decision = decided(plan("claude", state="signed_out"), CODEX, twin)

    assert [offer.slug for offer in decision.failure.offers] == ["claude-2", "codex"]


def test_an_account_that_is_gone_is_no_account():
    """R36."""
    decision = decided(CODEX, own="claude", chat=Chat("", account_label="Claude Code"))

    assert (decision.failure.code, decision.failure.label) == ("no_account", "Claude Code")
    assert decided(CODEX, own="claude").failure.label == "claude"


WAITED = Run(waiting=True, waiting_since=earlier(minutes=5))
OUT = plan("claude", state="signed_out")


def test_a_turn_that_waits_for_a_signed_out_account_waits_on_while_another_could_answer_later():
    """R36."""
    decision = decided(OUT, at_limit(CODEX), run=WAITED)

    assert (decision.kind, decision.wait.why, decision.wait.for_) == ("wait", "signed_out", "codex")
    assert decided(OUT, CODEX, run=WAITED).answers == "codex"
    assert decided(OUT, CODEX, run=WAITED).routed.from_ == "claude"


def test_and_fails_where_nobody_could():
    """R36."""
    for asked in ({}, {"limit_fallback": "wait"}, {"limit_fallback": "gone"}):
        assert decided(OUT, OPENAI, run=WAITED, **asked).failure.code == "signed_out"
    assert decided(OPENAI, own="claude", run=WAITED).failure.code == "no_account"
    assert decided(OUT, CODEX, run=replace(WAITED, routine=True)).failure.code == "signed_out"
    assert decided(OUT, at_limit(CODEX, later(days=30)), run=WAITED).failure.code == "signed_out"


# The model on this computer as the chat's account.


def test_a_chat_of_this_computer_answers_here():
    """Words: of no choice, in no order."""
    decision = decided(CODEX, own="local", local=LOCAL)

    assert (decision.answers, decision.label, decision.routed) == ("local", "Tiny", None)
    assert skips(decision) == {"codex": None}


def test_where_there_is_no_model_here_that_is_said():
    """R36: the choice is the person's."""
    assert decided(CODEX, own="local").failure.code == "no_model"
    assert decided(CODEX, own="local", local=LOCAL, needs=Needs(images=True)).failure.code == "cannot_carry_images"
    assert decided(CODEX, own="local").failure.offers[0].slug == "codex"


def test_answer_with_another_in_a_chat_of_this_computer():
    """doors.md answer-with."""
    decision = decided(OPENAI, own="local", local=LOCAL, run=Run(once="openai"))

    assert (decision.answers, decision.consent, decision.routed) == ("openai", "once", None)


def test_no_account_at_all_leaves_nobody_to_ask():
    """R36."""
    assert decide(question(own="claude"), NOW).failure.code == "no_account"


def test_a_decision_says_why_for_every_choice_in_order():
    """R10: why, per choice, as data."""
    decision = decided(
        CLAUDE, at_limit(plan("full")), CODEX, OPENAI, limit_order=("openai",), chat=Chat("", waits_until=NOW)
    )

    assert [(why.id, why.skip.code if why.skip else None) for why in decision.why] == [
        ("openai", "paid_off"),
        ("full", "at_limit"),
        ("codex", None),
    ]
    assert decision.why[1].skip.until == NOW + timedelta(hours=2)
