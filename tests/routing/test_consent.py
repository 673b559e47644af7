"""What needs a yes, and accounts that are gone: R25, R27, R36; chats of this computer."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from routing.decision import decide, hindrance
from routing.facts import Chat, Needs, Run, Tried
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
    plan,
    question,
    skips,
)

CLAUDE, CODEX, OPENAI = plan("claude", model=OPUS), plan("codex"), key("openai")
FULL = at_limit(CLAUDE)
DEAF = replace(GPT, tools=False, images=False)


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
