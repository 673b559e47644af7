"""One choice an account, its name, and whether it can take the chat (R1, R2, R3, R9, R10)."""

from dataclasses import replace
from decimal import Decimal

import pytest

from routing.choices import (
    Carries,
    account_words,
    carries,
    grouped,
    model_that_answers,
    most_input,
    named,
    skips,
    terms,
)
from routing.facts import Model, Needs, Preferences
from routing.room import Room
from tests.routing.world import GPT, at_limit, blocked, decided, key, later, plan, window


def codex(slug, identity="acc-1:user-A", **more):
    return plan(slug, shares_account="openai-codex", identity=identity, **({"label": "Codex"} | more))


def ids(ways):
    return [tuple(way.slug for way in choice.ways) for choice in grouped(ways)]


def test_two_ways_into_one_account_are_one_choice():
    """R1."""
    assert ids([codex("codex"), plan("claude"), codex("codex-cli")]) == [("codex", "codex-cli"), ("claude",)]


def test_two_members_of_one_team_are_two_choices():
    """R1: the identity is the engine's, never the e-mail alone."""
    assert ids([codex("codex"), codex("codex-2", "acc-1:user-B", whose="a@x.example")]) == [("codex",), ("codex-2",)]


def test_the_same_identity_of_another_company_is_another_account():
    """R1."""
    assert ids([plan("claude", identity="ada"), plan("codex", identity="ada")]) == [("claude",), ("codex",)]


def test_a_way_of_unknown_identity_joins_the_only_known_choice():
    """R1."""
    assert ids([codex("codex-cli", ""), codex("codex")]) == [("codex-cli", "codex")]


def test_a_way_of_unknown_identity_stands_alone_where_there_are_several_or_none():
    """R1."""
    assert ids([codex("a"), codex("b", "acc-2:user-A"), codex("c", "")]) == [("a",), ("b",), ("c",)]
    assert ids([codex("a", ""), codex("b", "")]) == [("a",), ("b",)]


def test_every_key_is_an_account_of_its_own():
    """R1."""
    assert ids([key("openai"), key("openai-2", shares_account="openai")]) == [("openai",), ("openai-2",)]


def names(*ways):
    return list(named(grouped(ways)).values())


def test_a_choice_takes_the_shortest_label_of_its_ways():
    """R2."""
    assert names(codex("codex-cli", label="Codex CLI"), codex("codex")) == ["Codex"]


def test_two_of_one_name_add_whose_they_are():
    """R2."""
    two = (codex("a", whose="ada@work.example"), codex("b", "acc-2:user-A", whose="ada@home.example"), plan("claude"))

    assert names(*two) == ["Codex · ada@work.example", "Codex · ada@home.example", "Claude"]


def test_whose_a_choice_is_comes_from_any_of_its_ways():
    """R2."""
    one = (codex("a"), codex("b", label="Codex CLI", whose="ada@work.example"))
    other = codex("c", "acc-2:user-A", whose="ada@home.example")

    assert names(*one, other) == ["Codex · ada@work.example", "Codex · ada@home.example"]


def test_keys_that_no_person_is_known_for_add_the_end_of_the_key():
    """R2."""
    assert names(key("a", label="OpenAI", key_hint="4f2a"), key("b", label="OpenAI", key_hint="99cd")) == [
        "OpenAI · 4f2a",
        "OpenAI · 99cd",
    ]


def test_still_alike_they_add_the_plan_then_the_organisation_then_the_slug():
    """R2."""
    ada = {"whose": "ada@work.example"}
    plans = names(codex("a", **ada, plan="Team"), codex("b", "acc-2:u", **ada, plan="Plus"))
    organisations = names(codex("a", **ada, organization="One"), codex("b", "acc-2:u", **ada, organization="Two"))
    nothing = names(codex("a"), codex("b", "acc-2:u"))

    assert plans == ["Codex · ada@work.example · Team", "Codex · ada@work.example · Plus"]
    assert organisations == ["Codex · ada@work.example · One", "Codex · ada@work.example · Two"]
    assert nothing == ["Codex · a", "Codex · b"]


def test_whose_an_account_is_in_words():
    """R10."""
    (one,), (two,) = grouped([key("a")]), grouped([key("a", key_hint="", whose="ada@work.example")])
    (three,), (four,) = grouped([codex("a", whose="ada@work.example")]), grouped([codex("a", organization="One")])

    words = [account_words(choice) for choice in (one, two, three, four)]

    assert words == ["key ending 4f2a", "ada@work.example", "ada@work.example", "One"]


def test_the_account_at_its_limit_is_offered_by_no_way():
    """R3."""
    mine = (at_limit(codex("codex")), at_limit(codex("codex-cli")))
    decision = decided(*mine, plan("claude", identity=""), own="codex-cli")

    assert [why.id for why in decision.why] == ["claude"]
    assert decision.answers == "claude"


def test_the_other_models_of_an_account_with_one_model_at_its_limit_are_not_offered():
    """R3."""
    opus = Model("claude-opus-4-8")
    mine = plan("claude", model=opus, windows=(window(100.0, name="Opus weekly", covers=("opus",)),))
    twin = replace(mine, slug="claude-2", model=Model("claude-sonnet-5"))
    decision = decided(mine, twin)

    assert decision.kind == "wait"
    assert decision.why == ()


MODELS = [Model("first"), Model("second")]


@pytest.mark.parametrize(
    ("last", "default", "answers"),
    [("second", "first", "second"), ("", "second", "second"), ("", "", "first"), ("gone", "first", "gone")],
)
def test_an_account_answers_with_the_model_it_would_answer_with_anyway(last, default, answers):
    """R12."""
    assert model_that_answers(MODELS, last=last, default=default).id == answers


def test_an_account_of_which_no_model_is_known_has_none():
    """R12, FBK-05: an empty model is never made up."""
    assert model_that_answers([], last="", default="") is None


def test_room_is_kept_for_the_answer():
    """R9."""
    assert most_input(Model("m", context=200_000)) == 195_904
    assert most_input(Model("m", context=2_000)) == 1_500
    assert most_input(Model("m", context=2_000, most_input=1_900)) == 1_900
    assert most_input(Model("m")) is None


@pytest.mark.parametrize(
    ("model", "needs", "whole", "codes"),
    [
        (Model("m"), Needs(tools=True, images=True, tokens=10**9), True, ()),
        (Model("m", tools=False), Needs(tools=True), True, ("cannot_carry_tools",)),
        (Model("m", images=False), Needs(images=True), True, ("cannot_carry_images",)),
        (Model("m", images=False), Needs(older_images=True), True, ()),
        (Model("m", tools=False, images=False), Needs(), True, ()),
        (Model("m", tools=True, images=True), Needs(tools=True, images=True), True, ()),
        (Model("m", context=1_000), Needs(tokens=750), True, ()),
        (Model("m", context=1_000), Needs(tokens=751, newest_tokens=750), False, ()),
        (Model("m", context=1_000), Needs(tokens=751, newest_tokens=751), False, ("too_long",)),
        (
            Model("m", tools=False, images=False, context=1_000),
            Needs(tools=True, images=True, tokens=900, newest_tokens=800),
            False,
            ("cannot_carry_tools", "cannot_carry_images", "too_long"),
        ),
    ],
)
def test_a_model_carries_a_chat_that_it_can_take(model, needs, whole, codes):
    """R9: what isn't known of a model is taken as able."""
    assert carries(model, needs) == Carries(whole, codes)


OPEN = terms(Preferences(limit_paid=True), budget_set=False, cap_set=False, away=False)
STRICT = terms(Preferences(), budget_set=False, cap_set=False, away=True)
BOUNDED = terms(Preferences(limit_paid=True), budget_set=True, cap_set=False, away=True)
CAPPED = terms(Preferences(limit_paid=True), budget_set=False, cap_set=True, away=False)
ALL = Carries(True, ("cannot_carry_tools", "cannot_carry_images", "too_long"))
NOTHING = Carries(True, ())


@pytest.mark.parametrize(
    ("way", "room", "carried", "allowed", "codes"),
    [
        (plan("a"), Room("ok"), NOTHING, STRICT, ()),
        (plan("a", carries_on=False), Room("ok"), NOTHING, OPEN, ("left_out",)),
        (plan("a", state="signed_out"), Room("ok"), NOTHING, OPEN, ("signed_out",)),
        (plan("a", state="wrong_key"), Room("ok"), NOTHING, OPEN, ("signed_out",)),
        (plan("a", state="disabled"), Room("ok"), NOTHING, OPEN, ("signed_out",)),
        (plan("a", state="unreachable"), Room("ok"), NOTHING, OPEN, ()),
        (key("a"), Room("ok"), NOTHING, OPEN, ()),
        (key("a"), Room("ok"), NOTHING, STRICT, ("needs_budget", "paid_off")),
        (key("a"), Room("ok"), NOTHING, BOUNDED, ()),
        (key("a", price=None), Room("ok"), NOTHING, OPEN, ()),
        (key("a", price=None), Room("ok"), NOTHING, BOUNDED, ("unpriced",)),
        (key("a", price=None), Room("ok"), NOTHING, CAPPED, ("unpriced",)),
        (
            key("a", price=None, carries_on=False, state="wrong_key"),
            Room("none", codes=("blocked", "at_limit", "refused", "over_key_limit", "over_budget")),
            ALL,
            terms(Preferences(), budget_set=False, cap_set=True, away=True),
            (
                "left_out",
                "signed_out",
                "blocked",
                "at_limit",
                "refused",
                "over_key_limit",
                "over_budget",
                "unpriced",
                "needs_budget",
                "cannot_carry_tools",
                "cannot_carry_images",
                "too_long",
                "paid_off",
            ),
        ),
    ],
)
def test_every_reason_to_pass_a_way_over_in_its_order(way, room, carried, allowed, codes):
    """R10, R13, R18, R25, R33."""
    assert skips(way, room, carried, allowed, priced=way.typical is not None) == codes


def test_the_first_way_that_can_answers_for_its_choice():
    """R9, R10."""
    deaf = replace(GPT, tools=False)
    ways = (codex("codex", model=deaf), codex("codex-cli", label="Codex CLI"))
    decision = decided(at_limit(plan("claude")), *ways, needs=Needs(tools=True))

    assert (decision.answers, decision.label) == ("codex-cli", "Codex")


def test_a_way_that_takes_the_whole_chat_goes_before_one_that_takes_its_end():
    """R9."""
    short = replace(GPT, context=1_000)
    ways = (codex("codex", model=short), codex("codex-cli"))
    decision = decided(at_limit(plan("claude")), *ways, needs=Needs(tokens=5_000, newest_tokens=10))

    assert (decision.answers, decision.shortened) == ("codex-cli", False)


def test_a_choice_whose_ways_all_cannot_says_what_the_nearest_lacks():
    """R10."""
    ways = (codex("codex", state="signed_out"), codex("codex-cli", model=replace(GPT, tools=False)))
    decision = decided(at_limit(plan("claude")), *ways, needs=Needs(tools=True))

    assert decision.why[0].skip.code == "cannot_carry_tools"


def test_a_refusal_of_one_way_counts_for_its_twins():
    """R8."""
    ways = (codex("codex", refusals=(blocked(later(hours=2)),)), codex("codex-cli"))
    decision = decided(at_limit(plan("claude")), *ways)

    assert decision.kind == "wait"
    assert decision.why[0].skip.code == "blocked"


def test_twins_count_each_window_as_last_read_through_either():
    """R1, R29."""
    full = window(100.0, resets=later(hours=2), read_at=later(minutes=-30))
    ways = (codex("codex", windows=(full,)), codex("codex-cli", windows=(window(3.0, resets=later(hours=5)),)))
    decision = decided(at_limit(plan("claude")), *ways)

    assert decision.answers == "codex"


def test_a_key_has_no_price_where_none_is_known():
    """R5: unknown is none, never zero."""
    assert key("mine", price=None).per_reply is None
    assert key("free", price="0").per_reply == Decimal(0)
