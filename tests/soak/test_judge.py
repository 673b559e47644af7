"""The soak's verdict finds each kind of loss: a world in which nothing was lost, and one thing wrong in each test."""

import copy

import pytest

from tests.soak.judge import losses
from tests.soak.load import Sent, Watched


def world():
    """Two messages: one answered by a key, one cut off by a crash after some of it was written down."""
    turn = {"idempotency_key": None, "conversation_id": 1, "owner": "", "account": "openai", "run": 1}
    attempt = {"account": "openai", "run": 1, "input_tokens": 9, "cost_nano": 5, "ended": True}
    entry = {"account": "openai", "state": "settled", "cost_nano": 5, "hold_nano": 9, "priced_by": "list"}
    billed = {"outcome": "replied", "path": "/v1/responses"}
    return {
        "sent": {"a": Sent("a", 1, "one", {1}), "b": Sent("b", 1, "two", {2})},
        "watched": [Watched(1, [1, 2, 15], "You said: one")],
        "dump": {
            "turns": [
                turn | {"id": 1, "text": "one", "answer": "You said: one", "state": "done", "position": 16},
                turn | {"id": 2, "text": "two", "answer": "You said", "state": "interrupted", "position": 11},
            ],
            "events": [
                {"turn_id": 1, "run": 1, "position": 1, "kind": "queued"},
                {"turn_id": 1, "run": 1, "position": 16, "kind": "done"},
                {"turn_id": 2, "run": 1, "position": 11, "kind": "interrupted"},
            ],
            "attempts": [
                attempt | {"id": 1, "turn_id": 1, "state": "done", "partial": "", "output_tokens": 4},
                attempt | {"id": 2, "turn_id": 2, "state": "interrupted", "partial": "You said", "output_tokens": None},
            ],
            "entries": [
                entry | {"id": 1, "turn": 1, "attempt": 1, "estimated": False, "input_tokens": 9, "output_tokens": 4},
                entry | {"id": 2, "turn": 2, "attempt": 2, "estimated": True, "input_tokens": 11, "output_tokens": 9},
            ],
            "differences": [],
        },
        "requests": [
            billed | {"messages": [["user", "one"]], "billed": {"input_tokens": 9, "output_tokens": 4}},
            billed | {"messages": [["user", "two"]], "billed": {"input_tokens": 9, "output_tokens": 3}},
        ],
        "snapshots": [(2, 1, "You s")],
    }


def twice(given):
    given["dump"]["turns"].append(given["dump"]["turns"][0] | {"id": 3})


def confirmed_twice(given):
    given["sent"]["a"].turns.add(7)


def gone(given):
    del given["dump"]["turns"][0]


def strange(given):
    del given["sent"]["b"]


def endless(given):
    given["dump"]["turns"][1]["state"] = "running"


def two_ends(given):
    given["dump"]["events"].append({"turn_id": 1, "run": 1, "position": 17, "kind": "failed"})


def other_end(given):
    given["dump"]["turns"][0]["state"] = "failed"


def unfinished(given):
    given["dump"]["attempts"][1]["ended"] = False


def other_answer(given):
    given["dump"]["turns"][0]["answer"] = "You said: on"


def text_lost(given):
    given["dump"]["turns"][1]["answer"] = given["dump"]["attempts"][1]["partial"] = "You"


def seen_twice(given):
    given["watched"][0].ids = [1, 1, 2]


def held(given):
    given["dump"]["entries"][1]["state"] = "held"


def unbooked(given):
    del given["dump"]["entries"][1]


def other_tokens(given):
    given["dump"]["entries"][0]["output_tokens"] = 40


def too_little(given):
    given["dump"]["entries"][1]["output_tokens"] = 1


def differing(given):
    given["dump"]["differences"] = ["the month"]


def sent_twice(given):
    given["requests"].append(given["requests"][1] | {"billed": None, "outcome": "left"})


WRONG = [
    twice, confirmed_twice, gone, strange, endless, two_ends, other_end, unfinished, other_answer, text_lost,
    seen_twice, held, unbooked, other_tokens, too_little, differing, sent_twice,
]  # fmt: skip


def test_where_nothing_was_lost_nothing_is_found():
    assert losses(**world()) == []


@pytest.mark.parametrize("spoil", WRONG, ids=[spoil.__name__ for spoil in WRONG])
def test_each_loss_is_found(spoil):
    given = copy.deepcopy(world())

    spoil(given)

    assert losses(**given)
