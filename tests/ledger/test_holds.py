"""Holds and settlement, one process: what fits, what it costs, what is kept."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from django.db.transaction import TransactionManagementError

from conch.engines.base import Usage
from conch.ledger import NoRoom, book_extra, check, hold, key_limit, release, settle
from conch.models import Account, Conversation, Entry, MonthTotal, PriceOverride
from conch.money import NANO, to_nano
from tests.conftest import NOW, make_account

pytestmark = pytest.mark.django_db

MONTH = "2026-10"


@pytest.fixture
def chat(ada):
    PriceOverride.objects.create(engine="openai", model="gpt-5.5", input_per_million=5, output_per_million=30)
    make_account(ada, "openai")
    return Conversation.objects.create(person=ada, account="openai", created_at=NOW, updated_at=NOW)


def held(chat, most="0.10", **facts):
    given = {
        "person_id": chat.person_id,
        "account": "openai",
        "engine": "openai",
        "model": "gpt-5.5",
        "conversation_id": chat.pk,
        "turn_id": None,
        "attempt_id": None,
        "consent": "own",
        "most": most if most is None else Decimal(most),
        "month": MONTH,
        "now": NOW,
        "budget_nano": None,
        "key_limit_nano": None,
    }
    return hold(**given | facts)


def total(chat, account="", month=MONTH):
    row = MonthTotal.objects.get(person_id=chat.person_id, month=month, account=account)
    return row.spent_nano, row.held_nano, row.unpriced


def used(tokens_in=1000, tokens_out=100, **facts):
    return Usage(input_tokens=tokens_in, output_tokens=tokens_out, **facts)


def test_a_hold_counts_in_the_month_the_account_and_the_chat_until_it_is_settled(chat):
    """R26, R28."""
    entry = held(chat, "0.10")
    assert total(chat) == total(chat, "openai") == (0, to_nano(Decimal("0.10")), 0)
    chat.refresh_from_db()
    assert chat.held_nano == to_nano(Decimal("0.10"))

    cost = settle(entry, used(), NOW)

    assert cost == to_nano(Decimal("0.008"))  # 1,000 tokens at $5 and 100 at $30 a million
    assert total(chat) == total(chat, "openai") == (cost, 0, 0)
    chat.refresh_from_db()
    assert (chat.spent_nano, chat.held_nano) == (cost, 0)
    assert check() == []


def test_a_hold_that_would_pass_the_budget_is_refused_and_leaves_nothing(chat):
    """R26, R7: also for the first use of a brand-new month (BUD-01)."""
    with pytest.raises(NoRoom) as refused:
        held(chat, "0.11", budget_nano=to_nano(Decimal("0.10")))
    assert refused.value.reason == "budget"
    assert not Entry.objects.exists()
    held(chat, "0.10", budget_nano=to_nano(Decimal("0.10")))
    with pytest.raises(NoRoom):
        held(chat, "0.000000001", budget_nano=to_nano(Decimal("0.10")))
    assert total(chat) == (0, to_nano(Decimal("0.10")), 0)
    assert check() == []


def test_a_hold_that_passes_only_the_keys_own_limit_gives_the_month_back_what_it_took(chat):
    """R7: the key's own limit binds by itself."""
    held(chat, "0.10")
    with pytest.raises(NoRoom) as refused:
        held(chat, "0.10", budget_nano=NANO, key_limit_nano=to_nano(Decimal("0.15")))
    assert refused.value.reason == "key_limit"
    assert total(chat) == total(chat, "openai") == (0, to_nano(Decimal("0.10")), 0)
    assert check() == []


@pytest.mark.parametrize("budget", [0, -1, -(10**18)])
def test_a_budget_of_nothing_lets_nothing_paid_through_and_everything_free(chat, budget):
    """R26; issue list of bad input: a budget of zero or below."""
    with pytest.raises(NoRoom):
        held(chat, "0.01", budget_nano=budget)
    assert held(chat, "0", budget_nano=budget)


def test_a_budget_of_a_trillion_dollars_is_just_a_large_one(chat):
    assert held(chat, "0.01", budget_nano=10**12 * NANO)


def test_what_cant_be_priced_is_counted_in_replies_and_bounded_by_nothing(chat):
    """R33: unknown is never zero, and not in the sum."""
    entry = held(chat, None, model="mystery-1", budget_nano=0)
    assert settle(entry, used(), NOW) is None
    assert total(chat) == total(chat, "openai") == (0, 0, 1)
    kept = Entry.objects.get()
    assert (kept.cost_nano, kept.priced_by, kept.input_tokens) == (None, "none", 1000)
    assert check() == []


@pytest.mark.parametrize(
    ("model", "cost", "booked", "by"),
    [
        ("gpt-5.5", "0.0213", "0.0213", "provider"),
        ("gpt-5.5", None, "0.008", "list"),
        ("gpt-5.5", "0", "0.008", "list"),
        ("free-1", "0", "0", "provider"),
        ("free-1", None, "0", "list"),
        ("mystery-1", "0.5", "0.5", "provider"),
        ("mystery-1", "0", None, "none"),
        ("gpt-5.5", "-1", "0.008", "list"),
        ("gpt-5.5", "NaN", "0.008", "list"),
        ("gpt-5.5", "1e30", "0.008", "list"),
    ],
)
def test_the_providers_cost_counts_where_it_can_be_true_else_the_list_price(chat, model, cost, booked, by):
    """R26, R33, BUD-05: a cost of zero is believed only where the list price is zero too."""
    PriceOverride.objects.create(engine="openai", model="free-1", input_per_million=0, output_per_million=0)
    entry = held(chat, "0.10", model=model)
    settle(entry, used(cost=cost if cost is None else Decimal(cost)), NOW)
    kept = Entry.objects.get()
    assert kept.cost_nano == (booked if booked is None else to_nano(Decimal(booked)))
    assert (kept.priced_by, kept.estimated) == (by, False)
    assert check() == []


def test_cached_tokens_are_priced_as_cached_also_where_the_provider_counts_them_beside_the_prompt(chat):
    """R26, BUD-05: 813,056 cached tokens beside a prompt of 8,219."""
    PriceOverride.objects.update(cached_input_per_million=Decimal("0.5"))
    entry = held(chat)
    settle(entry, used(2000, 0, cached_input_tokens=1500), NOW)
    assert Entry.objects.get().cost_nano == to_nano(Decimal("0.00325"))
    beside = held(chat)
    settle(beside, used(8219, 177, cached_input_tokens=813_056), NOW)
    assert Entry.objects.get(pk=beside).cost_nano == to_nano(Decimal("0.452933"))


def test_a_second_settlement_changes_nothing(chat):
    """R26, BUD-13: the exact usage is booked once, whoever comes last."""
    entry = held(chat)
    first = settle(entry, used(), NOW)
    assert settle(entry, used(9999, 9999), NOW, estimated=True) == first
    assert release(entry) is False
    assert total(chat) == (first, 0, 0)
    assert Entry.objects.count() == 1
    assert check() == []


def test_an_attempt_that_surely_cost_nothing_leaves_no_entry(chat):
    """R26."""
    entry = held(chat)
    assert release(entry) is True
    assert release(entry) is False
    assert settle(entry, used(), NOW) is None
    assert not Entry.objects.exists()
    assert total(chat) == (0, 0, 0)
    assert check() == []


@pytest.mark.parametrize(
    ("counted", "usage", "booked"),
    [
        (1000, Usage(), "0.005"),
        (1000, Usage(output_tokens=100), "0.008"),
        (None, Usage(input_tokens=500), "0.0025"),
        (None, Usage(), "0.10"),
    ],
)
def test_what_the_provider_didnt_say_is_estimated_and_marked_so(chat, counted, usage, booked):
    """R26, BUD-11: from what the hold knows of the prompt; from nothing at all, the whole hold."""
    entry = held(chat, input_tokens=counted)
    settle(entry, usage, NOW)
    kept = Entry.objects.get()
    assert (kept.cost_nano, kept.estimated, kept.priced_by) == (to_nano(Decimal(booked)), True, "list")
    assert check() == []


def test_an_estimate_of_the_turns_own_is_marked_as_one(chat):
    """R26: a failed, stopped or cut attempt."""
    settle(held(chat), used(), NOW, estimated=True)
    assert Entry.objects.get().estimated is True


def test_extra_usage_of_a_plan_is_booked_once_an_attempt_and_counts_in_the_month(chat):
    """R32."""
    facts = {
        "person_id": chat.person_id, "account": "codex", "engine": "codex", "model": "gpt-5.5",
        "conversation_id": chat.pk, "turn_id": 7, "attempt_id": 8, "month": MONTH, "now": NOW,
    }  # fmt: skip
    usage = used(extra=True, cost=Decimal("0.25"))
    assert book_extra(**facts, usage=usage) == book_extra(**facts, usage=usage)
    assert total(chat) == total(chat, "codex") == (to_nano(Decimal("0.25")), 0, 0)
    book_extra(**facts | {"attempt_id": 9}, usage=used(extra=True))
    assert total(chat) == (to_nano(Decimal("0.25")), 0, 1)
    assert [entry.extra for entry in Entry.objects.all()] == [True, True]
    assert check() == []


def test_a_cost_lowers_what_the_keys_own_cap_has_left(chat):
    """R7: known between two readings, so the bound that `key_limit` gives stays true."""
    account = Account.objects.filter(slug="openai")
    account.update(key_cap_nano=NANO, key_left_nano=NANO // 2)
    cost = settle(held(chat), used(), NOW)
    assert account.get().key_left_nano == NANO // 2 - cost


def test_a_cap_whose_reset_has_passed_begins_anew_with_the_next_cost(chat):
    account = Account.objects.filter(slug="openai")
    account.update(key_cap_nano=NANO, key_left_nano=0, key_resets_at=NOW)
    cost = settle(held(chat), used(), NOW)
    assert (account.get().key_left_nano, account.get().key_resets_at) == (NANO - cost, None)


@pytest.mark.parametrize(
    ("own", "cap", "left", "reset_hours", "spent", "bound"),
    [
        (None, None, None, None, 5, None),
        (10, None, None, None, 5, 10),
        (10, 100, 2, None, 5, 7),
        (10, 100, 50, None, 5, 10),
        (None, 100, -1, None, 5, 4),
        (None, 100, 0, 1, 5, 5),
        (None, 100, 0, -1, 5, 105),
        (None, None, 3, -1, 5, 8),
    ],
)
def test_the_tighter_of_a_keys_two_limits_binds(own, cap, left, reset_hours, spent, bound):
    """R7, doors.md own_limit."""
    resets_at = None if reset_hours is None else NOW + timedelta(hours=reset_hours)
    found = key_limit(
        own_limit_nano=own, key_cap_nano=cap, key_left_nano=left, key_resets_at=resets_at, spent_nano=spent, now=NOW
    )
    assert found == bound


@pytest.mark.django_db(transaction=True)
def test_the_ledger_is_changed_only_inside_a_step(chat):
    with pytest.raises(TransactionManagementError):
        held(chat)
    with transaction.atomic():
        held(chat)
    assert check() == []


def test_a_hold_takes_few_statements(chat, django_assert_max_num_queries):
    held(chat)
    with django_assert_max_num_queries(4):
        entry = held(chat, budget_nano=NANO, key_limit_nano=NANO)
    with django_assert_max_num_queries(6):
        settle(entry, used(cost=Decimal("0.01")), NOW)
