"""Cases from the field that the route decides, each by its id; engines and the ledger have theirs elsewhere."""

from dataclasses import replace
from datetime import timedelta

from routing.choices import grouped
from routing.decision import decide
from routing.facts import Model, Needs, Run, Tried
from routing.room import percent
from tests.routing.world import (
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
    plan,
    question,
    refused,
    skips,
    weekly,
    window,
)

CLAUDE, CODEX, OPENAI = plan("claude", model=OPUS), plan("codex"), key("openai")
FULL = at_limit(CLAUDE)


def test_rst_21_a_refusal_right_after_the_reset_is_a_retry_later_not_a_new_limit():
    """RST-21; R29: asked a few seconds after the reset; refused again, it holds 15 minutes and another answers."""
    assert decided(FULL).wait.wake_at > later(hours=2)

    again = plan("claude", windows=(window(100.0, resets=NOW),), refusals=(refused(at=NOW),))
    decision = decided(again, CODEX)

    assert (decision.answers, decision.limit.until) == ("codex", None)
    assert decision.limit.retry_at - NOW < timedelta(hours=1)


def test_rst_29_a_message_sent_during_a_known_limit_waits_from_the_start():
    """RST-29; R16: durably until the reset, late or not; who went on by hand is not asked twice."""
    first = decided(FULL)
    assert (first.kind, first.wait.until) == ("wait", later(hours=2))

    woken = decide(question(FULL, run=Run(waiting=True, waiting_since=NOW)), later(hours=4, minutes=20))
    assert (woken.kind, woken.answers) == ("answer", "claude")


def test_win_01_a_hundred_and_twenty_percent_is_none_and_odd_values_are_unknown():
    """WIN-01; R6: never 0%."""
    over = plan("claude", windows=(window(120.0, resets=later(hours=1)), weekly(30.0)))

    assert skips(decided(CODEX, over)) == {"claude": "at_limit"}
    for odd in ("1e307", 1e307, float("nan"), -0.0, "", "abc"):
        assert percent(odd) is None
        assert skips(decided(CODEX, plan("claude", windows=(window(odd),)))) == {"claude": None}


def test_win_03_a_newer_event_without_windows_leaves_the_full_one_standing():
    """WIN-03: null is not zero."""
    known = (weekly(100.0, resets=later(days=2), read_at=earlier(minutes=30)), window(None, name="premium"))

    assert skips(decided(CLAUDE, plan("codex", windows=known))) == {"codex": "at_limit"}


def test_win_05_any_exhausted_window_blocks():
    """WIN-05: whatever its place."""
    windows = (window(12.0, name="rolling"), weekly(100.0), window(40.0, name="monthly"))

    assert skips(decided(CLAUDE, plan("codex", windows=windows))) == {"codex": "at_limit"}


def test_win_07_a_models_own_room_does_not_help_where_the_shared_window_is_full():
    """WIN-07: windows combine by and."""
    shared, sonnet = weekly(100.0, resets=later(days=3)), window(48.0, name="Sonnet weekly", covers=("sonnet",))
    decision = decided(plan("claude", model=Model("claude-sonnet-5"), windows=(shared, sonnet)))

    assert (decision.kind, decision.wait.until) == ("wait", later(days=3))


def test_win_09_nearly_three_quarters_of_a_week_is_no_limit():
    """WIN-09: low only from 90%."""
    decision = decided(plan("claude", windows=(window(2.0), weekly(73.7))))

    assert (decision.answers, decision.limit.at) == ("claude", False)


def test_win_11_a_refusal_wins_over_a_meter_that_shows_room_for_a_quarter_of_an_hour():
    """WIN-11; R8, R29: no flip-flop where every message first tries the refusing account."""
    stale = window(0.0, resets=later(hours=5), read_at=earlier(minutes=20))
    quarter = replace(refused(at=NOW, before=(stale,)), retry_at=later(minutes=15))
    own = plan("claude", windows=(replace(stale, read_at=later(minutes=1)),), refusals=(quarter,))
    asked = question(own, CODEX)

    for minutes in (2, 14):
        assert decide(asked, later(minutes=minutes)).answers == "codex"
    assert decide(asked, NOW + timedelta(seconds=900)).answers == "claude"


def test_acc_01_two_members_of_one_team_are_two_choices():
    """ACC-01; R1: one's limit does not touch the other."""
    a = plan("a", shares_account="openai-codex", identity="acc-1:user-A", windows=(window(100.0),))
    b = plan("b", shares_account="openai-codex", identity="acc-1:user-B")

    assert len(grouped([a, b])) == 2
    assert decided(a, b).answers == "b"


def test_acc_03_a_limit_through_one_way_benches_both_and_the_next_is_another_account():
    """ACC-03; R3, R8: other models of the account too."""
    shared = {"shares_account": "openai-codex", "identity": "acc-1:user-A"}
    cli = plan("codex-cli", **shared, refusals=(blocked(later(hours=3)),))
    oauth = plan("codex-oauth", **shared, model=Model("another"))
    own = decided(cli, oauth, OPENAI, plan("claude"), run=Run(tried=(Tried("codex-cli", "refused"),)))
    other = decided(FULL, cli, oauth)

    assert own.answers == "claude"
    assert {"codex-cli", "codex-oauth"}.isdisjoint(skips(own))
    assert skips(other) == {"codex-cli": "blocked"}


def test_acc_05_with_every_account_exhausted_it_says_who_is_back_first_and_what_could_be_done():
    """ACC-05; R16: the message waits and goes out by itself; the key's yes and this computer are offered."""
    codex = at_limit(CODEX, later(days=3))
    decision = decided(at_limit(CLAUDE, later(hours=6)), codex, OPENAI, local=LOCAL)

    assert decision.wait.until == later(hours=6)
    assert (decision.wait.next.slug, decision.wait.could.slug, decision.wait.local.label) == (
        "claude",
        "openai",
        "Tiny",
    )
    assert skips(decision) == {"codex": "at_limit", "openai": "paid_off"}


def test_fbk_02_without_a_network_nobody_is_marked_and_nobody_paid_is_asked():
    """FBK-02; R19."""
    offline = {"run": Run(offline=True), "limit_paid": True}
    alone, helped = (
        decided(CLAUDE, OPENAI, **offline),
        decided(CLAUDE, OPENAI, **offline, local=LOCAL, offline_fallback=True),
    )

    assert (alone.failure.code, helped.answers) == ("offline", "local")
    assert skips(alone) == {"openai": None}
    assert not alone.limit.at


def test_fbk_05_a_model_that_is_gone_is_no_limit():
    """FBK-05; R17: of one that carries on, its default model stands by, then the next; the chat's own fails."""
    codex = plan("codex", model=Model("retired"), default_model=Model("gpt-5.5"))
    first = decided(FULL, codex, plan("next"))
    then = decided(FULL, codex, plan("next"), run=Run(tried=(Tried("codex", "model_gone"),)))
    own = decided(codex, plan("next"), run=Run(tried=(Tried("codex", "model_gone"),)))

    assert (first.answers, first.default_model.id) == ("codex", "gpt-5.5")
    assert then.answers == "next"
    assert (own.kind, own.failure.code, own.limit.at) == ("fail", "model_gone", False)


def test_fbk_17_an_own_account_that_is_misconfigured_starts_no_switch():
    """FBK-17; R17, R36: Automatic is for limits; who could answer is offered."""
    wrong = decided(plan("claude", state="wrong_key"), CODEX)
    unable = decided(CLAUDE, CODEX, run=Run(tried=(Tried("claude", "unable"),)))

    assert (wrong.kind, wrong.failure.code) == ("fail", "signed_out")
    assert (unable.kind, unable.failure.code) == ("fail", "unable")
    assert [offer.slug for offer in wrong.failure.offers] == ["codex"]


def test_con_04_a_plan_that_would_go_on_at_a_price_is_at_its_limit():
    """CON-04; R32: whatever limit_paid says."""
    over = plan("claude", windows=(window(104.0, resets=later(hours=1)),))

    for paid in (False, True):
        assert decided(over, CODEX, limit_paid=paid).answers == "codex"
        assert decided(over, limit_paid=paid).kind == "wait"


def test_con_06_an_old_yes_does_not_pay_while_nobody_looks():
    """CON-06; R25: only within a month's budget."""
    night = Run(waiting=True, waiting_since=earlier(hours=5))
    without = decided(FULL, OPENAI, limit_paid=True, run=night)
    within = decided(FULL, OPENAI, limit_paid=True, run=night, money=budget("10"))

    assert (without.kind, without.wait.why) == ("wait", "needs_budget")
    assert (within.answers, within.consent, within.routed.to_billing) == ("openai", "paid_on", "key")


def test_fbk_06_who_takes_the_whole_chat_answers_before_anything_is_tried():
    """FBK-06; R9, R31: sizes are known beforehand; where nobody takes it whole, it is shortened and said so."""
    chat = Needs(tokens=125_516, newest_tokens=900)
    small = plan("copilot", model=replace(OPUS, context=64_000))
    wide, here = replace(CODEX, model=replace(OPUS, context=258_000)), replace(LOCAL, model=Model("m", context=8_192))

    carried = decided(FULL, small, wide, local=here, offline_fallback=True, needs=chat)
    shortened = decided(FULL, small, local=here, offline_fallback=True, needs=chat)

    assert (carried.answers, carried.shortened) == ("codex", False)
    assert (shortened.answers, shortened.shortened) == ("copilot", True)


def test_fbk_10_an_image_of_this_message_needs_eyes_and_an_older_one_is_left_out():
    """FBK-10; R9: the newest message goes to who sees it; of older ones the line says that they aren't seen."""
    blind = plan("blind", model=replace(OPUS, images=False))

    assert decided(FULL, blind, CODEX, needs=Needs(images=True)).answers == "codex"
    older = decided(FULL, blind, CODEX, needs=Needs(older_images=True))
    assert (older.answers, older.drop_images) == ("blind", True)
    assert not decided(FULL, CODEX, blind, needs=Needs(older_images=True)).drop_images
