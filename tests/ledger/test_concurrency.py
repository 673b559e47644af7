"""Eight writers in two processes on one ledger, on SQLite and on PostgreSQL (R26, R28; BUD-01, SQL-01)."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from conch.money import to_nano

PROCESSES, THREADS = 2, 4
ROOT = Path(__file__).resolve().parents[2]
POSTGRES = os.environ.get("CONCH_TEST_POSTGRES", "")


class Spenders:
    """Processes that carry out orders at the same time."""

    def __init__(self, environment):
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.ledger.spender"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(PROCESSES)
        ]
        for process in self.processes:
            assert json.loads(process.stdout.readline()) == "ready"

    def tell(self, process, **order):
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()

    def one(self, **order):
        """The answer of one of them."""
        self.tell(self.processes[0], **order)
        return json.loads(self.processes[0].stdout.readline())

    def all(self, chats, **order):
        """The answers of every thread of every process, each with chats of its own."""
        for number, process in enumerate(self.processes):
            seed = {"seed": number} if order["do"] == "churn" else {}
            self.tell(process, chats=chats[number * THREADS :][:THREADS], **order, **seed)
        return [answer for process in self.processes for answer in json.loads(process.stdout.readline())]

    def end(self):
        for process in self.processes:
            process.stdin.close()
            process.wait()
            process.stdout.close()


@pytest.fixture(scope="module", params=["sqlite", *(["postgres"] if POSTGRES else [])])
def spenders(request, tmp_path_factory):
    """A database of its own with the processes on it; PostgreSQL where CONCH_TEST_POSTGRES says where it is."""
    data = tmp_path_factory.mktemp("ledger")
    if request.param == "sqlite":
        yield from _spenders(data, f"sqlite:///{data / 'conch.sqlite3'}")
        return
    name = f"conch_ledger_{os.getpid()}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield from _spenders(data, urlsplit(POSTGRES)._replace(path=f"/{name}").geturl())
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _spenders(data, database):
    environment = os.environ | {
        "CONCH_DATA": str(data),
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "conch.settings",
    }
    made = Spenders(environment)
    try:
        made.one(do="migrate")
        yield made
    finally:
        made.end()


@pytest.mark.parametrize(
    ("budget", "spent", "month"), [("1.00", "0.90", "2026-01"), ("0.10", None, "2026-02")], ids=["known", "brand-new"]
)
def test_of_eight_chats_that_send_at_once_only_as_many_pass_as_fit(spenders, budget, spent, month):
    """BUD-01: also for the first use of a brand-new month; whoever is refused is told why."""
    spent = None if spent is None else to_nano(Decimal(spent))
    made = spenders.one(do="prepare", month=month, spent=spent, accounts=["openai"])
    answers = spenders.all(
        made["chats"], do="hold", person=made["person"], month=month, account="openai", amount="0.09",
        budget=to_nano(Decimal(budget)), key_limit=None,
    )  # fmt: skip
    assert sorted(map(str, answers))[1:] == ["budget"] * 7
    assert sum(isinstance(answer, int) for answer in answers) == 1
    kept = spenders.one(do="result", person=made["person"], month=month)
    assert kept["spent"] + kept["held"] <= to_nano(Decimal(budget))
    assert kept["entries"] == 1


def test_a_keys_own_limit_holds_against_all_of_them_and_the_month_gets_back_what_they_took(spenders):
    """R7, R26."""
    made = spenders.one(do="prepare", month="2026-03", spent=None, accounts=["openai"])
    answers = spenders.all(
        made["chats"], do="hold", person=made["person"], month="2026-03", account="openai", amount="0.09",
        budget=to_nano(Decimal(100)), key_limit=to_nano(Decimal("0.30")),
    )  # fmt: skip
    assert sorted(str(answer) for answer in answers if not isinstance(answer, int)) == ["key_limit"] * 5
    kept = spenders.one(do="result", person=made["person"], month="2026-03")
    assert kept["held"] == to_nano(Decimal("0.27"))


def test_the_months_total_equals_its_entries_whatever_eight_writers_do(spenders):
    """R28, SQL-01: no lock error, no deadlock, never past the budget, nothing lost, two accounts and shared chats."""
    made = spenders.one(do="prepare", month="2026-04", spent=None, accounts=["openai", "openrouter"])
    budget = to_nano(Decimal("0.50"))
    answers = spenders.all(
        made["chats"], do="churn", person=made["person"], month="2026-04", accounts=["openai", "openrouter"],
        budget=budget, rounds=25,
    )  # fmt: skip
    assert answers == [0] * 8
    kept = spenders.one(do="result", person=made["person"], month="2026-04")
    assert kept["differences"] == []
    assert (kept["held"], kept["spent"]) == (0, kept["booked"])
    assert 0 < kept["spent"] == kept["taken_from_caps"] <= budget
    assert kept["priced_by"] == ["list", "provider"]
