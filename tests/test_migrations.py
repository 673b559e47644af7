"""An upgrade loses nothing: a database as the first version left it, with rows in it, migrated to the present one."""

import os
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections, transaction
from django.db.migrations.executor import MigrationExecutor

from conch.configuration import env
from conch.models import (
    Account,
    Agent,
    Attachment,
    Attempt,
    Conversation,
    Entry,
    Line,
    MonthTotal,
    Person,
    Picture,
    Preferences,
    Refusal,
    Turn,
    TurnEvent,
    Window,
)
from tests.conftest import NOW

pytestmark = pytest.mark.django_db

FIRST = ("conch", "0001_initial")
POSTGRES = os.environ.get("CONCH_TEST_POSTGRES", "")
OLD = "upgraded"
CHATS, TURNS = 8, 3
KEPT = (Person, Preferences, Account, Window, Refusal, Conversation, Turn, TurnEvent, Attempt, Line, Entry, MonthTotal)


@pytest.fixture(params=["sqlite", *(["postgresql"] if POSTGRES else [])])
def old(request, tmp_path):
    """An empty database of its own beside the tests'; what stands in it is the test's."""
    name = f"conch_upgraded_{os.getpid()}"
    if request.param == "sqlite":
        settings = env.db_url_config(f"sqlite:///{tmp_path}/old.sqlite3")
    else:
        with psycopg.connect(POSTGRES, autocommit=True) as server:
            server.execute(f"CREATE DATABASE {name}")
        settings = env.db_url_config(POSTGRES) | {"NAME": name}
    connections.databases[OLD] = connections.databases["default"] | {"OPTIONS": {}} | settings
    connections.configure_settings(connections.databases)
    try:
        with request.getfixturevalue("django_db_blocker").unblock():
            yield connections[OLD]
    finally:
        connections[OLD].close()
        del connections[OLD]
        del connections.databases[OLD]
        if request.param == "postgresql":
            with psycopg.connect(POSTGRES, autocommit=True) as server:
                server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def migrated(connection, *targets):
    executor = MigrationExecutor(connection)
    executor.migrate(targets or executor.loader.graph.leaf_nodes())
    return executor.loader.project_state(targets or executor.loader.graph.leaf_nodes()).apps


def fill(then):
    """What a person of the first version had: chats with answers, a limit, money, images sent more than once."""

    def rows(name):
        return then.get_model("conch", name).objects.using(OLD)

    ada = rows("Person").create(username="ada", is_owner=True)
    rows("Preferences").create(person=ada, limit_fallback="openai", limit_order=["codex"], month_budget_nano=10**10)
    codex = rows("Account").create(
        person=ada, slug="codex", engine="codex", label="Codex", model="gpt-5.5", sealed_key="", connected_at=NOW
    )
    rows("Account").create(
        person=ada,
        slug="openai",
        engine="openai",
        label="OpenAI",
        sealed_key="gAAAA",
        key_hint="4f2a",
        connected_at=NOW,
    )
    rows("Window").create(account=codex, name="weekly", used_percent=28.5, resets_at=NOW, read_at=NOW)
    rows("Refusal").create(account=codex, kind="blocked", at=NOW, retry_at=NOW + timedelta(hours=2))
    for number in range(CHATS):
        chat = rows("Conversation").create(
            person=ada, title=f"Chat {number}", account="codex", created_at=NOW, updated_at=NOW
        )
        for place in range(TURNS):
            turn = rows("Turn").create(
                conversation=chat,
                text=f"Question {place} of chat {number}: what moves the tides?",
                answer=f"Answer {place}: the moon, mostly.",
                state="done" if place < TURNS - 1 else ("waiting", "queued", "failed", "capped")[number % 4],
                account="codex",
                created_at=NOW,
            )
            rows("TurnEvent").create(turn=turn, run=1, position=1, kind="queued")
            rows("Attempt").create(turn=turn, run=1, account="codex", model="gpt-5.5", state="done", started_at=NOW)
            rows("Line").create(conversation=chat, turn=turn, kind="limit.returned", data={"account": "codex"}, at=NOW)
            rows("Entry").create(
                person=ada, account="openai", engine="openai", model="gpt-5.5", conversation=chat.pk, turn=turn.pk,
                month="2026-10", state="settled", cost_nano=12_345, at=NOW,
            )  # fmt: skip
        image = f"picture {number % 3}".encode() + bytes(range(256))
        rows("Attachment").create(
            person=ada, turn=turn, media_type="image/png", name="a.png", sha256="", data=image, created_at=NOW
        )
    rows("MonthTotal").create(person=ada, month="2026-10", spent_nano=12_345 * CHATS * TURNS)


def test_a_database_of_the_first_version_comes_to_the_present_one_with_all_that_was_in_it(old):
    then = migrated(old, FIRST)
    with transaction.atomic(using=OLD):
        fill(then)
    before = {model: then.get_model("conch", model.__name__).objects.using(OLD).count() for model in KEPT}

    migrated(old)

    assert {model: model.objects.using(OLD).count() for model in KEPT} == before
    assert before[Turn] == CHATS * TURNS
    ada = Person.objects.using(OLD).get()
    assert (ada.preferences.limit_fallback, ada.preferences.month_budget_nano) == ("openai", 10**10)
    assert {(row.slug, row.sealed_key) for row in ada.accounts.all()} == {("codex", ""), ("openai", "gAAAA")}
    states = Turn.objects.using(OLD).values_list("state", flat=True)
    assert {state: list(states).count(state) for state in ("waiting", "queued", "failed", "capped")} == dict.fromkeys(
        ("waiting", "queued", "failed", "capped"), CHATS // 4
    )
    spent = sum(Entry.objects.using(OLD).values_list("cost_nano", flat=True))
    assert Decimal(spent) == MonthTotal.objects.using(OLD).get().spent_nano
    pictures = Picture.objects.using(OLD)
    assert (pictures.count(), Attachment.objects.using(OLD).count()) == (3, CHATS)
    for row in Attachment.objects.using(OLD).select_related("picture", "turn__conversation"):
        number = int(row.turn.conversation.title.removeprefix("Chat "))
        assert bytes(row.picture.data) == f"picture {number % 3}".encode() + bytes(range(256))
        assert row.picture.person_id == ada.pk
    what_was_said_before_is_found_by_the_index_that_came_later(old)
    regretted_it_goes_back_with_the_images(old)


def what_was_said_before_is_found_by_the_index_that_came_later(old):
    found = {
        "sqlite": "SELECT count(*) FROM conch_search WHERE conch_search MATCH 'moon'",
        "postgresql": "SELECT count(*) FROM conch_search WHERE words @@ to_tsquery('simple', 'moon')",
    }
    with old.cursor() as cursor:
        cursor.execute(found[old.vendor])
        ended = CHATS * TURNS - 3 * CHATS // 4
        assert cursor.fetchone()[0] == ended
        # What is written from now on is found too: the triggers stand.
        turn = Turn.objects.using(OLD).first()
        Turn.objects.using(OLD).create(
            conversation=turn.conversation, text="now", answer="the moon", state="done", created_at=NOW
        )
        cursor.execute(found[old.vendor])
        assert cursor.fetchone()[0] == ended + 1


def regretted_it_goes_back_with_the_images(old):
    """As far as the version before images were kept once."""
    then = migrated(old, ("conch", "0008_tool_calls"))

    rows = then.get_model("conch", "Attachment").objects.using(OLD)
    assert {bytes(row.data)[:9] for row in rows} == {b"picture 0", b"picture 1", b"picture 2"}
    assert rows.count() == CHATS


def test_no_model_has_changed_without_a_migration():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    assert Agent in apps.get_app_config("conch").get_models()
