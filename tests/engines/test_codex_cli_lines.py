"""Codex CLI's notices, as recorded: what they mean for a turn and for the plan's windows. No program, no clock."""

import json
from datetime import UTC, datetime

import pytest

from conch.engines.base import (
    Discard,
    Done,
    EngineFault,
    LimitReached,
    Overloaded,
    Progress,
    Rejected,
    Room,
    SignedOut,
    Text,
    Throttled,
    Unreachable,
    Usage,
)
from conch.engines.codex_cli_lines import Turn, read_room
from conch.engines.codex_cli_refusals import reading_failure
from tests.engines.conftest import NOW
from tests.engines.provider import payload

SIX = datetime(2026, 10, 9, 18, tzinfo=UTC)
TUESDAY = datetime(2026, 10, 13, 21, tzinfo=UTC)


def notices(name):
    lines = [json.loads(line) for line in payload(f"codex_cli/{name}.ndjson").splitlines()]
    return [line["msg"] for line in lines if line["to"] == "client" and "method" in line["msg"]]


def heard(said, read=None):
    """The events, and the turn's error where it failed."""
    turn, events = Turn("gpt-5.5", lambda: NOW), []
    for notice in said:
        events += turn.read(notice)
    return events, turn.why(read) if turn.failed is not None else None


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def failed(message, info="other", *, begun=False, read=None):
    said = [{"method": "item/agentMessage/delta", "params": {"itemId": "m", "delta": "Half"}}] if begun else []
    error = {"message": message, "codexErrorInfo": info}
    said += [{"method": "turn/completed", "params": {"turn": {"status": "failed", "error": error}}}]
    return heard(said, read)[1]


def reading(name):
    return read_room(payload(f"codex_cli/{name}.json")["result"], NOW)


def test_an_answer_its_tokens_and_its_windows():
    events, error = heard(notices("app_server_ok"))
    assert error is None
    assert [event.text for event in only(events, Text)] == ["The tide", " turns", " at six."]
    assert only(events, Usage) == [Usage(2300, 1920, 0, 48)]
    assert [(each.name, each.used_percent) for each in only(events, Room)[0].windows] == [
        ("5-hour", 34),
        ("weekly", 58),
    ]
    assert events[-1] == Done("", "gpt-5.5")


def test_a_full_window_is_a_limit_until_its_reset():
    """R17: the reset from the windows, never from the text."""
    _, error = heard(notices("app_server_limit"))
    assert isinstance(error, LimitReached)
    assert (error.until, error.scope, error.accepted) == (SIX, "limit", False)
    assert [each.used_percent for each in error.room.windows] == [100, 81]


def test_of_two_full_windows_the_later_reset_counts():
    error = failed("You've hit your usage limit.", "usageLimitExceeded", read=reading("rate_limits_read_both_full"))
    assert error.until == TUESDAY


@pytest.mark.parametrize(
    ("message", "scope"),
    [
        ("To use Codex with your ChatGPT plan, upgrade to Plus: …", "not_entitled"),
        ("Quota exceeded. Check your plan and billing details.", "money"),
        ("You’ve hit your usage limit. Try again later.", "limit"),
    ],
)
def test_the_causes_that_share_a_code_are_told_apart(message, scope):
    """providers.md 3.3: only a full window recovers by waiting."""
    error = failed(message, "usageLimitExceeded", read=reading("rate_limits_read"))
    assert isinstance(error, LimitReached)
    assert (error.scope, error.until) == (scope, None)


def test_a_workspace_without_credit_is_money():
    limits = {"limitId": "codex", "primary": None, "rateLimitReachedType": "workspace_member_credits_depleted"}
    error = {"message": "Your workspace is out of credits.", "codexErrorInfo": "usageLimitExceeded"}
    said = [
        {"method": "account/rateLimits/updated", "params": {"rateLimits": limits}},
        {"method": "turn/completed", "params": {"turn": {"status": "failed", "error": error}}},
    ]
    _, found = heard(said)
    assert (type(found), found.scope) == (LimitReached, "money")


def test_a_break_in_the_stream_is_a_limit_only_where_a_window_is_full():
    """clis.md 2.5: Codex calls both "other"."""
    message = "stream disconnected before completion: stream closed before response.completed"
    cut = failed(message, begun=True, read=reading("rate_limits_read"))
    assert (type(cut), cut.cut, cut.accepted) == (EngineFault, True, True)
    full = failed(message, begun=True, read=reading("rate_limits_read_full"))
    assert (type(full), full.until, full.accepted) == (LimitReached, SIX, True)
    told = failed("stream disconnected before completion: The usage limit has been reached", begun=True)
    assert (type(told), told.until) == (LimitReached, None)


@pytest.mark.parametrize(
    ("message", "info", "kind", "reason"),
    [
        ("too many", {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, Throttled, ""),
        ("at capacity", "serverOverloaded", Overloaded, ""),
        ("high demand", "internalServerError", EngineFault, ""),
        ("token could not be refreshed", "unauthorized", SignedOut, ""),
        ("Connection failed", {"httpConnectionFailed": {"httpStatusCode": None}}, Unreachable, ""),
        ("unexpected status 403: <html>", {"httpConnectionFailed": {"httpStatusCode": 403}}, EngineFault, ""),
        ("too long", "contextWindowExceeded", Rejected, "too_long"),
        ('{"error":{"code":"context_length_exceeded","message":"…"}}', "other", Rejected, "too_long"),
        ('{"detail":"The \'x\' model is not supported when using Codex."}', "other", Rejected, "model_gone"),
        ('{"error":{"message":"The \'x\' model requires a newer version of Codex."}}', "other", Rejected, "model_gone"),
        ('{"detail":"Unsupported parameter: temperature"}', "other", Rejected, "bad"),
        ("who knows", "aNewKind", EngineFault, ""),
        ("who knows", None, EngineFault, ""),
    ],
)
def test_what_is_no_limit_is_told_apart(message, info, kind, reason):
    """R8, R19, R36; the enumeration is open."""
    error = failed(message, info)
    assert type(error) is kind
    assert getattr(error, "reason", "") == reason


def test_a_throttle_and_a_signed_out_program_as_recorded():
    events, error = heard(notices("app_server_throttle_429"))
    assert isinstance(error, Throttled)
    assert only(events, Progress)
    assert isinstance(heard(notices("app_server_signed_out"))[1], SignedOut)


def test_a_message_that_reads_otherwise_when_finished_replaces_what_streamed():
    item = {"type": "agentMessage", "id": "m", "text": "At six."}
    said = [
        {"method": "item/agentMessage/delta", "params": {"itemId": "m", "delta": "At sev"}},
        {"method": "item/completed", "params": {"item": item}},
        {"method": "turn/completed", "params": {"turn": {"status": "completed", "items": []}}},
    ]
    events, _ = heard(said)
    assert events == [Text("At sev"), Discard(), Text("At six."), Done("", "gpt-5.5")]


def test_two_messages_of_one_answer_are_two_paragraphs():
    deltas = [("a", "Let me see."), ("b", "At six.")]
    said = [{"method": "item/agentMessage/delta", "params": {"itemId": i, "delta": text}} for i, text in deltas]
    assert "".join(event.text for event in heard(said)[0]) == "Let me see.\n\nAt six."


def test_an_answer_of_nothing_is_a_fault():
    """R30."""
    with pytest.raises(EngineFault):
        heard([{"method": "turn/completed", "params": {"turn": {"status": "completed", "items": []}}}])


def test_an_answer_from_credits_is_said_to_be_paid():
    """R32: the plan was full, and credits were there."""
    said = notices("app_server_ok")
    for notice in said:
        if notice["method"] == "account/rateLimits/updated":
            limits = notice["params"]["rateLimits"]
            limits["primary"]["usedPercent"], limits["credits"]["hasCredits"] = 100, True
    events, _ = heard(said)
    assert only(events, Usage)[-1] == Usage(2300, 1920, 0, 48, None, True)


def test_windows_are_named_by_their_length():
    """providers.md 3.4: the slot says nothing."""
    room = reading("rate_limits_read_weekly_in_primary")
    assert [(each.name, each.used_percent, each.length_minutes) for each in room.windows] == [("weekly", 47, 10080)]
    assert (room.complete, room.plan) == (True, "prolite")


def test_win_03_what_has_no_windows_erases_nothing():
    """WIN-03, R29: a meter without windows is no reading of the plan's."""
    room = reading("rate_limits_read_unknown")
    assert (room.windows, room.complete, room.allowed) == ((), False, None)
    assert reading("rate_limits_read_workspace_credits").allowed is False
    sparse = payload("codex_cli/rate_limits_updated_sparse.json")
    events, _ = heard([sparse])
    assert [(each.name, each.used_percent) for each in events[0].windows] == [("5-hour", 36)]
    assert not events[0].complete
    premium = {"limitId": "premium", "primary": None, "secondary": None, "credits": {"hasCredits": False}}
    assert heard([{"method": "account/rateLimits/updated", "params": {"rateLimits": premium}}])[0] == []


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("failed to fetch codex rate limits: GET … failed: 401 Unauthorized; body={}", SignedOut),
        ("codex account authentication required to read rate limits", SignedOut),
        ("failed to fetch codex rate limits: GET … failed: 429 Too Many Requests; body={}", Throttled),
        ("failed to fetch codex rate limits: GET … failed: 500 Internal Server Error", EngineFault),
    ],
)
def test_lim_20_a_failed_reading_is_no_limit(message, kind):
    """LIM-20, as Codex 0.163 writes it."""
    assert type(reading_failure(message)) is kind
