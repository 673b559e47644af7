"""What is kept of an account's room: readings, refusals and what ends them (R6, R8, R29, R32, Times)."""

from datetime import timedelta
from decimal import Decimal

import pytest

from conch.accounts.room import (
    A_WHILE,
    allow_attempt,
    keep_reading,
    mend_clock,
    record_answer,
    record_failed_reading,
    record_refusal,
)
from conch.engines.base import LimitReached, Room, WindowReading
from conch.models import Account, Refusal, Window
from conch.money import NANO
from tests.conftest import NOW, make_account

HOUR, DAY, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)


def read(used=None, hours=None, name="5-hour", **more):
    return WindowReading(name, used, None if hours is None else NOW + hours * HOUR, **more)


@pytest.fixture
def codex(ada):
    return make_account(ada, "codex")


def windows_of(account):
    return {row.name: (row.used_percent, row.resets_at) for row in Window.objects.filter(account=account)}


def refuse(account, at=NOW, until=None, *, started=None, model="gpt-5.5", **facts_of):
    return record_refusal(
        account.pk, LimitReached("no", until=until, **facts_of), at, turn_started=started or at - MINUTE, model=model
    )


def standing(account, at):
    return Refusal.objects.filter(account=account, retry_at__gt=at).exists()


@pytest.mark.django_db
def test_a_reading_without_windows_doesnt_blank_what_was_known(codex):
    """WIN-03: the newest event had none at the very moment the quota ran out."""
    keep_reading(codex.pk, Room((read(100, 30, "weekly", length_minutes=10080),), complete=True), NOW)
    keep_reading(codex.pk, Room((), complete=True), NOW + HOUR)
    keep_reading(codex.pk, Room((read(None, None, "weekly"),)), NOW + HOUR)
    assert windows_of(codex) == {"weekly": (100, NOW + 30 * HOUR)}


@pytest.mark.django_db
def test_a_window_that_a_whole_reading_no_longer_has_is_no_limit_any_more(codex):
    keep_reading(codex.pk, Room((read(10, 3), read(100, 30, "Opus weekly", models=("opus",)))), NOW)
    assert keep_reading(codex.pk, Room((read(11, 3),), complete=True), NOW + HOUR) is True
    assert windows_of(codex) == {"5-hour": (11, NOW + 3 * HOUR)}


@pytest.mark.django_db
def test_a_reading_that_fails_keeps_the_figures_with_their_age(codex):
    """R29: also with 429."""
    keep_reading(codex.pk, Room((read(40, 3),)), NOW)
    record_failed_reading(codex.pk, NOW + HOUR)
    record_failed_reading(codex.pk, NOW + 2 * HOUR, retry_after=600)
    codex.refresh_from_db()
    assert windows_of(codex) == {"5-hour": (40, NOW + 3 * HOUR)}
    assert (codex.read_at, codex.read_failed_at) == (NOW, NOW + 2 * HOUR)
    assert codex.read_backoff_until == NOW + 2 * HOUR + 10 * MINUTE
    keep_reading(codex.pk, Room((read(41, 3),)), NOW + HOUR)
    codex.refresh_from_db()
    assert (codex.read_failed_at, codex.read_backoff_until) == (None, None)


@pytest.mark.django_db
def test_a_plan_that_was_full_is_blocked_until_its_reset_and_an_early_reset_frees_it(codex):
    """R29, R8: less used than the last reading before the refusal."""
    keep_reading(codex.pk, Room((read(100, 3), read(40, 90, "weekly"))), NOW - HOUR)
    assert refuse(codex, until=NOW + 3 * HOUR).kind == "blocked"
    assert keep_reading(codex.pk, Room((read(100, 3),)), NOW + MINUTE) is False
    assert standing(codex, NOW + MINUTE)
    assert keep_reading(codex.pk, Room((read(1, 5),)), NOW + 2 * MINUTE) is True
    assert not Refusal.objects.exists()


@pytest.mark.django_db
def test_an_early_reset_of_one_window_frees_nothing_while_another_is_full(codex):
    """R29: room in every window."""
    keep_reading(codex.pk, Room((read(100, 3), read(100, 90, "weekly"))), NOW - HOUR)
    refuse(codex, until=NOW + 90 * HOUR)
    keep_reading(codex.pk, Room((read(1, 5),)), NOW + MINUTE)
    assert standing(codex, NOW + MINUTE)


@pytest.mark.django_db
def test_a_meter_that_showed_room_all_along_proves_nothing_for_a_quarter_of_an_hour(codex):
    """WIN-11, R29: the refusal stands, the next message doesn't try it first."""
    keep_reading(codex.pk, Room((read(0, 5),)), NOW - MINUTE)
    kept = refuse(codex)
    assert (kept.kind, kept.until, kept.retry_at) == ("refused", None, NOW + A_WHILE)
    assert keep_reading(codex.pk, Room((read(0, 5),)), NOW + MINUTE) is False
    assert standing(codex, NOW + timedelta(seconds=899))
    assert not standing(codex, NOW + timedelta(seconds=900))


@pytest.mark.django_db
def test_a_block_without_any_reading_before_it_ends_by_what_the_refusal_itself_had_told(codex):
    """R29: the windows came with the refusal, and a later reading shows less used."""
    refuse(codex, until=NOW + 3 * HOUR, room=Room((read(100, 3),)))
    assert windows_of(codex) == {"5-hour": (100, NOW + 3 * HOUR)}
    keep_reading(codex.pk, Room((read(2, 5),)), NOW + MINUTE)
    assert not Refusal.objects.exists()


@pytest.mark.django_db
def test_windows_that_the_attempt_told_before_it_was_refused_make_it_a_block(codex):
    """R8: the last reading was older than the limit."""
    keep_reading(codex.pk, Room((read(95, 3),)), NOW - HOUR)
    error = LimitReached("no")
    kept = record_refusal(
        codex.pk, error, NOW, turn_started=NOW - MINUTE, model="gpt-5.5", rooms=[Room((read(100, 3),))]
    )
    assert (kept.kind, kept.until) == ("blocked", NOW + 3 * HOUR)
    assert kept.before[0]["used_percent"] == 95


@pytest.mark.django_db
def test_a_reading_that_may_be_older_than_the_refusal_is_no_evidence(codex):
    """R29: it came with a turn that began before."""
    keep_reading(codex.pk, Room((read(100, 3),)), NOW - HOUR)
    refuse(codex, until=NOW + 3 * HOUR)
    keep_reading(codex.pk, Room((read(1, 5),)), NOW + MINUTE, turn_started=NOW - MINUTE)
    assert standing(codex, NOW + MINUTE)


@pytest.mark.django_db
def test_a_refusal_of_a_turn_that_started_before_the_block_doesnt_extend_it(codex):
    """R29."""
    first = refuse(codex, until=NOW + HOUR)
    late = refuse(codex, NOW + 10 * MINUTE, NOW + 5 * HOUR, started=NOW - MINUTE)
    assert (late.pk, late.at, late.retry_at) == (first.pk, NOW, NOW + HOUR)
    after = refuse(codex, NOW + 20 * MINUTE, NOW + 5 * HOUR, started=NOW + 15 * MINUTE)
    assert (after.at, after.retry_at) == (NOW + 20 * MINUTE, NOW + 5 * HOUR)
    assert Refusal.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("said", [None, 0, 40])
def test_a_reset_that_has_passed_is_tried_once_and_then_holds_a_quarter_of_an_hour(codex, said):
    """R29, providers.md 10: servers lag, and say the same reset again."""
    refuse(codex, until=NOW + HOUR)
    again = NOW + HOUR + timedelta(seconds=5)
    until = None if said is None else NOW + HOUR + timedelta(seconds=said)
    kept = refuse(codex, again, until)
    assert (kept.until, kept.retry_at) == (None, again + A_WHILE)


@pytest.mark.django_db
def test_two_resets_within_a_minute_are_one(codex):
    """Times: so the line isn't said again (R22)."""
    refuse(codex, until=NOW + HOUR)
    kept = refuse(codex, NOW + MINUTE, NOW + HOUR + timedelta(seconds=59), started=NOW + timedelta(seconds=30))
    assert kept.until == kept.retry_at == NOW + HOUR


@pytest.mark.django_db
def test_a_refusal_that_names_a_model_counts_for_that_one_and_stands_beside_the_accounts(codex):
    """R8."""
    refuse(codex, until=NOW + HOUR, model="opus", scope="limit")
    record_refusal(
        codex.pk, LimitReached("no", until=NOW + DAY, model="opus"), NOW, turn_started=NOW - MINUTE, model="opus"
    )
    assert sorted(Refusal.objects.values_list("model", flat=True)) == ["", "opus"]


@pytest.mark.django_db
def test_a_meter_that_says_no_blocks_and_its_yes_frees(codex):
    """providers.md 0.1: `allowed`, also where every window shows room."""
    keep_reading(codex.pk, Room((read(40, 3),), allowed=False), NOW)
    blocked = Refusal.objects.get()
    assert (blocked.kind, blocked.until, blocked.retry_at) == ("blocked", None, NOW + A_WHILE)
    assert keep_reading(codex.pk, Room((read(40, 3),), allowed=False), NOW + MINUTE) is False
    assert Refusal.objects.get().at == NOW
    assert keep_reading(codex.pk, Room((read(41, 3),), allowed=True), NOW + 2 * MINUTE) is True
    assert not Refusal.objects.exists()


@pytest.mark.django_db
def test_a_meter_that_says_no_with_full_windows_blocks_until_the_last_of_them(codex):
    """R32: also where it would go on at a price."""
    keep_reading(codex.pk, Room((read(100, 3), read(100, 90, "weekly"), read(5, 200, "monthly")), allowed=False), NOW)
    assert Refusal.objects.get().until == NOW + 90 * HOUR


@pytest.mark.django_db
def test_an_answer_that_began_after_a_refusal_ends_it_and_uses_up_the_attempt(codex):
    """R29: *Check now* allows one."""
    refuse(codex)
    allow_attempt(codex.pk, NOW + MINUTE)
    assert record_answer(codex.pk, "gpt-5.5", turn_started=NOW - MINUTE) is False
    assert record_answer(codex.pk, "gpt-5.5", turn_started=NOW + 2 * MINUTE) is True
    codex.refresh_from_db()
    assert codex.attempt_allowed_at is None


@pytest.mark.django_db
def test_an_attempt_that_was_allowed_and_refused_again_is_used_up(codex):
    """R29."""
    refuse(codex)
    allow_attempt(codex.pk, NOW + MINUTE)
    kept = refuse(codex, NOW + 2 * MINUTE, started=NOW + MINUTE + timedelta(seconds=1))
    codex.refresh_from_db()
    assert (codex.attempt_allowed_at, kept.retry_at) == (None, NOW + 2 * MINUTE + A_WHILE)


@pytest.mark.django_db
def test_a_limit_with_a_known_reset_holds_until_then_not_half_an_hour(codex):
    """RST-25: five hours ahead, asked ten times between."""
    until = NOW + 5 * HOUR
    refuse(codex, until=until, room=Room((read(100, 5),)))
    assert all(standing(codex, NOW + number * HOUR / 2) for number in range(10))
    assert not standing(codex, until)


@pytest.mark.django_db
def test_a_clock_set_back_makes_no_wait_longer_than_it_was(codex):
    """Times, RST-18: eight hours."""
    refuse(codex, until=NOW + 4 * HOUR)
    back = NOW - 8 * HOUR
    assert mend_clock(codex.pk, back) == 1
    mended = Refusal.objects.get()
    assert (mended.at, mended.until, mended.retry_at) == (back, back + 4 * HOUR, back + 4 * HOUR)
    assert mend_clock(codex.pk, back) == 0


@pytest.mark.django_db
def test_a_key_learns_its_providers_cap_and_what_is_left_of_it(ada):
    """R7; a cap that was taken away is gone."""
    key = make_account(ada, "openrouter")
    capped = Room(complete=True, key_cap=Decimal(10), key_left=Decimal("-0.5"), key_resets_at=NOW + DAY)
    keep_reading(key.pk, capped, NOW)
    key.refresh_from_db()
    assert (key.key_cap_nano, key.key_left_nano, key.key_resets_at) == (10 * NANO, -NANO // 2, NOW + DAY)
    assert keep_reading(key.pk, Room(complete=True, key_cap=Decimal(10), key_left=Decimal(9)), NOW) is True
    assert keep_reading(key.pk, Room(complete=True, key_cap=Decimal(10), key_left=Decimal(8)), NOW) is False
    keep_reading(key.pk, Room(key_left=Decimal("NaN"), key_cap=Decimal("1e300")), NOW)
    assert keep_reading(key.pk, Room(complete=True, key_uncapped=True), NOW) is True
    key.refresh_from_db()
    assert (key.key_cap_nano, key.key_left_nano) == (None, None)


@pytest.mark.django_db
def test_another_plan_ends_a_refusal_for_what_the_old_one_had_not(codex):
    """providers.md 0.4: `usage_not_included`."""
    Account.objects.update(plan="free")
    refuse(codex, scope="not_entitled")
    assert keep_reading(codex.pk, Room((read(1, 3),), plan="free"), NOW + MINUTE) is False
    assert keep_reading(codex.pk, Room((read(1, 3),), plan="plus"), NOW + MINUTE) is True


@pytest.mark.django_db
def test_a_reading_undoes_nothing_that_somebody_else_just_wrote(codex):
    """SQL-03: a key rotated while the meter was read survives."""
    Account.objects.filter(pk=codex.pk).update(sealed_key="NEW", label="Mine")
    keep_reading(codex.pk, Room((read(10, 3),), plan="plus"), NOW)
    refuse(codex)
    allow_attempt(codex.pk, NOW)
    codex.refresh_from_db()
    assert (codex.sealed_key, codex.label, codex.plan) == ("NEW", "Mine", "plus")


@pytest.mark.django_db
def test_an_account_that_is_gone_is_read_for_nothing(codex):
    pk = codex.pk
    codex.delete()
    assert keep_reading(pk, Room((read(10, 3),)), NOW) is False
    record_failed_reading(pk, NOW)


@pytest.mark.django_db
def test_a_clock_that_is_off_is_kept_for_settings_whoever_said_so(codex):
    """Times, RST-18: "Settings says the clock is off"."""
    refuse(codex, clock_off_seconds=28800)
    codex.refresh_from_db()
    assert codex.clock_off_seconds == 28800
    keep_reading(codex.pk, Room((read(10, 3),), clock_off_seconds=-90), NOW)
    codex.refresh_from_db()
    assert codex.clock_off_seconds == -90


@pytest.mark.django_db
def test_an_engine_that_isnt_installed_any_more_is_no_metered_plan(ada):
    assert refuse(make_account(ada, "gone-engine"), until=NOW + HOUR).kind == "refused"
