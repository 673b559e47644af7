"""Pages over much that is kept (`python -m tests.bench.pages`): a long chat, many accounts, a long ledger.

As a browser asks for them, of Conch as `make run` serves it: the time is that of the whole request over loopback.
"""

import gzip
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from statistics import median
from urllib.parse import urlsplit

from tests.bench.place import REPLY, Place

TURNS, ACCOUNTS, ROWS = 1_000, 30, 100_000
ROUNDS = 20


def fetched(place, path, cookie):
    """A page as it comes compressed, and the middle of its times in milliseconds."""
    parts = urlsplit(place.conch)
    connection, times, body = HTTPConnection(parts.hostname, parts.port, timeout=60), [], b""
    for _ in range(ROUNDS):
        start = time.perf_counter()
        connection.request("GET", path, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - start) * 1e3)
        assert answer.status == 200, (path, answer.status, body[:300])
        if answer.getheader("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
    return body, median(times)


def signed_in(person):
    """The cookie of a session of that person's."""
    from django.conf import settings
    from django.test import Client

    browser = Client()
    browser.force_login(person)
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


def long_chat(place):
    from conch.models import Conversation, Turn

    now = datetime.now(UTC)
    chat = Conversation.objects.create(
        person=place.person, account="answers", title="Long", created_at=now, updated_at=now
    )
    answer = "A paragraph of some words, with *emphasis* and `code`, as answers are.\n\n- one\n- two\n\n" * 4
    Turn.objects.bulk_create(
        Turn(
            conversation=chat,
            text=f"Question {number}, of one sentence.",
            answer=answer,
            account="answers",
            model="gpt-5.5",
            state="done",
            created_at=now - timedelta(minutes=TURNS - number),
            ended_at=now,
        )
        for number in range(TURNS)
    )
    return chat


def ledger(place):
    from django.db import connection

    from conch import ledger

    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO conch_entry (person_id, account, engine, model, month, state, cost_nano, hold_nano, priced_by,"
            " estimated, consent, extra, at, input_tokens, output_tokens)"
            " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %s)"
            " SELECT %s, 'key', 'openai', 'gpt-5.5', '2026-' || substr('0' || (1 + i %% 12), -2), 'settled', 1000,"
            " 0, 'list', 0, 'own', 0, '2026-01-01 00:00:00', 10, 10 FROM n",
            [ROWS, place.person.pk],
        )
    ledger.recount()


def run(place, cookie):
    chat = long_chat(place)
    body, took = fetched(place, f"/c/{chat.pk}", cookie)
    packed = len(gzip.compress(body)) / 1000
    later = b"Question 999" in body and b"Question 1," not in body
    print(
        f"a chat of {TURNS:,} turns: first page {took:.0f} ms (at most 150), {packed:.0f} kB compressed (at most 100),"
        f" {'older ones on demand' if later else 'ALL OF IT AT ONCE'}"
    )
    _, providers = fetched(place, "/settings/providers", cookie)
    print(f"Settings, Providers, with {ACCOUNTS} accounts: {providers:.0f} ms (at most 60)")
    ledger(place)
    _, admin = fetched(place, "/admin/conch/entry/", cookie)
    print(f"the admin's page of a ledger of {ROWS:,} rows: {admin:.0f} ms (at most 300)")
    return took > 150 or packed > 100 or not later or providers > 60 or admin > 300


def main():
    with tempfile.TemporaryDirectory(prefix="conch-bench-", ignore_cleanup_errors=True) as folder:
        place = Place(folder)
        try:
            place.plan("answers", [REPLY])
            place.key("key", [REPLY])
            for number in range(ACCOUNTS - 2):
                place.plan(f"more-{number}", [REPLY])
            place.start()
            return int(run(place, signed_in(place.person)))
        finally:
            place.stop()


if __name__ == "__main__":
    sys.exit(main())
