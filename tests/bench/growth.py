"""Whether what is asked often grows with what is kept (`python -m tests.bench.growth`).

Ten times the chats, turns and rows of the ledger: the same number of queries, and medians within 1.2 times. One run,
all in the same process, in a data folder of its own.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter

SIZES = ((200, 100_000), (2_000, 1_000_000))  # chats of ten turns, rows of the ledger
TURNS_A_CHAT = 10
ROUNDS = 200
MOST_RATIO = 1.2


def main() -> int:
    """Print the figures and their ratios; 1 where a bound isn't met."""
    with tempfile.TemporaryDirectory(prefix="conch-bench-") as folder:
        os.environ |= {"CONCH_DATA": folder, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "conch.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        person = _person()
        asked = _asked(person)
        figures = []
        for chats, rows in SIZES:
            _fill(person, chats, rows)
            figures.append({words: _measured(ask) for words, ask in asked.items()})
    missed = False
    for words in asked:
        (queries, before), (more_queries, after) = figures[0][words], figures[1][words]
        ratio = after / before
        missed = missed or queries != more_queries or ratio > MOST_RATIO
        print(
            f"{words}, over ten times as much: {queries} and {more_queries} queries,"
            f" p50 {before:.2f} and {after:.2f} ms, {ratio:.2f} times (at most {MOST_RATIO})"
        )
    return int(missed)


def _asked(person):
    """What is asked often, by its name."""
    from django.db import transaction

    from conch.api.conversations import _page, _whole
    from conch.models import Conversation
    from conch.turns.accept import accept
    from conch.turns.begin import begin
    from conch.turns.gathering import RunSoFar
    from routing.api import fallback_plan

    now = datetime.now(UTC)
    chat = Conversation.objects.create(person=person, account="codex-0", created_at=now, updated_at=now).pk
    _turns([chat], 0)

    def turn():
        with transaction.atomic():
            begin(accept(person.pk, chat, "hi", now).turn_id, "bench/1/1", RunSoFar(), now)
            transaction.set_rollback(True)

    return {
        "fallback with 10 accounts": lambda: fallback_plan(person, "codex-0", None, now),
        "a turn taken in and begun": turn,
        "a page of conversations": lambda: _page(person.pk, None, 50),
        "a chat with its turns": lambda: _whole(person.pk, chat, None, 50, now),
    }


def _person():
    from conch.models import Account, Person, Preferences, Window

    now = datetime.now(UTC)
    person = Person.objects.create(username="ada", is_owner=True)
    Preferences.objects.create(person=person, month_budget_nano=10**10)
    for number in range(10):
        engine = ("codex", "anthropic", "openai")[number % 3]
        account = Account.objects.create(
            person=person,
            engine=engine,
            slug=f"{engine}-{number}",
            label=engine.title(),
            identity=f"a{number}:u{number}",
            model="gpt-5.5",
            connected_at=now,
        )
        for name, used in (("5-hour", 20.0 + number), ("weekly", 40.0)):
            Window.objects.create(account=account, name=name, used_percent=used, read_at=now)
    return person


def _fill(person, chats, rows):
    """So many chats, and a ledger of so many settled rows over twelve months."""
    from django.db import connection

    from conch import ledger
    from conch.models import Conversation, Entry

    now, had = datetime.now(UTC), Conversation.objects.count()
    made = Conversation.objects.bulk_create(
        Conversation(
            person=person, account="codex-0", title=f"Chat {number}", created_at=now, updated_at=_at(now, number)
        )
        for number in range(had, chats)
    )
    _turns([chat.pk for chat in made], had)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO conch_entry (person_id, account, engine, model, month, state, cost_nano, hold_nano, priced_by,"
            " estimated, consent, extra, at, input_tokens, output_tokens)"
            " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)"
            " SELECT %s, 'openai-2', 'openai', 'gpt-5.5', '2026-' || substr('0' || (1 + i %% 12), -2), 'settled', 1000,"
            " 0, 'list', 0, 'own', 0, '2026-01-01 00:00:00', 10, 10 FROM n",
            [rows - Entry.objects.count(), person.pk],
        )
    ledger.recount()


def _at(now, number):
    return now - timedelta(minutes=number)


def _turns(chats, seed):
    from conch.models import Turn

    at = datetime.now(UTC) - timedelta(days=1)
    Turn.objects.bulk_create(
        Turn(
            conversation_id=chat,
            text=f"Question {seed}",
            answer="An answer. " * 20,
            account="codex-0",
            model="gpt-5.5",
            state="done",
            text_tokens=8,
            answer_tokens=60,
            created_at=at,
            ended_at=at,
        )
        for chat in chats
        for _ in range(TURNS_A_CHAT)
    )


def _measured(ask):
    """How many queries it takes, and the middle of its times in milliseconds."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    for _ in range(20):
        ask()
    with CaptureQueriesContext(connection) as captured:
        ask()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        ask()
        times.append((perf_counter() - start) * 1000)
    return len(captured), median(times)


if __name__ == "__main__":
    sys.exit(main())
