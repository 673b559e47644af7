"""Coming back, staying, said once, Switch back and carrying on (R20-R23)."""

from dataclasses import replace

import pytest

from routing.facts import Chat, LastRoute, Run
from tests.routing.world import (
    GPT,
    LOCAL,
    NOW,
    OPUS,
    at_limit,
    budget,
    decided,
    earlier,
    key,
    later,
    no_reset,
    plan,
)

CLAUDE, CODEX, OPENAI = plan("claude", model=OPUS), plan("codex"), key("openai")
FULL = at_limit(CLAUDE)
DEAF = replace(GPT, tools=False, images=False)


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


def test_a_route_that_one_press_chose_is_said_anew_once_the_preference_chooses_it():
    """R22, R23: only then it offers Switch back; another press on a message that isn't waiting says nothing twice."""
    pressed = Chat("", last_route=replace(ROUTE, once=True))

    by_preference = decided(FULL, CODEX, chat=pressed)
    assert (by_preference.say, by_preference.routed.switch_back) == (True, True)
    assert not decided(FULL, CODEX, chat=pressed, run=Run(once="codex")).say


def test_a_press_on_a_waiting_line_rewrites_it_also_where_that_route_was_said_before():
    """R23."""
    waited = Run(once="codex", waiting_since=earlier(minutes=1))

    assert decided(FULL, CODEX, chat=Chat("", last_route=ROUTE), run=waited).say


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
