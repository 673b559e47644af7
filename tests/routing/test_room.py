"""What an account has left (R6, R7, R8, R29, R32, R33)."""

import math
from dataclasses import replace
from decimal import Decimal

import pytest

from routing.facts import Budget, Window
from routing.room import amount, cleared, covers, newest, percent, room_of
from tests.routing.world import (
    MONTH_END,
    NOW,
    OPUS,
    blocked,
    budget,
    earlier,
    key,
    later,
    plan,
    refused,
    weekly,
    window,
)


def room(way, money=None, smallest=None):
    money = money or Budget(ends_at=MONTH_END)
    return room_of(way, way.windows, way.refusals, money, now=NOW, smallest=smallest or way.smallest)


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (72, 72.0),
        (72.5, 72.5),
        (0.0, 0.0),
        (0, 0.0),
        (1.2, 1.2),
        (120, 120.0),
        (Decimal("99.9"), 99.9),
        (None, None),
        ("n/a", None),
        ("72", None),
        (-5, None),
        (-0.0, None),
        (True, None),
        (math.nan, None),
        (math.inf, None),
        (1e307, None),
        ([], None),
    ],
)
def test_a_percentage_that_is_missing_or_no_number_says_nothing(said, taken):
    """R6: it is never 0 or 100."""
    assert percent(said) == taken


@pytest.mark.parametrize(
    ("used", "state", "left"),
    [(0.0, "ok", 100), (28.0, "ok", 72), (89.99, "ok", 10), (90.0, "low", 10), (99.6, "low", 1), (100.0, "none", 0)],
)
def test_room_is_low_from_ninety_and_none_at_a_hundred(used, state, left):
    """R6."""
    seen = room(plan("codex", windows=(window(used, resets=later(hours=1)),)))

    assert (seen.state, seen.percent_left) == (state, left)


def test_more_than_a_hundred_is_none_and_shown_as_nothing_left():
    """R6, R32."""
    seen = room(plan("codex", windows=(window(104.0, resets=later(hours=1)),)))

    assert (seen.state, seen.percent_left, seen.codes) == ("none", 0, ("at_limit",))


def test_a_plan_that_says_nothing_is_unknown_and_not_passed_over():
    """R6: unknown where nothing is metered."""
    for windows in ((), (window(None),), (window("n/a"),)):
        seen = room(plan("codex", windows=windows))

        assert (seen.state, seen.percent_left, seen.codes) == ("unknown", None, ())


def test_the_tightest_window_counts_and_is_named_where_it_is_not_the_shortest():
    """R6; copy.md 0.7."""
    seen = room(plan("codex", windows=(window(10.0, resets=later(hours=1)), weekly(95.0, resets=later(days=3)))))

    assert (seen.window, seen.longer, seen.resets_at, seen.state) == ("weekly", True, later(days=3), "low")


def test_of_two_equally_full_windows_the_one_that_resets_later_counts():
    """R6."""
    seen = room(plan("codex", windows=(weekly(50.0, resets=later(days=3)), window(50.0, resets=later(hours=1)))))
    other = room(plan("codex", windows=(window(50.0, resets=later(hours=1)), weekly(50.0))))

    assert (seen.window, other.window) == ("weekly", "weekly")


def test_one_full_window_is_enough_whatever_its_place():
    """R6, WIN-05."""
    full = (window(12.0, name="rolling"), weekly(100.0, resets=later(days=2)), window(40.0, name="monthly"))

    assert room(plan("codex", windows=full)).codes == ("at_limit",)


def test_two_full_windows_are_over_when_the_later_one_resets_and_never_where_that_is_unknown():
    """R16."""
    both = room(plan("codex", windows=(window(100.0, resets=later(hours=1)), weekly(100.0, resets=later(days=2)))))
    unknown = room(plan("codex", windows=(window(100.0, resets=later(hours=1)), weekly(100.0))))

    assert (both.free_at, both.window) == (later(days=2), "weekly")
    assert (unknown.free_at, unknown.window) == (None, "weekly")


def test_a_window_whose_reset_has_passed_has_room_without_a_percentage():
    """R6: shown as *resets now* until read again."""
    for reset in (earlier(minutes=1), NOW):
        seen = room(plan("codex", windows=(window(100.0, resets=reset),)))

        assert (seen.state, seen.resets_now, seen.percent_left) == ("ok", True, None)


def test_a_window_of_other_models_does_not_count():
    """R6: the windows that cover the model that would answer."""
    only_sonnet = weekly(100.0, resets=later(days=2), covers=("sonnet",))

    assert room(plan("claude", model=OPUS, windows=(only_sonnet,))).state == "unknown"
    assert room(plan("claude", model=OPUS, windows=(replace(only_sonnet, covers=("opus",)),))).state == "none"


@pytest.mark.parametrize(
    ("names", "model", "counts"),
    [
        ((), "gpt-5.5", True),
        (("opus",), "claude-opus-4-8", True),
        (("Opus",), "claude-opus-4-8", True),
        (("opus",), "claude-sonnet-5", False),
        (("opus",), "claude-magnopus-1", False),
        (("claude-opus-4-8",), "claude-opus-4-8", True),
        (("claude-opus-4-8",), "anthropic/claude-opus-4-8", True),
        (("claude-opus-4-8",), "claude-opus-4-8-20260401", True),
        (("gpt-5.5",), "gpt-5.5-mini", False),
        (("GPT-5.3 Codex Spark",), "gpt-5.3-codex-spark", True),
        (("gpt-5.5", "gpt-5.4"), "gpt-5.4", True),
        (("opus",), "", True),
    ],
)
def test_a_window_names_models_by_id_or_by_family(names, model, counts):
    """R6."""
    assert covers(names, model) is counts


def test_blocked_is_none_until_its_reset_also_where_the_meter_shows_room():
    """R6, R8."""
    seen = room(plan("codex", refusals=(blocked(later(hours=3)),)))

    assert (seen.state, seen.percent_left, seen.codes) == ("none", 0, ("blocked",))
    assert (seen.resets_at, seen.free_at) == (later(hours=3), later(hours=3))


def test_blocked_and_full_is_over_when_both_are():
    """R10: the first code that holds is said; R16: time must pass for all."""
    way = plan("codex", windows=(weekly(100.0, resets=later(days=2)),), refusals=(blocked(later(hours=3)),))

    assert room(way).codes == ("blocked", "at_limit")
    assert room(way).free_at == later(days=2)


def test_refused_leaves_the_meter_as_it_is():
    """R8, WIN-11: passed over although the meter shows room; the 15 minutes are no reset."""
    seen = room(plan("cursor", refusals=(refused(),)))

    assert (seen.state, seen.percent_left, seen.codes, seen.free_at) == ("ok", 72, ("refused",), None)
    assert (seen.retry_at, seen.refused_at) == (later(minutes=10), earlier(minutes=5))


def test_a_refusal_is_over_when_it_may_be_tried_again():
    """R8."""
    assert room(plan("cursor", refusals=(replace(refused(), retry_at=NOW),))).codes == ()


def test_check_now_allows_one_attempt_past_what_was_refused_before_it():
    """R29."""
    way = plan("cursor", refusals=(refused(at=earlier(minutes=5)),))

    assert room(replace(way, attempt_allowed_at=earlier(minutes=1))).codes == ()
    assert room(replace(way, attempt_allowed_at=earlier(minutes=6))).codes == ("refused",)


def test_a_refusal_that_names_a_model_counts_for_that_model():
    """R8."""
    way = plan("claude", model=OPUS, refusals=(refused(model="claude-opus-4-8"),))

    assert room(way).codes == ("refused",)
    assert room(replace(way, refusals=(refused(model="claude-sonnet-5"),))).codes == ()


def test_want_of_credit_is_known_as_such():
    """R16: at most a day."""
    assert room(key("openai", refusals=(refused(reason="money"),))).no_credit
    assert not room(key("openai", refusals=(refused(),))).no_credit


BEFORE = (window(97.0, resets=later(hours=2), read_at=earlier(minutes=6)),)


@pytest.mark.parametrize(
    ("read", "over"),
    [
        (window(3.0, resets=later(hours=5)), True),
        (window(97.0, resets=later(hours=5)), True),
        (window(97.0, resets=later(hours=2, seconds=30)), False),
        (window(97.0, resets=later(hours=2)), False),
        (window(99.0, resets=later(hours=2)), False),
        (window(99.0), False),
        (window(3.0, read_at=earlier(minutes=6)), False),
        (window(3.0, read_at=None), False),
        (window(None, resets=later(hours=5)), False),
        (window(100.0, resets=later(hours=5)), False),
        (window(3.0, name="another"), False),
    ],
)
def test_a_reading_clears_a_refusal_only_on_evidence(read, over):
    """R29: room in every window, and less used, or a later reset, than the last reading before the refusal."""
    assert cleared(blocked(later(hours=2), before=BEFORE), [read]) is over


def test_a_meter_that_had_said_nothing_before_is_no_evidence_by_what_it_says_now():
    """R29."""
    unread = (replace(BEFORE[0], used_percent=None, resets_at=None),)

    assert not cleared(blocked(later(hours=2), before=unread), [window(3.0, resets=later(hours=5))])


def test_evidence_must_hold_for_every_window():
    """R29."""
    windows = [window(3.0, resets=later(hours=5)), weekly(100.0, resets=later(days=2))]

    assert not cleared(blocked(later(hours=2), before=BEFORE), windows)


def test_an_early_reset_read_after_the_block_lets_the_account_answer():
    """R29."""
    way = plan(
        "codex", windows=(window(3.0, resets=later(hours=5)),), refusals=(blocked(later(hours=2), before=BEFORE),)
    )

    assert room(way).codes == ()


def test_each_window_of_an_account_counts_as_last_read():
    """R29: a partial reading never erases."""
    old, new = weekly(100.0, read_at=earlier(hours=1)), weekly(40.0, read_at=earlier(minutes=1))
    five, unread = window(10.0), Window("monthly", read_at=None)

    assert newest([old, five, new, unread]) == (new, five, unread)
    assert newest([new, old]) == (new,)
    assert newest([unread, replace(unread, read_at=NOW)]) == (replace(unread, read_at=NOW),)
    assert newest([replace(unread, read_at=NOW), unread]) == (replace(unread, read_at=NOW),)


@pytest.mark.parametrize(
    ("spent", "held", "state", "codes"),
    [
        ("0", "0", "ok", ()),
        ("8.98", "0", "ok", ()),
        ("9.00", "0", "low", ()),
        ("9.99", "0", "low", ()),
        ("9.991", "0", "none", ("over_budget",)),
        ("10", "0", "none", ("over_budget",)),
        ("5", "4.995", "none", ("over_budget",)),
    ],
)
def test_a_key_has_no_room_where_the_smallest_hold_would_pass_the_budget(spent, held, state, codes):
    """R7."""
    seen = room(key("openai"), budget("10", spent, held))

    assert (seen.state, seen.codes) == (state, codes)


def test_where_only_holds_are_in_the_way_no_end_is_known():
    """R16: nothing says that the month is spent."""
    seen = room(key("openai"), budget("10", "5", "5"))

    assert seen.held_only
    assert (seen.free_at, seen.resets_at) == (None, None)


def test_past_the_budget_until_the_month_ends():
    """R7."""
    seen = room(key("openai"), budget("10", "10"))

    assert (seen.free_at, seen.window, seen.held_only) == (MONTH_END, "month's budget", False)


def test_the_tighter_of_both_key_limits_binds():
    """R7; doors.md own_limit."""
    own = key("openai", own_limit=Decimal(5), spent=Decimal("4.6"))
    both = replace(own, cap=Decimal(10), cap_left=Decimal("9.5"))

    assert room(own)[:4] == ("low", 8, MONTH_END, "key limit")
    assert room(both)[:4] == ("low", 8, MONTH_END, "key limit")
    assert room(replace(both, cap_left=Decimal("0.001"))).codes == ("over_key_limit",)
    assert room(replace(both, spent=Decimal(5))).free_at == MONTH_END


def test_what_running_turns_hold_counts_against_the_keys_own_cap():
    """R7."""
    way = key("openrouter", cap=Decimal(10), cap_left=Decimal(1), held=Decimal("0.995"))

    assert room(way).codes == ("over_key_limit",)
    assert room(way).held_only


def test_a_cap_whose_reset_has_passed_does_not_bind_until_read_again():
    """R6, R7."""
    way = key("openrouter", cap=Decimal(10), cap_left=Decimal(0), cap_resets_at=earlier(minutes=1))

    assert room(way) == room(key("openai"))
    assert room(replace(way, cap_resets_at=later(days=2))).free_at == later(days=2)


def test_a_cap_without_its_whole_is_bounded_by_what_is_left():
    """R7."""
    assert room(key("openrouter", cap_left=Decimal(3))).percent_left == 100


def test_past_both_limits_is_over_when_both_are():
    """R10, R16."""
    way = key("openrouter", cap=Decimal(10), cap_left=Decimal(0))
    seen = room(way, budget("1", "1"))

    assert seen.codes == ("over_key_limit", "over_budget")
    assert seen.free_at is None


def test_a_key_without_any_bound_has_room():
    """R7."""
    assert room(key("openai")).state == "ok"


def test_a_key_that_cannot_be_priced_has_room_while_anything_is_left():
    """R33: its replies are in no sum, so only a budget that is spent stops it."""
    unpriced = key("mine", price=None)

    assert room(unpriced, budget("10", "9.999")).codes == ()
    assert room(unpriced, budget("10", "10")).codes == ("over_budget",)
    assert room(unpriced, budget("0")).codes == ("over_budget",)


def test_a_price_of_zero_fits_every_budget():
    """R5: a price of zero is a price."""
    assert room(key("openrouter", price="0"), budget("0")).codes == ()
    assert room(key("openrouter", price="0"), budget("10", "10")).codes == ()


@pytest.mark.parametrize("odd", ["-3", "NaN", "-Infinity", "Infinity", "0"])
def test_a_budget_that_is_no_sum_of_money_allows_nothing(odd):
    """R27: never past the budget, whatever was written there."""
    assert amount(Decimal(odd)) == 0
    assert room(key("openai"), budget(odd)).codes == ("over_budget",)


def test_a_huge_budget_is_a_budget():
    """R7."""
    assert room(key("openai"), budget("1000000000000")).state == "ok"


def test_a_key_whose_provider_counts_windows_is_at_its_limit_with_them():
    """R6: whatever the engine meters counts."""
    assert room(key("openai", windows=(window(100.0, resets=later(hours=1)),))).codes == ("at_limit",)


def test_a_refused_key_past_its_budget_says_both():
    """R10."""
    seen = room(key("openai", refusals=(refused(),)), budget("10", "10"))

    assert seen.codes == ("refused", "over_budget")
