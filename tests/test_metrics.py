"""Figures for whoever watches over a Conch: right, and for nobody else."""

import logging
from datetime import timedelta
from json import loads

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from conch import metrics
from conch.log import Json, about
from conch.models import Attempt, Conversation, Entry, Turn
from conch.turns import pace
from tests.conftest import make_person

TOKEN = "a-token-for-figures-only"


@pytest.fixture(autouse=True)
def _counted_anew():
    metrics._counted.clear()


@pytest.fixture
def figures(client, db, settings):
    """What /metrics says now, as {name and labels: value}."""
    settings.CONCH_METRICS_TOKEN = TOKEN

    def read():
        metrics._counted.clear()
        answer = client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        families = text_string_to_metric_families(answer.content.decode())
        return {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in families
            for sample in family.samples
        }

    return read


@pytest.mark.parametrize("given", ["", "Bearer wrong", f"Basic {TOKEN}", "Bearer "])
def test_without_the_token_there_is_no_such_page(client, db, settings, given):
    settings.CONCH_METRICS_TOKEN = TOKEN

    assert client.get("/metrics", headers={"authorization": given}).status_code == 404


def test_where_no_token_was_set_an_empty_one_opens_nothing(client, db):
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404


def test_staff_may_look_and_others_may_not(client, db):
    client.force_login(make_person("bob"))
    assert client.get("/metrics").status_code == 404

    client.force_login(make_person("ada", is_staff=True))
    assert client.get("/metrics").status_code == 200


def test_every_figure_says_what_is_there(figures):
    now = timezone.now()
    person = make_person("ada")
    chat = Conversation.objects.create(person=person, account="codex", created_at=now, updated_at=now)
    made = {"conversation": chat, "text": "secret words", "created_at": now - timedelta(seconds=90)}
    turns = [Turn.objects.create(state=state, account="codex", **made) for state in ("done", "failed", "queued")]
    Turn.objects.create(state="done", account="openai", **made)
    Attempt.objects.create(turn=turns[0], run=1, account="codex", model="m", refusal_kind="limit", started_at=now)
    Entry.objects.create(
        person=person, account="openai", engine="openai", model="m", month="2026-10", state="held",
        hold_nano=250_000_000, at=now,
    )  # fmt: skip
    before = figures()["conch_first_text_seconds_count",]
    pace.first_words(0.2)

    said = figures()

    assert said["conch_turns_total", "done"] == 2
    assert said["conch_turns_total", "failed"] == 1
    assert said["conch_turns_total", "interrupted"] == 0
    assert said["conch_refusals_total", "limit"] == 1
    assert said["conch_carried_on_turns_total",] == 1
    assert said["conch_unfinished_turns", "queued"] == 1
    assert 89 < said["conch_queue_age_seconds",] < 120
    assert (said["conch_holds",], said["conch_held_usd",]) == (1, 0.25)
    assert said["conch_first_text_seconds_count",] == before + 1
    assert not [name for name in said if "secret" in str(name)]


def test_however_often_somebody_asks_the_tables_are_read_once_in_a_while(
    client, db, settings, django_assert_num_queries
):
    settings.CONCH_METRICS_TOKEN = TOKEN
    client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})

    with django_assert_num_queries(0):
        client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})


def test_a_line_of_json_says_what_it_is_about_and_no_secret():
    import contextvars

    def line():
        about(turn=12)
        about(account="codex")
        record = logging.LogRecord("conch.turns", logging.INFO, "", 1, "refused sk-made-up-0123456789", (), None)
        record.facts = {"state": "done"}
        return Json().format(record)

    said = loads(contextvars.Context().run(line))

    assert (said["turn"], said["account"], said["state"], said["level"]) == (12, "codex", "done", "info")
    assert said["said"] == "refused sk-…"
    assert "turn" not in loads(Json().format(logging.LogRecord("conch", logging.INFO, "", 1, "later", (), None)))
