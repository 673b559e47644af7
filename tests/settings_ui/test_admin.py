"""The admin: what staff see, and what nobody sees."""

import re
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conch.admin.prices import odd
from conch.models import Conversation, Entry, MonthTotal, Person, PriceOverride
from tests.conftest import make_account
from tests.settings_ui.conftest import blocked, window

PRICE = {"engine": "openai", "model": "made-up", "input_per_million": "3", "output_per_million": "15"}


def entries(person, number, now):
    Entry.objects.bulk_create(
        Entry(person=person, account="openrouter", engine="openrouter", model="made/up", state="settled",
              month="2026-10", cost_nano=20_000_000, consent="own", at=now)
        for _ in range(number)
    )  # fmt: skip
    MonthTotal.objects.get_or_create(person=person, month="2026-10", account="openrouter")


def test_staff_only(visitor):
    assert visitor.get("/admin/").status_code == 302
    assert visitor.get("/admin/conch/entry/").status_code == 302


def test_accounts_show_room_and_never_a_secret(signed_in):
    account = make_account(signed_in.person, sealed_key="gAAAA-sealed", key_fingerprint="f1f1f1", key_hint="4f2a")
    window(account, 93, timezone.now())
    blocked(account, timezone.now())

    pages = signed_in.get("/admin/conch/account/").content.decode()
    pages += signed_in.get(f"/admin/conch/account/{account.pk}/change/").content.decode()

    assert "93%" in pages
    assert "gAAAA-sealed" not in pages
    assert "f1f1f1" not in pages


def test_the_ledger_cannot_be_changed(signed_in):
    entries(signed_in.person, 1, timezone.now())
    row = Entry.objects.get()

    changed = signed_in.post(f"/admin/conch/entry/{row.pk}/change/", {"cost_nano": 0})

    assert changed.status_code == 403
    assert signed_in.get("/admin/conch/entry/add/").status_code == 403
    assert signed_in.post(f"/admin/conch/entry/{row.pk}/delete/", {"post": "yes"}).status_code == 403
    row.refresh_from_db()
    assert row.cost_nano == 20_000_000


def test_the_ledger_is_filtered_and_summed(signed_in):
    entries(signed_in.person, 3, timezone.now())

    everything = signed_in.get("/admin/conch/entry/").content.decode()
    none = signed_in.get("/admin/conch/entry/?month=2026-09").content.decode()
    filtered = signed_in.get("/admin/conch/entry/?month=2026-10&account=openrouter&consent__exact=own").content.decode()

    assert "3 entries: $0.06 spent" in everything
    assert "0 entries: $0.00 spent" in none
    assert "3 entries: $0.06 spent" in filtered


def test_the_ledger_can_be_taken_along(signed_in):
    entries(signed_in.person, 2, timezone.now())
    posted = {"action": "as_csv", "_selected_action": [row.pk for row in Entry.objects.all()]}

    response = signed_in.post("/admin/conch/entry/", posted)

    assert b"".join(response.streaming_content).decode().count("openrouter,openrouter,made/up") == 2


def test_queries_do_not_grow_with_the_ledger(signed_in):
    def asked():
        with CaptureQueriesContext(connection) as queries:
            assert signed_in.get("/admin/conch/entry/").status_code == 200
        return len(queries)

    entries(signed_in.person, 10, timezone.now())
    asked()
    few = asked()
    entries(signed_in.person, 1000, timezone.now())

    assert asked() == few


def test_conversations_show_nothing_that_was_said(signed_in):
    now = timezone.now()
    told = {"title": "A secret plan", "instructions": "Whisper", "account": "codex"}
    chat = Conversation.objects.create(person=signed_in.person, created_at=now, updated_at=now, **told)

    listed = signed_in.get("/admin/conch/conversation/").content.decode()

    assert "codex" in listed
    assert "secret" not in listed
    assert signed_in.get(f"/admin/conch/conversation/{chat.pk}/change/").status_code in {302, 403}
    assert signed_in.get(f"/admin/conch/conversation/{chat.pk}/history/").status_code in {302, 403, 404}


def test_a_price_has_one_unit_and_it_is_shown(signed_in):
    """BUD-07."""
    page = signed_in.get("/admin/conch/priceoverride/add/").content.decode()

    assert page.count("USD per 1,000,000 tokens") == 3


def test_an_ordinary_price_is_kept_at_once(signed_in):
    assert signed_in.post("/admin/conch/priceoverride/add/", PRICE).status_code == 302
    assert PriceOverride.objects.get().input_per_million == 3


@pytest.mark.parametrize(
    "odd_price",
    [
        {"input_per_million": "3000"},
        {"output_per_million": "9000"},
        {"input_per_million": "0", "output_per_million": "0"},
    ],
)
def test_an_absurd_price_is_asked_for_again(signed_in, odd_price):
    """BUD-07: > $1,000 per 1M, or a reply > $5, ask again; a table of zeros would book every reply as free."""
    first = signed_in.post("/admin/conch/priceoverride/add/", PRICE | odd_price)

    assert first.status_code == 200
    assert not PriceOverride.objects.exists()
    assert re.search(r'type="checkbox"[^>]*name="confirm"|name="confirm"[^>]*type="checkbox"', first.content.decode())
    assert signed_in.post("/admin/conch/priceoverride/add/", PRICE | odd_price | {"confirm": "on"}).status_code == 302


def test_a_price_below_zero_is_none(signed_in):
    response = signed_in.post("/admin/conch/priceoverride/add/", PRICE | {"input_per_million": "-1", "confirm": "on"})

    assert "A price can’t be below zero." in response.content.decode().replace("&#x27;", "’")


def test_what_is_odd():
    assert odd(Decimal(3), Decimal(15)) == ""
    assert "would cost" in odd(Decimal(1001), Decimal(1))
    assert odd(None, Decimal(1)) == ""


def test_the_owner_cannot_be_deleted(signed_in):
    owner = Person.objects.get(is_owner=True)

    assert signed_in.post(f"/admin/conch/person/{owner.pk}/delete/", {"post": "yes"}).status_code == 403


def test_somebody_is_invited_by_a_link_that_signs_in_once(signed_in, client):
    person = Person.objects.create(username="carl")
    posted = {"action": "signin_link", "_selected_action": [person.pk]}

    page = signed_in.post("/admin/conch/person/", posted, follow=True).content.decode()

    link = re.search(r"http://testserver(/signin/[\w-]+)", page)[1]
    assert client.post(link).status_code == 302
    assert client.get("/settings/you").status_code == 200
    assert client.post(link).status_code == 410


def test_nobody_else_makes_the_owners_link(visitor, signed_in):
    Person.objects.filter(username="bob").update(is_staff=True, is_superuser=True)
    owner = Person.objects.get(is_owner=True)
    posted = {"action": "signin_link", "_selected_action": [owner.pk]}

    page = visitor.post("/admin/conch/person/", posted, follow=True).content.decode()

    assert "/signin/" not in page.replace("/signin/out", "")
    assert "The owner makes their own links." in page
