"""Conversations and turns by the API, with a simulated provider behind."""

import json

import pytest
from django.utils import timezone

from conch.accounts import seal
from conch.models import Conversation, Turn
from tests.api.site import caller
from tests.conftest import NOW, make_account, make_person

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-made-up-0123456789abcdef"
IDS = {"id", "title", "account", "model", "agent", "tools", "spend_cap", "spent", "waits_until", "created_at"}


@pytest.fixture
def provider(simulator, ada):
    """A key of ada's at the simulator."""
    simulator.key(KEY)
    make_account(ada, "openai", sealed_key=seal.seal(KEY), base_url=simulator.base_urls["openai"])
    ada.is_owner = True
    ada.save()
    return simulator


@pytest.fixture
def chat(call, provider):
    return f"/api/conversations/{call.post('/api/conversations', json={'account': 'openai'}).json()['id']}"


def events(response):
    """(id, kind, data) of every event of a stream."""
    found = []
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def test_a_conversation_starts_with_what_is_said_or_the_defaults(call, provider):
    made = call.post(
        "/api/conversations", json={"account": "openai", "model": "gpt-5.5", "tools": [], "spend_cap": "2.00"}
    )

    assert made.status_code == 201
    assert made.json().keys() >= IDS | {"updated_at", "turns", "lines"}
    assert (made.json()["spend_cap"], made.json()["spent"], made.json()["turns"]) == ("2", "0", [])


@pytest.mark.parametrize("said", [{"account": "nobody"}, {"agent": 7}, {"spend_cap": "-1"}, {"tools": "x"}, {"to": 1}])
def test_a_conversation_that_cannot_be_started(call, said):
    assert call.post("/api/conversations", json=said).status_code == 422


def test_a_message_streams_its_events_to_the_end(call, chat, provider):
    """doors.md: with Accept: text/event-stream, 200 and the turn's events, which end with exactly one end."""
    provider.key(KEY).replies("Good morning, Ada.", pieces=3)

    told = call.post(f"{chat}/messages", json={"text": "Hello"}, headers={"Accept": "text/event-stream"})

    assert told.status_code == 200
    assert told.headers["content-type"].startswith("text/event-stream")
    heard = events(told)
    ids = [id_ for id_, _, _ in heard]
    assert ids == sorted(set(ids))
    kinds = [kind for _, kind, _ in heard]
    assert kinds[0] == "queued", heard
    assert [kind for kind in kinds if kind in {"done", "failed", "stopped", "interrupted"}] == ["done"] == kinds[-1:]
    assert "".join(data["text"] for _, kind, data in heard if kind == "delta") == "Good morning, Ada."
    assert heard[-1][2].keys() == {"account", "model", "input_tokens", "output_tokens", "cost"}

    turn = call.get(chat).json()["turns"][0]
    assert (turn["state"], turn["text"], turn["answer"]) == ("done", "Hello", "Good morning, Ada.")
    attempt = turn["attempts"][0]
    assert (attempt["account"], attempt["state"], attempt["consent"]) == ("openai", "done", "own")


def test_a_message_is_accepted_at_once_and_can_be_watched_again_from_any_event(call, chat, provider):
    provider.key(KEY).replies("One two three four.", pieces=4)

    accepted = call.post(f"{chat}/messages", json={"text": "Count"})
    assert accepted.status_code == 202
    turn = accepted.json()
    assert turn["text"] == "Count"

    whole = events(call.get(f"{chat}/turns/{turn['id']}/events"))
    assert whole[-1][1] == "done"
    after = whole[2][0]
    rest = events(call.get(f"{chat}/turns/{turn['id']}/events", headers={"Last-Event-ID": str(after)}))
    assert [id_ for id_, _, _ in rest] == [id_ for id_, _, _ in whole if id_ > after] or rest[0][0] > after
    said = [data["text"] for id_, kind, data in whole if kind == "delta" and id_ > after]
    assert "".join(data["text"] for _, kind, data in rest if kind == "delta") == "".join(said)


def test_the_same_key_twice_is_one_message_one_turn_and_one_request(call, chat, provider):
    """STR-05."""
    said = {"text": "Pay the baker", "idempotency_key": "uuid-1"}

    first = call.post(f"{chat}/messages", json=said)
    second = call.post(f"{chat}/messages", json=said)

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] == second.json()["id"]
    assert call.post(f"{chat}/messages", json=said | {"text": "Pay the butcher"}).status_code == 409
    call.get(f"{chat}/turns/{first.json()['id']}/events")
    assert Turn.objects.count() == 1
    assert len(provider.requests(KEY)) == 1

    other = call.post(f"{chat}/messages", json={"text": "Pay the baker", "idempotency_key": "uuid-2"})
    assert other.json()["id"] != first.json()["id"]
    call.get(f"{chat}/turns/{other.json()['id']}/events")


def test_lone_surrogates_become_a_replacement_and_nul_is_left_out(call, chat, provider):
    """doors.md, Limits on input."""
    body = b'{"text": "a\\ud800b\\u0000c \\ud83d\\ude00"}'

    turn = call.post(f"{chat}/messages", content=body).json()

    assert turn["text"] == "a\ufffdbc \U0001f600"
    call.get(f"{chat}/turns/{turn['id']}/events")


def test_a_turn_is_stopped_and_tried_again(call, chat, provider):
    provider.key(KEY).replies("A long answer that waits.", pieces=5, hold_after=2)
    turn = call.post(f"{chat}/messages", json={"text": "Go"}).json()["id"]
    with call.stream("GET", f"{chat}/turns/{turn}/events") as told:
        assert next(line for line in told.iter_lines() if line == "event: delta")

    assert call.post(f"{chat}/turns/{turn}/stop").status_code == 202
    assert events(call.get(f"{chat}/turns/{turn}/events"))[-1][1] == "stopped"
    assert call.get(chat).json()["turns"][0]["state"] == "stopped"

    provider.key(KEY).forgets().replies("Done now.")
    assert call.post(f"{chat}/turns/{turn}/retry").status_code == 202
    assert events(call.get(f"{chat}/turns/{turn}/events"))[-1][1] == "done"
    assert call.get(chat).json()["turns"][0]["answer"] == "Done now."


def test_there_is_nothing_to_switch_back_from_in_a_new_chat(call, chat):
    """R23."""
    assert call.post(f"{chat}/limit-back").status_code == 409
    assert call.delete(f"{chat}/limit-back").status_code == 204


def test_a_conversation_is_changed_field_by_field(call, chat, ada):
    make_account(ada, "anthropic", model="claude-sonnet-4-5")

    changed = call.patch(chat, json={"title": " Baking ", "account": "anthropic", "spend_cap": "4"}).json()
    assert (changed["title"], changed["account"], changed["model"], changed["spend_cap"]) == (
        "Baking",
        "anthropic",
        "claude-sonnet-4-5",
        "4",
    )
    assert call.patch(chat, json={"spend_cap": None}).json()["spend_cap"] is None
    assert call.patch(chat, json={"account": "nobody"}).status_code == 422
    assert call.patch(chat, json={"title": "x" * 201}).status_code == 422
    assert call.get(chat).json()["account"] == "anthropic"


def test_a_deleted_conversation_is_gone_and_what_ran_in_it_is_stopped(call, chat, provider):
    provider.key(KEY).replies("Never ends.", pieces=3, hold_after=1)
    call.post(f"{chat}/messages", json={"text": "Go"})

    assert call.delete(chat).status_code == 204
    assert call.get(chat).status_code == 404
    assert call.delete(chat).status_code == 404
    assert call.get("/api/conversations").json() == {"items": [], "next": None}


def test_conversations_come_a_page_at_a_time_the_latest_first(call, ada):
    for _ in range(5):
        Conversation.objects.create(person=ada, account="local", created_at=NOW, updated_at=NOW)

    seen, cursor = [], ""
    while True:
        page = call.get(f"/api/conversations?limit=2{f'&cursor={cursor}' if cursor else ''}").json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 5
    assert "turns" not in page["items"][0]


def test_turns_come_newest_first_in_order(call, ada):
    chat = Conversation.objects.create(person=ada, account="local", created_at=NOW, updated_at=NOW)
    turns = [
        Turn.objects.create(conversation=chat, state="done", text=str(number), created_at=NOW).pk for number in range(4)
    ]

    page = call.get(f"/api/conversations/{chat.pk}?limit=2").json()
    assert [turn["id"] for turn in page["turns"]] == turns[2:]
    earlier = call.get(f"/api/conversations/{chat.pk}?limit=2&before={turns[2]}").json()
    assert [turn["id"] for turn in earlier["turns"]] == turns[:2]


def test_reading_a_conversation_takes_as_many_queries_for_many_turns_as_for_few(ada, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from conch.api.conversations import _whole

    def queries(count):
        chat = Conversation.objects.create(person=ada, account="local", created_at=NOW, updated_at=NOW)
        for _ in range(count):
            turn = Turn.objects.create(conversation=chat, state="done", text="x", created_at=NOW)
            turn.attempts.create(run=1, account="local", model="m", started_at=NOW)
            chat.lines.create(turn=turn, kind="limit.returned", data={"account": "a", "label": "A"}, at=NOW)
        with CaptureQueriesContext(
            connection,
        ) as counted:
            _whole(ada.pk, chat.pk, None, 1000, NOW)
        return len(counted)

    assert queries(2) == queries(20)


def test_the_ledger_is_the_callers_month(call, ada):
    from conch.models import Entry, MonthTotal

    month = f"{timezone.now():%Y-%m}"
    for person in (ada, make_person("eve")):
        Entry.objects.create(
            person=person,
            account="openai",
            engine="openai",
            model="gpt-5.5",
            month=month,
            state="settled",
            cost_nano=21_000_000,
            priced_by="list",
            consent="own",
            at=NOW,
        )
        for account in ("", "openai"):
            MonthTotal.objects.create(person=person, month=month, account=account, spent_nano=21_000_000)

    ledger = call.get("/api/ledger").json()

    assert [(entry["cost"], entry["consent"], entry["state"]) for entry in ledger["entries"]] == [
        ("0.021", "own", "settled")
    ]
    assert (ledger["sums"], ledger["total"], ledger["held"], ledger["unpriced"]) == (
        {"openai": "0.021"},
        "0.021",
        "0",
        0,
    )
    assert call.get("/api/ledger?month=2020-01").json()["entries"] == []
    assert call.get(f"/api/ledger?month={month}&account=codex").json()["entries"] == []
    assert call.get(f"/api/ledger?month={month}&account=codex").json()["total"] == "0.021"


def test_the_ledger_comes_500_entries_a_page(call, ada):
    from conch.models import Entry

    Entry.objects.bulk_create(
        Entry(person=ada, account="openai", engine="openai", model="m", month="2026-10", state="settled", at=NOW)
        for _ in range(501)
    )

    first = call.get("/api/ledger?month=2026-10").json()
    assert len(first["entries"]) == 500
    rest = call.get(f"/api/ledger?month=2026-10&cursor={first['next']}").json()
    assert (len(rest["entries"]), rest["next"]) == (1, None)


def test_another_persons_stream_is_not_there(base, chat, bob, call, provider):
    turn = call.post(f"{chat}/messages", json={"text": "Hello"}).json()["id"]
    with caller(base, bob) as other:
        assert other.get(f"{chat}/turns/{turn}/events").status_code == 404
    call.get(f"{chat}/turns/{turn}/events")
