"""Rows → facts: what is gathered, and that it takes as many queries for one as for a thousand (R10, R12, R21, R28)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conch.models import Account, Conversation, Entry, Line, MonthTotal, Preferences, Refusal, Turn, Window
from routing.decision import decide
from routing.facts import Model, Needs, Run
from routing.known import UnknownAccount, measured, question_for_settings, question_for_turn
from tests.conftest import NOW, make_account, make_person

pytestmark = pytest.mark.django_db

LISTED = [
    {"id": "gpt-5.5", "label": "GPT-5.5", "tools": True, "images": False, "context": 400_000},
    {"id": "gpt-5.5-mini", "label": "GPT-5.5 mini", "context": "n/a", "tools": "yes"},
    {"label": "no id"},
    "nonsense",
]


def make_chat(person, account="codex", **fields):
    return Conversation.objects.create(person=person, account=account, created_at=NOW, updated_at=NOW, **fields)


def make_turn(chat, text="Hello", **fields):
    return Turn.objects.create(conversation=chat, text=text, created_at=NOW, **fields)


def asked(turn, run=None):
    return question_for_turn(turn.pk, run or Run(), NOW)


def way_of(question, slug):
    return next(way for way in question.ways if way.slug == slug)


def test_an_account_is_known_with_its_engine_its_models_and_its_room(ada):
    """R6, R9, R12."""
    codex = make_account(
        ada, "codex", label="Codex", identity="acc:user", whose="ada@work.example", known_models=LISTED
    )
    Window.objects.create(
        account=codex, name="weekly", used_percent=28.0, resets_at=NOW, covers=["opus", 3], read_at=NOW
    )
    Refusal.objects.create(
        account=codex,
        kind="blocked",
        at=NOW,
        retry_at=NOW + timedelta(minutes=15),
        before=[{"name": "weekly", "used_percent": 97, "resets_at": "2026-10-10T12:00:00Z"}, {"name": 3}, 4],
    )
    way = way_of(question_for_settings(ada.pk, "codex", None, NOW), "codex")

    assert (way.billing, way.shares_account, way.identity, way.whose) == (
        "plan",
        "openai-codex",
        "acc:user",
        "ada@work.example",
    )
    assert way.model == Model("gpt-5.5", "GPT-5.5", tools=True, images=False, context=400_000)
    assert (way.windows[0].name, way.windows[0].covers) == ("weekly", ("opus",))
    assert [(window.name, window.used_percent) for window in way.refusals[0].before] == [("weekly", 97)]
    assert way.refusals[0].before[0].resets_at == NOW + timedelta(days=1)


def test_what_a_list_of_models_says_oddly_is_not_known(ada):
    """R9: what isn't known is taken as able."""
    make_account(ada, "codex", model="gpt-5.5-mini", known_models=LISTED)
    way = way_of(question_for_settings(ada.pk, "codex", None, NOW), "codex")

    assert way.model == Model("gpt-5.5-mini", "GPT-5.5 mini")


def test_an_account_without_a_model_takes_the_first_that_is_listed(ada):
    """R12."""
    make_account(ada, "codex", model="", known_models=LISTED)

    assert way_of(question_for_settings(ada.pk, "codex", None, NOW), "codex").model.id == "gpt-5.5"


def test_money_is_read_from_the_running_totals_of_the_month(ada):
    """R28, R7."""
    make_account(ada, "openai", own_limit_nano=5 * 10**9, key_cap_nano=10**10, key_left_nano=3 * 10**9)
    Preferences.objects.filter(pk=ada.pk).update(month_budget_nano=10 * 10**9)
    MonthTotal.objects.create(person=ada, month="2026-10", spent_nano=2 * 10**9, held_nano=10**9)
    MonthTotal.objects.create(person=ada, month="2026-10", account="openai", spent_nano=10**9, held_nano=5 * 10**8)
    MonthTotal.objects.create(person=ada, month="2026-09", spent_nano=9 * 10**9)
    question = question_for_settings(ada.pk, "openai", None, NOW)
    way = way_of(question, "openai")

    assert (question.budget.amount, question.budget.spent, question.budget.held) == (10, 2, 1)
    assert question.budget.ends_at.isoformat() == "2026-11-01T00:00:00+00:00"
    assert (way.own_limit, way.cap, way.cap_left, way.spent, way.held) == (5, 10, 3, 1, Decimal("0.5"))


def test_a_keys_prices_are_for_the_length_of_the_chat(ada):
    """R5, R7: in Settings the typical reply."""
    make_account(ada, "openai", model="gpt-5.5")
    turn = make_turn(make_chat(ada, "openai"))
    settings = way_of(question_for_settings(ada.pk, "openai", None, NOW), "openai")
    short, long = (way_of(measured(asked(turn), Needs(tokens=tokens)), "openai") for tokens in (1_000, 100_000))

    assert settings.per_reply == settings.typical == settings.smallest
    assert 0 < short.smallest < long.smallest
    assert 0 < short.per_reply < long.per_reply
    assert long.typical == settings.typical


def test_a_model_without_a_price_has_none(ada):
    """R33; bad input: a price list without the model."""
    make_account(ada, "openai", model="nobody-knows-it")
    way = way_of(measured(asked(make_turn(make_chat(ada, "openai"))), Needs(tokens=10)), "openai")

    assert (way.typical, way.per_reply, way.smallest) == (None, None, None)


def test_each_account_answers_with_the_model_it_last_answered_with_in_this_chat(ada):
    """R12."""
    make_account(ada, "codex", model="gpt-5.5")
    make_account(ada, "openai", model="gpt-5.5")
    chat = make_chat(ada, "codex", model="gpt-5.4")
    make_turn(chat, account="openai", model="gpt-5.3", state="done", answer="…")
    make_turn(chat, account="openai", model="gpt-5.2", state="done", answer="…")
    make_turn(chat, account="openai", model="gpt-4.1", state="failed")
    make_turn(make_chat(ada, "openai"), account="openai", model="gpt-4", state="done", answer="…")
    question = asked(make_turn(chat))

    assert way_of(question, "codex").model.id == "gpt-5.4"
    assert way_of(question, "openai").model.id == "gpt-5.2"
    assert way_of(question, "openai").default_model.id == "gpt-5.5"
    assert question.chat.last_answered_by == "openai"


def test_a_turn_knows_only_the_answers_before_it(ada):
    """R20: a retry of an older turn."""
    make_account(ada, "codex")
    chat = make_chat(ada)
    first = make_turn(chat)
    make_turn(chat, account="openai", model="m", state="done", answer="…")

    assert asked(first).chat.last_answered_by == ""


def test_the_chat_is_known_with_its_cap_its_stay_and_its_wait(ada):
    """R18, R21, R23."""
    make_account(ada, "codex")
    make_account(ada, "openai")
    chat = make_chat(
        ada,
        "openai",
        spend_cap_nano=2 * 10**9,
        spent_nano=10**9,
        held_nano=1,
        waits_until=NOW,
        stayed_from="codex",
        stayed_from_model="gpt-5.1",
        stayed_consent="paid_on",
    )
    question = asked(make_turn(chat))
    known = question.chat

    assert (known.cap, known.spent, known.held) == (2, 1, Decimal("0.000000001"))
    assert (known.waits_until, known.stayed_from, known.stayed_consent) == (NOW, "codex", "paid_on")
    assert way_of(question, "codex").model.id == "gpt-5.1"


ROUTED = {"from": "codex", "to": "openai", "until": "2026-10-09T16:00:00Z", "folded": None}


def test_the_last_routed_line_stands_until_its_account_came_back(ada):
    """R20, R22."""
    make_account(ada, "codex")
    chat = make_chat(ada)
    turn = make_turn(chat)
    assert asked(turn).chat.last_route is None

    line = Line.objects.create(conversation=chat, kind="limit.routed", data=ROUTED, at=NOW)
    Line.objects.create(conversation=chat, kind="handoff.images", data={}, at=NOW)
    last = asked(turn).chat.last_route
    assert (last.from_, last.to, last.until, last.folded) == ("codex", "openai", NOW + timedelta(hours=4), False)

    Line.objects.filter(pk=line.pk).update(data=ROUTED | {"folded": {"until": None}, "until": "whenever"})
    last = asked(turn).chat.last_route
    assert (last.until, last.folded) == (None, True)

    Line.objects.create(conversation=chat, kind="limit.returned", data={}, at=NOW)
    assert asked(turn).chat.last_route is None


def test_an_account_that_is_gone_is_known_by_its_name_alone(ada):
    """R36."""
    make_account(ada, "codex", label="Codex", removed_at=NOW)
    make_account(ada, "openai", removed_at=NOW)
    question = asked(make_turn(make_chat(ada)))

    assert (question.ways, question.chat.account_label) == ((), "Codex")
    assert decide(question, NOW).failure.code == "no_account"


def test_an_account_of_an_engine_that_is_not_installed_answers_nothing(ada):
    """R10: and it never costs."""
    make_account(ada, "gone-engine")
    way = way_of(question_for_settings(ada.pk, "gone-engine", None, NOW), "gone-engine")

    assert (way.billing, way.state) == ("key", "disabled")


def test_offline_fallback_unset_is_on_only_where_the_person_gave_a_model(ada, monkeypatch, tmp_path):
    """Preferences: off while there is only the tiny built-in one."""
    import routing.known

    make_account(ada, "codex")
    for url, expected in (("", False), ("http://127.0.0.1:9", True)):
        monkeypatch.setenv("CONCH_LOCAL_URL", url)
        monkeypatch.setattr(routing.known, "_kept_local", None)
        assert question_for_settings(ada.pk, "codex", None, NOW).preferences.offline_fallback is expected
    Preferences.objects.filter(pk=ada.pk).update(offline_fallback=False)
    assert question_for_settings(ada.pk, "codex", None, NOW).preferences.offline_fallback is False
    monkeypatch.setattr(routing.known, "_kept_local", None)


def test_odd_preferences_say_nothing(ada):
    """Bad input: an order of anything, a person without a row."""
    make_account(ada, "codex")
    Preferences.objects.filter(pk=ada.pk).update(limit_order=["gone", 3, None, "codex"], month_budget_nano=-5)
    question = question_for_settings(ada.pk, "codex", None, NOW)
    assert (question.preferences.limit_order, question.budget.amount) == (("gone", "codex"), Decimal("-0.000000005"))

    Preferences.objects.filter(pk=ada.pk).update(limit_order="codex")
    assert question_for_settings(ada.pk, "codex", None, NOW).preferences.limit_order == ()

    Preferences.objects.filter(pk=ada.pk).delete()
    assert question_for_settings(ada.pk, "codex", None, NOW).preferences.limit_fallback == "auto"


def test_what_is_another_persons_is_not_there(ada, bob):
    """doors.md: another's is 404."""
    make_account(bob, "codex")
    chat = make_chat(bob)
    make_account(ada, "openai")

    for slug, conversation in (("codex", None), ("openai", chat.pk), ("openai", 0), ("gone", None)):
        with pytest.raises(UnknownAccount):
            question_for_settings(ada.pk, slug, conversation, NOW)
    with pytest.raises(UnknownAccount):
        question_for_turn(0, Run(), NOW)
    assert [way.slug for way in asked(make_turn(make_chat(ada, "openai"))).ways] == ["openai"]


def a_life(person, many):
    """Accounts, windows, refusals, chats, turns, lines, ledger rows and months, so many of each."""
    accounts = [make_account(person, "codex", f"codex-{n}", identity=str(n)) for n in range(many)]
    Window.objects.bulk_create(
        Window(account=account, name=name, used_percent=50, read_at=NOW)
        for account in accounts
        for name in ("5-hour", "weekly")
    )
    later = NOW + timedelta(minutes=9)
    Refusal.objects.bulk_create(Refusal(account=one, kind="refused", at=NOW, retry_at=later) for one in accounts)
    chat = make_chat(person, "codex-0")
    Conversation.objects.bulk_create(
        Conversation(person=person, account="codex-0", created_at=NOW, updated_at=NOW) for _ in range(many)
    )
    Turn.objects.bulk_create(
        Turn(conversation=chat, text="x", account="codex-1", state="done", created_at=NOW) for _ in range(many)
    )
    Line.objects.bulk_create(Line(conversation=chat, kind="limit.routed", data=ROUTED, at=NOW) for _ in range(many))
    Entry.objects.bulk_create(
        Entry(person=person, account="a", engine="openai", model="m", month="2026-10", state="settled", at=NOW)
        for _ in range(many)
    )
    MonthTotal.objects.bulk_create(MonthTotal(person=person, month="2026-10", account=f"a{n}") for n in range(many))
    return chat, make_turn(chat)


def queries(read):
    read()  # what is compiled or looked up once
    with CaptureQueriesContext(connection) as captured:
        read()
    return len(captured)


def test_a_thousand_rows_take_as_many_queries_as_ten(ada, bob):
    """R28, design.md: a fixed number of queries."""
    counts = []
    for person, many in ((ada, 10), (bob, 1_000)):
        chat, turn = a_life(person, many)
        counts.append(
            (
                queries(lambda turn=turn: question_for_turn(turn.pk, Run(), NOW)),
                queries(lambda person=person: question_for_settings(person.pk, "codex-0", None, NOW)),
                queries(lambda person=person, chat=chat: question_for_settings(person.pk, "codex-0", chat.pk, NOW)),
            )
        )

    assert counts[0] == counts[1] == (9, 6, 10)


def test_a_second_person_with_the_same_slugs_changes_nothing(ada):
    """Slugs are one person's own."""
    other = make_person("eve")
    make_account(ada, "codex")
    full = make_account(other, "codex")
    Window.objects.create(account=full, name="5-hour", used_percent=100, read_at=NOW)
    MonthTotal.objects.create(person=other, month="2026-10", account="codex", spent_nano=5)

    way = way_of(question_for_settings(ada.pk, "codex", None, NOW), "codex")
    assert (way.windows, way.spent) == ((), 0)
    assert Account.objects.count() == 2
