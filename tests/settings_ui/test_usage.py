"""Budget and spending: windows, sums, plots with a table behind, CSV."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conch.accounts.samples import keep_samples
from conch.models import Conversation, Entry, Line, MonthTotal, Preferences, Turn, Window, WindowSample
from conch.money import to_nano
from tests.conftest import make_account, make_person
from tests.settings_ui.conftest import window


def text_of(response):
    bare = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"[ \n\u00a0]+", " ", bare.replace("&#x27;", "'"))


def entry(person, cost, at, account="openrouter", **fields):
    nano = None if cost is None else to_nano(Decimal(cost))
    given = {"engine": account, "model": "made/up", "state": "settled", "month": f"{at:%Y-%m}", "turn": at.day} | fields
    row = Entry.objects.create(person=person, account=account, cost_nano=nano, at=at, **given)
    for name in ("", account):
        total, _ = MonthTotal.objects.get_or_create(person=person, month=row.month, account=name)
        MonthTotal.objects.filter(pk=total.pk).update(
            spent_nano=total.spent_nano + (nano or 0), unpriced=total.unpriced + (nano is None)
        )
    return row


def test_a_month_is_summed_by_day_and_account_in_the_persons_zone(signed_in):
    """R28: days and months are the person's own."""
    person = signed_in.person
    Preferences.objects.filter(person=person).update(time_zone="America/Los_Angeles")
    make_account(person, "openrouter", label="OpenRouter")
    entry(person, "0.25", datetime(2026, 10, 2, 3, 0, tzinfo=UTC))
    entry(person, "0.50", datetime(2026, 10, 1, 20, 0, tzinfo=UTC))
    entry(make_person("carl"), "9", datetime(2026, 10, 1, 20, 0, tzinfo=UTC))

    response = signed_in.get("/settings/usage?month=2026-10")

    assert "Oct 1 OpenRouter 2 $0.75" in text_of(response), "8 PM of the first in California is the third in UTC"
    assert "$9" not in text_of(response)
    assert response.content.decode().count('<rect class="s0"') == 2, "a bar and its legend"


def test_what_has_no_price_is_said_and_in_no_sum(signed_in):
    """R33: price unknown (3 replies)."""
    now = timezone.now()
    for number in range(3):
        entry(signed_in.person, None, now, turn=number)
    entry(signed_in.person, "0.10", now)

    said = text_of(signed_in.get("/settings/usage"))

    assert "$0.10 + price unknown (3 replies)" in said


def test_what_is_left_of_the_month_is_said(signed_in):
    Preferences.objects.filter(person=signed_in.person).update(month_budget_nano=to_nano(Decimal(10)))
    entry(signed_in.person, "3.10", timezone.now())

    assert "$6.90 of $10.00" in text_of(signed_in.get("/settings/usage"))


def test_the_pace_of_a_window_is_said(signed_in):
    now = timezone.now()
    window(make_account(signed_in.person), 50, now, hours=3)

    said = text_of(signed_in.get("/settings/usage"))

    assert "50% left" in said
    assert "At this pace, full" in said


def test_a_window_over_the_last_days_is_a_line_with_a_table_behind(signed_in):
    now = timezone.now()
    codex = make_account(signed_in.person)
    for hours, used in ((50, 20), (26, 80), (1, 45)):
        window(codex, used, now - timedelta(hours=hours))
        keep_samples(Window.objects.filter(account=codex))
        Window.objects.all().delete()
    window(codex, 50, now)

    response = signed_in.get("/settings/usage")

    points = re.search(r'points="([^"]+)"', response.content.decode())[1].split()
    assert len(points) == 6, "a figure holds until the next"
    assert points[0].endswith(",38.4")
    assert "80% used" in text_of(response)


def test_an_hour_keeps_its_latest_figure(signed_in):
    now = timezone.now().replace(minute=0)
    codex = make_account(signed_in.person)
    for minute, used in ((1, 10), (2, 30)):
        window(codex, used, now.replace(minute=minute))
        keep_samples(Window.objects.filter(account=codex))
        Window.objects.all().delete()

    assert [sample.used_percent for sample in WindowSample.objects.all()] == [30]


def test_an_answer_that_was_carried_on_says_what_it_cost_and_saved(signed_in):
    now = timezone.now()
    chat = Conversation.objects.create(person=signed_in.person, account="codex", created_at=now, updated_at=now)
    turn = Turn.objects.create(
        conversation=chat, text="hi", state="done", created_at=now, cost_nano=to_nano(Decimal("0.02"))
    )
    until = (now + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    data = {"from_label": "Codex", "to_label": "OpenRouter", "to_billing": "key", "until": until}
    Line.objects.create(conversation=chat, turn=turn, kind="limit.routed", data=data, at=now)

    said = text_of(signed_in.get("/settings/usage"))

    assert "Codex OpenRouter $0.02 2 hours of waiting" in said


def test_the_csv_holds_the_month_and_nobody_elses(signed_in):
    entry(signed_in.person, "0.25", datetime(2026, 10, 2, 3, 0, tzinfo=UTC), consent="own")
    entry(make_person("carl"), "9", datetime(2026, 10, 2, 3, 0, tzinfo=UTC))

    response = signed_in.get("/settings/usage.csv?month=2026-10")

    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert [(row["account"], row["cost_usd"], row["consent"]) for row in rows] == [("openrouter", "0.25", "own")]


def test_a_month_that_is_none_is_the_present_one(signed_in):
    for month in ("2026-13", "x", "1999-01", "2026-10'--", ""):
        assert signed_in.get("/settings/usage", {"month": month}).status_code == 200


def test_queries_do_not_grow_with_rows(signed_in):
    def asked():
        with CaptureQueriesContext(connection) as queries:
            assert signed_in.get("/settings/usage").status_code == 200
        return len(queries)

    now = timezone.now()
    make_account(signed_in.person, "openrouter")
    entry(signed_in.person, "0.01", now)
    window(make_account(signed_in.person), 10, now)
    few = asked()
    Entry.objects.bulk_create(
        Entry(person=signed_in.person, account=f"a{number % 7}", engine="openai", model="m", state="settled",
              month=f"{now:%Y-%m}", cost_nano=1000, at=now, turn=number)
        for number in range(1000)
    )  # fmt: skip
    for number in range(20):
        window(make_account(signed_in.person, slug=f"codex-{number}"), 10, now)

    assert asked() == few


def test_a_key_with_a_cap_shows_what_is_left_of_it_beside_the_windows_of_plans(signed_in):
    """Never "doesn't say" where the provider did say."""
    capped = {"key_cap_nano": 5 * 10**9, "key_left_nano": 4 * 10**8}
    make_account(signed_in.person, "openrouter", **capped)
    assert "$0.40 of $5.00 left of its cap." in text_of(signed_in.get("/settings/usage"))
