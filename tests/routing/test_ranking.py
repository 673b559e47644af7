"""The order in which choices are asked (R4, R5), and moves in it (copy.md 2.1, doors.md)."""

import pytest

from routing.choices import grouped
from routing.ranking import moved, ranked
from tests.routing.world import key, plan


def order(*ways, limit_order=()):
    return [choice.id for choice in ranked(grouped(ways), limit_order)]


CODEX, CLAUDE = plan("codex"), plan("claude")
DEAR, CHEAP, FREE, UNPRICED = key("dear", "0.40"), key("cheap", "0.01"), key("free", "0"), key("mine", price=None)


def test_plans_come_before_keys_and_keys_by_the_price_of_a_typical_reply():
    """R4: one that can't be priced is last; a price of zero is a price (R5)."""
    assert order(UNPRICED, DEAR, CODEX, CHEAP, CLAUDE, FREE) == ["codex", "claude", "free", "cheap", "dear", "mine"]


def test_a_key_that_costs_nothing_still_comes_after_the_plans():
    """R4."""
    assert order(FREE, CODEX) == ["codex", "free"]


def test_ties_are_by_when_they_were_connected():
    """R4."""
    assert order(key("b", "0.01"), key("a", "0.01")) == ["b", "a"]
    assert order(key("b", None), key("a", None)) == ["b", "a"]


def test_the_persons_order_goes_first_also_for_a_key():
    """R4."""
    assert order(CODEX, CLAUDE, DEAR, CHEAP, limit_order=("dear", "claude")) == ["dear", "claude", "codex", "cheap"]


def test_a_slug_that_is_gone_or_named_twice_changes_nothing():
    """R4."""
    assert order(CODEX, CLAUDE, limit_order=("gone", "claude", "gone", "claude")) == ["claude", "codex"]


def test_a_choice_counts_at_its_best_placed_way():
    """R4."""
    twins = plan("codex-cli", shares_account="codex", identity=CODEX.identity)

    assert order(CODEX, CLAUDE, twins, limit_order=("codex-cli", "claude", "codex")) == ["codex", "claude"]


SHOWN = (("codex", "codex-cli"), ("claude",), ("openai",))


@pytest.mark.parametrize(
    ("before", "slug", "steps", "after"),
    [
        ((), "claude", -1, ("claude", "codex", "openai")),
        ((), "claude", 1, ("codex", "openai", "claude")),
        (("codex", "claude"), "openai", -1, ("codex", "openai", "claude")),
        (("gone", "codex", "claude"), "claude", -1, ("gone", "claude", "codex", "openai")),
        (("codex", "own", "claude"), "codex", 1, ("claude", "own", "codex", "openai")),
        (("codex-cli", "claude", "codex"), "codex", 1, ("claude", "codex", "openai")),
        ((), "codex-cli", 1, ("claude", "codex", "openai")),
        ((), "codex", -1, None),
        ((), "openai", 1, None),
        ((), "gone", 1, None),
        (("codex", "claude", "openai", "codex-cli"), "openai", -1, ("codex", "openai", "claude")),
    ],
)
def test_a_move_acts_on_what_is_shown_and_leaves_the_others_in_their_places(before, slug, steps, after):
    """R4; doors.md: slugs not shown keep their places; at the ends nothing moves."""
    assert moved(before, SHOWN, slug, steps) == after
