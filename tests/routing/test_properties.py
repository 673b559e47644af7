"""What holds for whatever accounts a person has (design.md, Proof)."""

import math
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from routing.choices import grouped
from routing.decision import decide, hindrance
from routing.facts import (
    Budget,
    Chat,
    LastRoute,
    Local,
    Model,
    Needs,
    Preferences,
    Question,
    Refusal,
    Run,
    Tried,
    Way,
    Window,
)
from routing.plan import plan
from routing.ranking import moved, ranked
from tests.routing.world import MONTH_END, NOW, at_limit, no_reset

SLUGS = ("a", "b", "c", "d")
NAMES = (*SLUGS, "gone", "local")
YEAR_9999 = datetime(9999, 12, 31, tzinfo=UTC)
moments = st.one_of(
    st.none(),
    st.integers(-(10**6), 10**7).map(lambda s: NOW + timedelta(seconds=s)),
    st.just(NOW + timedelta(days=2_900_000)),
)
maybe = st.sampled_from([None, True, False])
money = st.one_of(st.sampled_from(["0", "0.01", "1", "10", "1000000000000"]).map(Decimal))
odd_money = st.one_of(st.none(), money, st.sampled_from([Decimal(-3), Decimal("NaN"), Decimal("Infinity")]))
odd_percent = st.one_of(
    st.none(), st.floats(0, 130), st.sampled_from([math.nan, math.inf, -5.0, 1.2, 120, "n/a", 1e307, -0.0, True])
)
models = st.builds(
    Model, st.sampled_from(["m", "opus-4", ""]), st.just(""), maybe, maybe, st.sampled_from([None, 100, 10**6])
)
windows = st.builds(
    Window,
    st.sampled_from(["5-hour", "weekly"]),
    odd_percent,
    moments,
    st.sampled_from([(), ("opus",), ("m",)]),
    st.sampled_from([None, 300, 10_080]),
    moments,
)
refusals = st.builds(
    Refusal,
    st.sampled_from(["blocked", "refused"]),
    st.just(NOW - timedelta(minutes=1)),
    st.sampled_from([NOW - timedelta(seconds=1), NOW + timedelta(minutes=14)]),
    moments,
    st.sampled_from(["", "m"]),
    st.sampled_from(["limit", "money"]),
    st.lists(windows, max_size=1).map(tuple),
)


def ways(slug):
    price = st.one_of(st.none(), money)
    return st.builds(
        Way,
        slug=st.just(slug),
        engine=st.just("engine"),
        label=st.sampled_from(["Codex", "Claude"]),
        billing=st.sampled_from(["plan", "plan", "key"]),
        shares_account=st.sampled_from(["x", "y"]),
        model=models,
        identity=st.sampled_from(["", "1", "2"]),
        whose=st.sampled_from(["", "ada@work.example"]),
        state=st.sampled_from(["ok", "ok", "ok", "signed_out", "no_credit", "wrong_key"]),
        carries_on=st.booleans(),
        windows=st.lists(windows, max_size=2).map(tuple),
        refusals=st.lists(refusals, max_size=1).map(tuple),
        attempt_allowed_at=moments,
        typical=price,
        per_reply=price,
        smallest=price,
        spent=money,
        held=money,
        own_limit=odd_money,
        cap=odd_money,
        cap_left=odd_money,
        cap_resets_at=moments,
    )


accounts = st.sets(st.sampled_from(SLUGS)).flatmap(lambda slugs: st.tuples(*[ways(slug) for slug in sorted(slugs)]))
preferences = st.builds(
    Preferences,
    limit_fallback=st.sampled_from(["auto", "auto", "wait", *NAMES, ""]),
    limit_order=st.lists(st.sampled_from(NAMES)).map(tuple),
    limit_return=st.booleans(),
    limit_paid=st.booleans(),
    offline_fallback=st.booleans(),
)
chats = st.builds(
    Chat,
    account=st.just(""),
    waits_until=moments,
    stayed_from=st.sampled_from(["", "", *NAMES]),
    stayed_consent=st.sampled_from(["", "paid_on", "named"]),
    cap=odd_money,
    spent=money,
    held=money,
    last_route=st.one_of(
        st.none(), st.builds(LastRoute, st.sampled_from(NAMES), st.sampled_from(NAMES), moments, st.booleans())
    ),
    last_answered_by=st.sampled_from(["", *NAMES]),
)
runs = st.builds(
    Run,
    tried=st.lists(
        st.builds(Tried, st.sampled_from(SLUGS), st.sampled_from(["refused", "signed_out", "unable"])), max_size=2
    ).map(tuple),
    once=st.sampled_from(["", "", "", *NAMES]),
    carry_on=st.sampled_from(["", "", *NAMES]),
    unattended=st.booleans(),
    routine=st.booleans(),
    waiting=st.booleans(),
    waiting_since=st.one_of(st.none(), st.sampled_from([0, 500, 700, 10**6]).map(lambda s: NOW - timedelta(seconds=s))),
    wakes=st.integers(-1, 10),
    after_failure=st.booleans(),
    offline=st.sampled_from([False, False, True]),
)
needs = st.builds(
    Needs,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 50, 10**5]),
    st.sampled_from([0, 50, 10**5]),
)


@st.composite
def questions(draw):
    own = draw(st.sampled_from(NAMES))
    return Question(
        engine=own,
        ways=draw(accounts),
        preferences=draw(preferences),
        budget=draw(st.builds(Budget, odd_money, money, money, st.just(MONTH_END))),
        local=draw(st.builds(Local, st.booleans(), models)),
        chat=replace(draw(chats), account=own),
        needs=draw(needs),
        run=draw(runs),
    )


# Many more with CONCH_PROVE (make prove).
EXAMPLES = 300 if os.environ.get("CONCH_PROVE") else 30
# A failure isn't made smaller by default: that takes minutes with facts of so many kinds.
PHASES = tuple(Phase) if os.environ.get("CONCH_PROVE") else (Phase.explicit, Phase.generate)
thorough = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, phases=PHASES, suppress_health_check=list(HealthCheck)
)


@thorough
@given(questions())
def test_odd_facts_never_raise(question):
    """Bad input: percentages, sums and times of every kind, slugs that are gone."""
    decision = decide(question, NOW)
    plan(question, NOW)
    hindrance(question, "a", NOW)

    assert decision.kind in {"answer", "wait", "fail", "capped", "held"}
    assert (decision.answers is None) == (decision.kind in {"wait", "fail", "held"})
    for said in (decision.routed, decision.wait, decision.failure, decision.capped, decision.unstay):
        assert said is None or isinstance(said.data(), dict)


@thorough
@given(questions(), st.sampled_from(SLUGS))
def test_the_order_never_moves_with_room(question, slug):
    """R4."""
    before = [why.id for why in decide(question, NOW).why]
    for moved_room in (at_limit, no_reset, lambda way: replace(way, windows=(), refusals=())):
        ways = tuple(moved_room(way) if way.slug == slug else way for way in question.ways)

        assert [why.id for why in decide(replace(question, ways=ways), NOW).why] == before


@thorough
@given(questions())
def test_the_account_at_its_limit_is_never_offered_by_any_way_into_it(question):
    """R3."""
    decision = decide(question, NOW)
    if not decision.limit.at:
        return
    own = decision.unstay.account if decision.unstay else question.engine
    mine = next(choice for choice in grouped(question.ways) if choice.has(own))
    offers = decision.failure.offers if decision.failure else ()
    could = (decision.wait.could,) if decision.wait and decision.wait.could else ()

    assert decision.answers not in {way.slug for way in mine.ways}
    assert not any(mine.has(offer.slug) for offer in (*offers, *could))
    assert not any(mine.has(why.id) for why in decision.why)


@thorough
@given(questions())
def test_no_key_answers_without_consent(question):
    """R27, R13, R25."""
    decision = decide(question, NOW)
    way = next((way for way in question.ways if way.slug == decision.answers), None)
    if way is None or way.billing != "key":
        assert decision.consent == ""
        return
    run, asked, chat = question.run, question.preferences, question.chat
    stands = {
        "own": way.slug in {question.engine, chat.stayed_from},
        "named": any(asked.limit_fallback == other.slug for other in question.ways),
        "paid_on": asked.limit_paid,
        "once": run.once == way.slug,
    }

    assert stands[decision.consent]
    if run.unattended and decision.consent in {"named", "paid_on"}:
        assert question.budget.amount is not None


@thorough
@given(questions())
def test_nothing_is_spent_past_the_budget(question):
    """R7, R27."""
    decision = decide(question, NOW)
    way = next((way for way in question.ways if way.slug == decision.answers), None)
    budget = question.budget
    if way is not None and way.billing == "key" and budget.amount is not None and decision.kind == "answer":
        allowed = budget.amount if budget.amount.is_finite() and budget.amount > 0 else Decimal(0)

        assert budget.spent + budget.held + (way.smallest or 0) <= allowed


@thorough
@given(questions())
def test_one_choice_an_account(question):
    """R1: every account is a way into exactly one choice; plans of one identity share it."""
    choices = grouped(question.ways)
    slugs = [way.slug for choice in choices for way in choice.ways]

    assert sorted(slugs) == sorted(way.slug for way in question.ways)
    for choice in choices:
        assert len({way.shares_account for way in choice.ways}) == 1
        assert len({way.identity for way in choice.ways} - {""}) <= 1
        assert len(choice.ways) == 1 or all(way.billing == "plan" for way in choice.ways)
    whose = [
        (way.shares_account, way.identity)
        for choice in choices
        for way in choice.ways[:1]
        if way.billing == "plan" and way.identity
    ]
    assert len(whose) == len(set(whose))


@thorough
@given(questions())
def test_who_is_named_is_told_apart_and_whoever_answers_may(question):
    """R2, R10."""
    decision = decide(question, NOW)
    found = plan(question, NOW)
    labels = [choice.label for choice in found.choices]

    assert len(labels) == len(set(labels))
    if decision.routed is not None and decision.routed.by == "auto" and decision.answers != "local":
        answering = next(choice for choice in found.choices if decision.answers in choice.ways)
        assert question.preferences.limit_fallback == "auto"
        assert answering.id in {why.id for why in decision.why if why.skip is None}


@thorough
@given(questions())
def test_waiting_always_ends(question):
    """R16: the route is asked again, and never in the past."""
    decision = decide(question, NOW)
    if decision.wait is not None:
        assert decision.wait.wake_at > NOW
        assert decision.wait.until is None or decision.wait.until > NOW


@thorough
@given(questions())
def test_the_same_question_has_the_same_answer(question):
    """R10: all facts are in the question."""
    assert decide(question, NOW) == decide(question, NOW)


@thorough
@given(accounts, st.lists(st.sampled_from(NAMES), max_size=6), st.data())
def test_a_move_swaps_two_neighbours_on_screen_and_nothing_else(ways, order, data):
    """R4; doors.md: slugs not shown keep their places."""
    choices = ranked(grouped(ways), order)
    shown = [tuple(way.slug for way in choice.ways) for choice in choices[1:]]
    if len(shown) < 2:
        return
    at = data.draw(st.integers(0, len(shown) - 2))
    ids = [slugs[0] for slugs in shown]
    after = moved(order, shown, ids[at], 1)
    ids[at], ids[at + 1] = ids[at + 1], ids[at]

    on_screen = {slug for slugs in shown for slug in slugs}
    assert [slug for slug in after if slug in on_screen] == ids
    assert [slug for slug in after if slug not in on_screen] == [
        slug for slug in dict.fromkeys(order) if slug not in on_screen
    ]
