"""Every combination of a small world against the rules written a second time (design.md, Proof).

`make prove` goes through all of them; otherwise every sixty-first is tried.
"""

import os
import time
from decimal import Decimal
from itertools import islice

from routing.decision import decide
from routing.facts import Budget, Chat, Needs, Preferences, Question, Run
from tests.routing import rules
from tests.routing.world import (
    GPT,
    LOCAL,
    NOW,
    at_limit,
    blocked,
    budget,
    earlier,
    key,
    later,
    plan,
    refused,
    window,
)

STEP = 1 if os.environ.get("CONCH_PROVE") else 61
DEAF = Needs(tools=True, tokens=100, newest_tokens=10)
HEARING = {"local": LOCAL.__class__(present=True, model=GPT)}


def the_plan(slug, condition, full):
    known = {
        "low": plan(slug, windows=(window(93.0, resets=later(hours=1)),)),
        "unknown": plan(slug, windows=()),
        "passed": plan(slug, windows=(window(100.0, resets=earlier(minutes=1)),)),
        "full": at_limit(plan(slug), NOW + full),
        "full_no_reset": plan(slug, windows=(window(100.0),)),
        "blocked": plan(slug, refusals=(blocked(NOW + rules.BLOCKED),)),
        "refused": plan(slug, refusals=(refused(),)),
        "signed_out": plan(slug, state="signed_out"),
        "left_out": plan(slug, carries_on=False),
        "deaf": plan(slug, model=GPT.__class__("deaf", tools=False)),
    }
    return known.get(condition) or plan(slug)


def the_key(condition):
    known = {
        "low": key("K", own_limit=Decimal(1), spent=Decimal("0.95")),
        "over_key_limit": key("K", cap=Decimal(1), cap_left=Decimal(0), cap_resets_at=NOW + rules.K_LIMIT),
        "refused": key("K", refusals=(refused(),)),
        "unpriced": key("K", price=None),
        "signed_out": key("K", state="wrong_key"),
        "left_out": key("K", carries_on=False),
    }
    return known.get(condition) or key("K")


OWN = {condition: the_plan("A", condition, rules.A_FULL) for condition in rules.OWN}
PLAN = {condition: the_plan("B", condition, rules.B_FULL) for condition in rules.PLAN}
KEY = {condition: the_key(condition) for condition in rules.KEY}
MONEY = {"over_budget": budget("10", "10"), "held": budget("10", "4", "6"), "unpriced": budget("10")}
ENDS = NOW + rules.MONTH


def question(world):
    own = () if world.a == "gone" else (OWN[world.a],)
    money = MONEY.get(world.k, Budget())
    return Question(
        "A",
        (*own, PLAN[world.b], KEY[world.k]),
        Preferences(
            limit_fallback=world.fallback,
            limit_order=("K",) if world.key_first else (),
            limit_return=world.limit_return,
            limit_paid=world.limit_paid,
            offline_fallback=world.local,
        ),
        Budget(money.amount, money.spent, money.held, ENDS),
        HEARING["local"],
        Chat("A", waits_until=later(hours=1) if world.switched_back else None),
        DEAF,
        Run(unattended=world.unattended),
    )


def seen(decision):
    wait, failure = decision.wait, decision.failure
    return rules.Outcome(
        decision.kind,
        decision.answers,
        decision.consent,
        decision.stay is not None,
        wait.until - NOW if wait is not None and wait.until is not None else None,
        failure.code if failure is not None else "",
    )


def test_every_world_is_decided_as_the_rules_say():
    """R6-R8, R10-R16, R21, R23, R25, R27, R33, R36."""
    begun, tried, wrong = time.perf_counter(), 0, []
    for world in islice(rules.worlds(), NOW.day % STEP, None, STEP):
        tried += 1
        decided, expected = seen(decide(question(world), NOW)), rules.outcome(world)
        if decided != expected:
            wrong.append((world, decided, expected))
    print(f"{tried} of {rules.HOW_MANY} worlds in {time.perf_counter() - begun:.1f} s")  # noqa: T201  what make prove says

    assert wrong[:3] == []
    assert tried >= rules.HOW_MANY // STEP


def test_the_worlds_hold_every_kind_of_outcome():
    """A second set of rules that always said the same would prove nothing."""
    kinds = {rules.outcome(world)[:3] for world in islice(rules.worlds(), 0, None, 97)}

    assert {
        ("answer", "A", ""),
        ("answer", "B", ""),
        ("answer", "K", "named"),
        ("answer", "K", "paid_on"),
        ("answer", "local", ""),
        ("wait", None, ""),
        ("fail", None, ""),
    } <= kinds
