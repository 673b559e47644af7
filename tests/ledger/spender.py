"""A process that spends from one ledger together with others: orders come on stdin, a line of JSON each.

Every order is carried out by several threads at once, each with a connection of its own; the answers are one line.
"""

import json
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal

import django

THREADS = 4
CAP = 10**12
NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)


def main():
    django.setup()
    orders = {
        "migrate": migrate,
        "prepare": prepare,
        "hold": together(hold_once),
        "churn": together(churn),
        "result": result,
    }
    answer("ready")
    with ThreadPoolExecutor(THREADS) as threads:
        for line in sys.stdin:
            order = json.loads(line)
            answer(orders[order.pop("do")](threads, **order))


def answer(said):
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def migrate(threads):
    from django.core.management import call_command

    call_command("migrate", verbosity=0, skip_checks=True)


def prepare(threads, month, spent, accounts):
    """Make a person with a chat for each thread of each process; return their ids."""
    from conch.models import Account, Conversation, MonthTotal, Person

    person = Person.objects.create(username=f"{month}-{Person.objects.count()}")
    for slug in accounts:
        Account.objects.create(
            person=person,
            slug=slug,
            engine="openai",
            label=slug,
            connected_at=NOW,
            known_models=[{"id": "m", "input_price": "0.000001", "output_price": "0.00001"}],
            key_cap_nano=CAP,
            key_left_nano=CAP,
        )
    if spent is not None:
        MonthTotal.objects.create(person=person, month=month, spent_nano=spent)
        MonthTotal.objects.create(person=person, month=month, account=accounts[0], spent_nano=spent)
    chats = [
        Conversation.objects.create(person=person, account=accounts[0], created_at=NOW, updated_at=NOW).pk
        for _ in range(8)
    ]
    return {"person": person.pk, "chats": chats}


def together(work):
    """Run that work in every thread at once, past a barrier; what each returned, or the name of its error."""

    def run(threads, **order):
        barrier = threading.Barrier(THREADS)

        def one(number):
            from django.db import connection

            connection.ensure_connection()
            barrier.wait()
            try:
                return work(number, **order)
            except Exception as error:  # noqa: BLE001  whatever went wrong is the answer
                return f"{type(error).__name__}: {error}"

        return list(threads.map(one, range(THREADS)))

    return run


def take(person, chat, account, month, amount, budget, key_limit):
    from django.db import transaction

    from conch.ledger import NoRoom, hold

    try:
        with transaction.atomic():
            return hold(
                person_id=person,
                account=account,
                engine="openai",
                model="m",
                conversation_id=chat,
                turn_id=None,
                attempt_id=None,
                consent="own",
                most=amount,
                month=month,
                now=NOW,
                budget_nano=budget,
                key_limit_nano=key_limit,
            )
    except NoRoom as error:
        return error.reason


def hold_once(number, *, person, chats, month, account, amount, budget, key_limit):
    return take(person, chats[number], account, month, Decimal(amount), budget, key_limit)


def churn(number, *, person, chats, month, accounts, budget, rounds, seed):
    """Hold, settle, release and look, over and over; return how often the month was seen past its budget."""
    from django.db import transaction

    from conch.db import step_now
    from conch.engines.base import Usage
    from conch.ledger import release, settle
    from conch.models import MonthTotal

    chance = random.Random(seed * 100 + number)
    past = 0
    for _ in range(rounds):
        account, amount = chance.choice(accounts), Decimal(chance.randrange(1, 200)) / 1000
        entry = take(person, chance.choice(chats), account, month, amount, budget, None)
        total = MonthTotal.objects.filter(person=person, month=month, account="").first()
        past += total is not None and total.spent_nano + total.held_nano > budget
        if not isinstance(entry, int):
            continue
        if chance.random() < 0.3:
            # As the turns do it: grouped with others on the process's writer thread.
            assert step_now(release, entry)
        elif chance.random() < 0.5:
            step_now(settle, entry, Usage(1000, output_tokens=chance.randrange(100)), NOW)
        else:
            with transaction.atomic():
                settle(entry, Usage(1, output_tokens=1, cost=amount / 50), NOW)
    return past


def result(threads, person, month):
    """The month's total, what the entries say, and what doesn't agree."""
    from django.db.models import Sum

    from conch.ledger import check
    from conch.models import Account, Entry, MonthTotal

    total = MonthTotal.objects.get(person=person, month=month, account="")
    entries = Entry.objects.filter(person=person, month=month)
    lefts = Account.objects.filter(person=person).values_list("key_left_nano", flat=True)
    return {
        "spent": total.spent_nano,
        "held": total.held_nano,
        "booked": entries.aggregate(sum=Sum("cost_nano"))["sum"] or 0,
        "entries": entries.count(),
        "priced_by": sorted(set(entries.values_list("priced_by", flat=True))),
        "taken_from_caps": sum(CAP - left for left in lefts),
        "differences": [str(one) for one in check() if one.person_id == person],
    }


if __name__ == "__main__":
    main()
