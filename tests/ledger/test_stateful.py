"""The ledger over any order of holds, settlements, releases and restarts (R26–R28; BUD-01, BUD-03)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from conch.engines.base import Usage
from conch.ledger import NoRoom, book_extra, check, hold, orphans, recount, release, settle
from conch.models import Conversation, Entry, MonthTotal, Person, PriceOverride
from conch.money import to_nano
from tests.conftest import NOW, make_account, make_person

MONTHS = ("2026-09", "2026-10")
KEYS = ("openai", "openrouter")
BUDGET, KEY_LIMIT = to_nano(Decimal("1.00")), to_nano(Decimal("0.60"))
AMOUNTS = st.one_of(st.none(), st.decimals(0, "0.7", places=9))
TOKENS = st.one_of(st.none(), st.integers(0, 40_000))
COSTS = st.one_of(st.none(), st.decimals(0, "0.3", places=6))


class Ledger(RuleBasedStateMachine):
    """A second set of books, kept in the plainest way, that the ledger must agree with after every step."""

    holds = Bundle("holds")

    def __init__(self):
        super().__init__()
        Person.objects.all().delete()
        PriceOverride.objects.get_or_create(
            engine="openai", model="m", defaults={"input_per_million": 5, "output_per_million": 30}
        )
        self.person = make_person("ada")
        for key in KEYS:
            make_account(self.person, "openai", slug=key)
        self.chats = [
            Conversation.objects.create(person=self.person, account="openai", created_at=NOW, updated_at=NOW)
            for _ in range(2)
        ]
        self.open = {}
        self.spent = dict.fromkeys([(month, key) for month in MONTHS for key in (*KEYS, "codex")], 0)
        self.unpriced = dict(self.spent)

    def taken(self, month, key=None):
        held = sum(amount or 0 for amount, of, by in self.open.values() if of == month and key in {None, by})
        spent = sum(cost for (of, by), cost in self.spent.items() if of == month and key in {None, by})
        return held + spent

    @rule(
        target=holds,
        most=AMOUNTS,
        month=st.sampled_from(MONTHS),
        key=st.sampled_from(KEYS),
        chat=st.integers(0, 1),
        limited=st.booleans(),
        counted=TOKENS,
    )
    def take(self, most, month, key, chat, limited, counted):
        amount = None if most is None else to_nano(most, up=True)
        fits = not amount or (
            self.taken(month) + amount <= BUDGET and (not limited or self.taken(month, key) + amount <= KEY_LIMIT)
        )
        try:
            with transaction.atomic():
                entry = hold(
                    person_id=self.person.pk, account=key, engine="openai", model="m",
                    conversation_id=self.chats[chat].pk, turn_id=None, attempt_id=None, consent="own", most=most,
                    month=month, now=NOW, budget_nano=BUDGET, key_limit_nano=KEY_LIMIT if limited else None,
                    input_tokens=counted,
                )  # fmt: skip
        except NoRoom:
            assert not fits
            return multiple()
        assert fits
        self.open[entry] = (amount, month, key)
        return entry

    @rule(entry=consumes(holds), tokens_in=TOKENS, tokens_out=TOKENS, cost=COSTS, estimated=st.booleans())
    def end(self, entry, tokens_in, tokens_out, cost, estimated):
        usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost=cost)
        with transaction.atomic():
            booked = settle(entry, usage, NOW, estimated=estimated)
            assert settle(entry, Usage(cost=Decimal(1)), NOW) == booked
        if entry in self.open:
            self.close(entry, booked)
            assert not cost or booked == to_nano(cost)

    def close(self, entry, booked):
        _, month, key = self.open.pop(entry)
        self.spent[month, key] += booked or 0
        self.unpriced[month, key] += booked is None

    @rule(entry=consumes(holds))
    def cost_nothing(self, entry):
        with transaction.atomic():
            assert release(entry) is (entry in self.open)
        self.open.pop(entry, None)

    @rule(entry=holds)
    def fail_and_roll_back(self, entry):
        with transaction.atomic():
            settle(entry, Usage(input_tokens=1, output_tokens=1), NOW)
            transaction.set_rollback(True)

    @rule(month=st.sampled_from(MONTHS), cost=COSTS)
    def extra(self, month, cost):
        with transaction.atomic():
            book_extra(
                person_id=self.person.pk, account="codex", engine="codex", model="m", conversation_id=self.chats[0].pk,
                turn_id=None, attempt_id=None, usage=Usage(cost=cost, extra=True), month=month, now=NOW,
            )  # fmt: skip
        self.spent[month, "codex"] += to_nano(cost) if cost else 0
        self.unpriced[month, "codex"] += not cost

    @rule()
    def everything_was_killed(self):
        """BUD-03: after a kill between hold and settlement nothing stays held."""
        with transaction.atomic():
            assert orphans(NOW, grace=timedelta(0)) == len(self.open)
        for entry in Entry.objects.filter(pk__in=self.open):
            self.close(entry.pk, entry.cost_nano)
        assert not self.open
        assert not Entry.objects.filter(state="held").exists()

    @invariant()
    def the_books_agree(self):
        assert check() == []
        kept = {
            (month, account): figures
            for month, account, *figures in MonthTotal.objects.values_list(
                "month", "account", "spent_nano", "held_nano", "unpriced"
            )
        }
        for month in MONTHS:
            for key in (None, *KEYS, "codex"):
                spent = sum(cost for (of, by), cost in self.spent.items() if of == month and key in {None, by})
                unpriced = sum(n for (of, by), n in self.unpriced.items() if of == month and key in {None, by})
                booked = [spent, self.taken(month, key) - spent, unpriced]
                assert kept.get((month, key or ""), [0, 0, 0]) == booked


class TheLedger(TestCase):
    def test_agrees_with_a_second_set_of_books_after_every_step(self):
        """R26–R28, R32, R33: whatever order things happen in, also with steps that fail half way."""
        run_state_machine_as_test(
            Ledger,
            settings=settings(
                max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )


@pytest.mark.django_db
def test_a_total_that_was_tampered_with_is_found_and_set_right(ada):
    """R28: what `doctor` asks."""
    chat = Conversation.objects.create(person=ada, account="openai", created_at=NOW, updated_at=NOW)
    facts = {"person_id": ada.pk, "account": "openai", "engine": "openai", "model": "m", "conversation_id": chat.pk}
    entry = hold(
        **facts, turn_id=None, attempt_id=None, consent="own", most=Decimal("0.1"), month=MONTHS[1], now=NOW,
        budget_nano=None, key_limit_nano=None,
    )  # fmt: skip
    settle(entry, Usage(input_tokens=1, output_tokens=1, cost=Decimal("0.05")), NOW)
    MonthTotal.objects.filter(account="").update(spent_nano=1)
    Conversation.objects.update(held_nano=5)
    found = check()
    assert [(one.account, one.conversation, one.kept[0]) for one in found] == [
        ("", None, 1),
        ("", chat.pk, to_nano(Decimal("0.05"))),
    ]
    assert found[0].counted == (to_nano(Decimal("0.05")), 0, 0)
    assert recount() == 2
    assert check() == []
