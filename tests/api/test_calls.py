"""Tools by the API: what a chat may use, a call that asks, the word on it, and the events on the way."""

import json

import pytest

from conch.models import ToolCall
from tests.turns.conftest import World
from tests.turns.tools import Ledger
from tests.turns.tools import call as asks_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ledger(ada, simulator, tmp_path):
    """Ada's tool server, and an account whose model looks something up, then answers."""
    ada.is_owner = True
    ada.save()
    world = World(ada, simulator, tmp_path)
    account = world.account("codex")
    account.key.replies("Let me look. ", calls=[asks_for("look_up", "tides")]).replies("The moon.")
    return Ledger(ada, tmp_path)


def events(response):
    """Server-sent events, each with its kind and data."""
    found, kind = [], ""
    for line in response.text.splitlines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            found.append((kind, json.loads(line.removeprefix("data: "))))
    return found


def test_a_call_that_asks_is_answered_and_the_turn_goes_on(call, ledger):
    """doors.md: `waiting` for `tool` ends the stream; 202 with the turn; pressed again, nothing more happens."""
    chat = call.post("/api/conversations", json={"account": "codex", "tools": ["ledger"]}).json()["id"]
    sent = call.post(
        f"/api/conversations/{chat}/messages", json={"text": "Tides?"}, headers={"Accept": "text/event-stream"}
    )
    kinds = [(kind, data.get("state")) for kind, data in events(sent) if kind != "delta"]
    assert kinds == [("queued", None), ("attempt", None), ("tool", "asked"), ("waiting", None)]
    assert events(sent)[-1][1] == {"for": "tool", "until": None, "text": "Codex wants to run look up in Ledger."}
    turn = call.get(f"/api/conversations/{chat}").json()["turns"][0]
    (asked,) = turn["calls"]
    assert (turn["state"], turn["until"], asked["state"], asked["arguments"]) == (
        "waiting",
        None,
        "asked",
        {"what": "tides"},
    )
    address = f"/api/conversations/{chat}/turns/{turn['id']}/tools/{asked['id']}"
    assert call.post(address, json={"allow": "everything"}).status_code == 422

    accepted = call.post(address, json={"allow": "once"})
    again = call.post(address, json={"allow": "no"})

    assert (accepted.status_code, accepted.json()["id"], again.status_code) == (202, turn["id"], 202)
    told = events(call.get(f"/api/conversations/{chat}/turns/{turn['id']}/events"))
    assert told[-1][0] == "done"
    assert [data["outcome"] for kind, data in told if kind == "tool"][-1] == "All that is known of tides."
    ended = call.get(f"/api/conversations/{chat}").json()["turns"][0]
    assert (ended["state"], ended["answer"], ended["calls"][0]["outcome"]) == (
        "done",
        "The moon.",
        "All that is known of tides.",
    )
    assert (ledger.ran, ToolCall.objects.count()) == (["look_up tides"], 1)
