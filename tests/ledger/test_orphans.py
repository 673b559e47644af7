"""Holds that nobody will settle any more (R26, BUD-03)."""

from datetime import timedelta
from decimal import Decimal

import pytest

from conch.ledger import check, hold, orphans
from conch.models import Attempt, Conversation, Entry, MonthTotal, PriceOverride, Turn
from conch.money import to_nano
from tests.conftest import NOW, make_account

pytestmark = pytest.mark.django_db
ENDED = NOW + timedelta(minutes=5)
LATER = NOW + timedelta(minutes=10)


@pytest.fixture
def chat(ada):
    PriceOverride.objects.create(engine="openai", model="m", input_per_million=5, output_per_million=30)
    make_account(ada, "openai")
    return Conversation.objects.create(person=ada, account="openai", created_at=NOW, updated_at=NOW)


def left_behind(chat, *, turn="interrupted", attempt="running", partial="", answer="", counted=1000, **facts):
    made = Turn.objects.create(
        conversation=chat,
        state=turn,
        text="Hello",
        answer=answer,
        created_at=NOW,
        ended_at=None if turn in {"running", "waiting"} else ENDED,
    )
    tried = Attempt.objects.create(
        turn=made, run=1, account="openai", model="m", state=attempt, partial=partial, started_at=NOW
    )
    given = {
        "person_id": chat.person_id, "account": "openai", "engine": "openai", "model": "m",
        "conversation_id": chat.pk, "turn_id": made.pk, "attempt_id": tried.pk, "consent": "own",
        "most": Decimal("0.5"), "month": "2026-10", "now": NOW, "budget_nano": None, "key_limit_nano": None,
        "input_tokens": counted,
    }  # fmt: skip
    return hold(**given | facts)


def test_the_hold_of_a_turn_that_runs_is_left_alone(chat):
    """BUD-03: however long it runs."""
    left_behind(chat, turn="running")
    assert orphans(LATER + timedelta(days=2)) == 0
    assert Entry.objects.get().state == "held"


def test_a_turn_that_has_just_ended_is_left_to_whoever_ran_it(chat):
    left_behind(chat)
    assert orphans(ENDED + timedelta(seconds=30)) == 0
    assert orphans(ENDED + timedelta(seconds=30), grace=timedelta(0)) == 1


@pytest.mark.parametrize(
    ("partial", "answer", "booked"), [("", "", "0.005"), ("", "x" * 401, "0.00803"), ("x" * 8, "", "0.00506")]
)
def test_what_may_have_been_paid_for_is_booked_as_an_estimate(chat, partial, answer, booked):
    """BUD-03, R26: the prompt as it was counted, and what had arrived."""
    left_behind(chat, partial=partial, answer=answer)
    assert orphans(LATER) == 1
    entry = Entry.objects.get()
    assert (entry.state, entry.estimated, entry.cost_nano) == ("settled", True, to_nano(Decimal(booked)))
    assert MonthTotal.objects.get(account="").held_nano == 0
    assert check() == []
    assert orphans(LATER) == 0


@pytest.mark.parametrize("state", ["passed", "refused"])
def test_what_surely_cost_nothing_is_released(chat, state):
    """R26: passed over, or refused before its first word."""
    left_behind(chat, attempt=state)
    assert orphans(LATER) == 1
    assert not Entry.objects.exists()
    assert check() == []


def test_what_was_refused_after_its_first_words_is_paid_for(chat):
    """R17."""
    left_behind(chat, attempt="refused", partial="It begins")
    orphans(LATER)
    assert Entry.objects.get().cost_nano > 0


def test_the_hold_of_a_chat_that_was_deleted_is_settled_too(chat):
    """BUD-03: the ledger outlives what it speaks of."""
    left_behind(chat, counted=None)
    chat.delete()
    assert orphans(LATER) == 1
    assert Entry.objects.get().cost_nano == to_nano(Decimal("0.5"))
    assert check() == []


def test_a_waiting_turn_holds_nothing(chat):
    left_behind(chat, turn="waiting")
    assert orphans(LATER) == 1
    assert MonthTotal.objects.get(account="").held_nano == 0
