"""What the soak does inside its Conch's database: people and accounts before, and everything that is there after.

Run as a process of its own, with the environment of that Conch: `python -m tests.soak.inside prepare|plan|dump`, JSON
in and out on one line.
"""

import json
import os
import sys
from pathlib import Path

import django

PLANS = {"codex"}


def main():
    django.setup()
    order = json.loads(sys.stdin.readline())
    sys.stdout.write(json.dumps({"prepare": prepare, "plan": plan, "dump": dump}[sys.argv[1]](**order)) + "\n")


def prepare(accounts, budget=None):
    """Set up the database, its owner and the accounts; return a token. `accounts`: columns, and the key."""
    from django.utils import timezone

    from conch.accounts import tokens
    from conch.accounts.people import make_owner
    from conch.accounts.seal import seal
    from conch.models import Account, Preferences

    migrated()
    owner, now = make_owner(), timezone.now()
    Preferences.objects.filter(person=owner).update(limit_paid=True, month_budget_nano=budget)
    for given in accounts:
        key = given.pop("key", "")
        Account.objects.create(
            person=owner,
            label=given["slug"].title(),
            sealed_key=seal(key),
            key_hint=key[-4:],
            model="gpt-5.5",
            known_models=[{"id": "gpt-5.5", "label": "GPT-5.5"}],
            connected_at=now,
            **given,
        )
    return {"token": tokens.make(owner, "soak", now)}


def migrated():
    """The tables. Made by the migrations once for all tests of a machine where the database is a file, then copied."""
    import contextlib
    import shutil
    import sqlite3
    import tempfile

    from django.core.management import call_command
    from django.db import connection

    kept = Path(tempfile.gettempdir()) / f"conch-migrated-{_of_migrations()}.sqlite3"
    file = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor == "sqlite" and kept.exists():
        shutil.copyfile(kept, file)
        return
    call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    if connection.vendor == "sqlite":
        copying = kept.with_suffix(f".{os.getpid()}")
        with contextlib.closing(sqlite3.connect(file)) as made:
            made.execute("VACUUM INTO ?", [str(copying)])
        copying.replace(kept)


def _of_migrations():
    """A name for what all migrations say, so that a changed one is never missed."""
    from hashlib import sha256

    import conch.migrations

    files = sorted(Path(conch.migrations.__path__[0]).glob("*.py"))
    said = sha256(b"".join(path.read_bytes() for path in files) + django.__version__.encode())
    return said.hexdigest()[:16]


def plan(at, waiting, routines, expired):
    """Turns that wait for each account until then, routines that are due then, temporary chats that are over."""
    from datetime import datetime, timedelta

    from django.utils import timezone

    from conch.models import Account, Conversation, Person, Routine, Turn, TurnEvent

    owner, now, at = Person.objects.get(), timezone.now(), datetime.fromisoformat(at)

    def chat(account, **fields):
        fields = {"created_at": now, "updated_at": now} | fields
        return Conversation.objects.create(person=owner, account=account, **fields)

    for account in Account.objects.values_list("slug", flat=True):
        for number in range(waiting):
            turn = Turn.objects.create(
                conversation=chat(account), text=f"waited {account} {number}", state="waiting", waits_for=account,
                wake_at=at, until=at, waiting_since=now, created_at=now, started_at=now, position=2,
            )  # fmt: skip
            TurnEvent.objects.create(turn=turn, run=1, position=1, kind="queued")
            TurnEvent.objects.create(turn=turn, run=1, position=2, kind="waiting", data={"for": account})
    for number in range(routines):
        Routine.objects.create(
            person=owner, name=f"routine {number}", text=f"routine {number}", account="openai",
            cron=f"{at.minute} {at.hour} * * *", next_at=at, created_at=now,
        )  # fmt: skip
    for _ in range(expired):
        long_ago = now - timedelta(days=3)
        old = chat("openai", temporary=True, created_at=long_ago)
        Turn.objects.create(conversation=old, text="over", state="done", created_at=long_ago, ended_at=long_ago)
    return {}


def dump():
    """Every row that the invariants speak of, and where the ledger's totals differ from its entries."""
    from conch.ledger import check
    from conch.models import Attempt, Entry, MonthTotal, Turn, TurnEvent

    def rows(query, fields):
        return list(query.order_by("pk").values(*fields.split()))

    turn = "id conversation_id idempotency_key text answer state run position account owner failure_code"
    attempt = "id turn_id run account state partial input_tokens output_tokens cost_nano"
    entry = "id turn attempt account state estimated input_tokens output_tokens cost_nano hold_nano priced_by"
    return {
        "turns": rows(Turn.objects, turn),
        "attempts": [
            row | {"ended": ended is not None}
            for row in rows(Attempt.objects, f"{attempt} ended_at")
            for ended in (row.pop("ended_at"),)
        ],
        "entries": rows(Entry.objects, entry),
        "events": rows(TurnEvent.objects, "turn_id run position kind"),
        "months": rows(MonthTotal.objects, "account month spent_nano held_nano unpriced"),
        "differences": [str(one) for one in check()],
    }


if __name__ == "__main__":
    main()
