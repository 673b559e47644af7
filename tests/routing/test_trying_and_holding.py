"""A refusal during the turn, the chat's own cap, and no network (R17, R18, R19)."""

from dataclasses import replace
from decimal import Decimal

from routing.facts import Chat, Run, Tried
from tests.routing.world import (
    GPT,
    LOCAL,
    OPUS,
    at_limit,
    decided,
    key,
    plan,
)

CLAUDE, CODEX, OPENAI = plan("claude", model=OPUS), plan("codex"), key("openai")
FULL = at_limit(CLAUDE)
DEAF = replace(GPT, tools=False, images=False)


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
