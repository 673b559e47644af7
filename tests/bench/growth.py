"""Whether what is asked often grows with what is kept (`python -m tests.bench.growth`).

GET /api/fallback with 10 accounts and a ledger of 1,000,000 rows: the same number of queries as with 10 rows, and its
median within 1.2 times. One run, both in the same process, in a data folder of its own.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime
from statistics import median
from time import perf_counter

ROWS = (10, 1_000_000)
ROUNDS = 300
MOST_RATIO = 1.2


def main() -> int:
    """Print both figures and their ratio; 1 where a bound isn't met."""
    with tempfile.TemporaryDirectory(prefix="conch-bench-") as folder:
        os.environ |= {"CONCH_DATA": folder, "DATABASE_URL": "", "DJANGO_SETTINGS_MODULE": "conch.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        person = _person()
        figures = {}
        for rows in ROWS:
            _fill(person, rows)
            figures[rows] = _measured(person)
            queries, milliseconds = figures[rows]
            print(f"fallback, 10 accounts, {rows:,} ledger rows: {queries} queries, p50 {milliseconds:.2f} ms")
    ratio = figures[ROWS[1]][1] / figures[ROWS[0]][1]
    same = figures[ROWS[0]][0] == figures[ROWS[1]][0]
    print(f"ratio {ratio:.2f} (at most {MOST_RATIO}), {'the same' if same else 'NOT the same'} queries")
    return int(not same or ratio > MOST_RATIO)


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


def _fill(person, rows):
    """A ledger of that many settled rows, over twelve months."""
    from django.db import connection

    from conch import ledger
    from conch.models import Entry

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


def _measured(person):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from routing.api import fallback_plan

    now = datetime.now(UTC)
    for _ in range(20):
        fallback_plan(person, "codex-0", None, now)
    with CaptureQueriesContext(connection) as captured:
        fallback_plan(person, "codex-0", None, now)
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        fallback_plan(person, "codex-0", None, now)
        times.append((perf_counter() - start) * 1000)
    return len(captured), median(times)


if __name__ == "__main__":
    sys.exit(main())
