"""Claude Code's lines, as recorded: what they mean for a turn and for the plan's windows. No program, no clock."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

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
from conch.engines.claude_code_lines import Turn
from conch.engines.claude_code_room import event_room, full_until, usage_as_read, usage_room
from tests.engines.conftest import NOW
from tests.engines.provider import payload

SIX = datetime(2026, 10, 9, 18, tzinfo=UTC)
TUESDAY = datetime(2026, 10, 13, 21, tzinfo=UTC)


def lines(name):
    return [json.loads(line) for line in payload(f"claude_code/{name}").splitlines()]


def heard(said, model="claude-sonnet-5"):
    """The events and how the turn ended: None, or its error."""
    turn, events = Turn(model, lambda: NOW), []
    try:
        for line in said:
            events += turn.read(line)
    except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
        return events, error
    return events, None


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def synthetic(text, **facts):
    result = {key: facts[key] for key in ("api_error_status", "api_error") if key in facts}
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    return [
        {"type": "assistant", "message": message, "parent_tool_use_id": None, **facts},
        {"type": "result", "subtype": "success", "is_error": True, "result": text, **result},
    ]


def delta(text):
    event = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None}


def answered(text, **result):
    message = {"model": "claude-sonnet-5", "content": [{"type": "text", "text": text}]}
    usage = {"input_tokens": 10, "output_tokens": 3}
    return [
        {"type": "assistant", "message": message, "parent_tool_use_id": None},
        {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": usage, **result},
    ]


def test_an_answer_its_windows_and_its_tokens():
    events, error = heard(lines("stream_ok.ndjson"))
    assert error is None
    assert [event.text for event in only(events, Text)] == ["The tide", " turns", " at six."]
    assert only(events, Discard) == []
    room = only(events, Room)[0]
    assert [(each.name, each.used_percent, each.resets_at) for each in room.windows] == [
        ("5-hour", pytest.approx(28), SIX),
        ("weekly", pytest.approx(41), TUESDAY),
    ]
    assert only(events, Usage)[-1] == Usage(2100, 0, 0, 12)
    assert events[-1] == Done("", "claude-sonnet-5")


def test_a_subagents_words_and_unknown_lines_say_nothing():
    events, error = heard(lines("stream_subagent_noise.ndjson"))
    assert error is None
    assert "".join(event.text for event in only(events, Text)) == "The reply."


@pytest.mark.parametrize(
    ("name", "until", "accepted"),
    [
        ("stream_limit_five_hour", SIX, False),
        ("stream_limit_weekly", TUESDAY, False),
        ("stream_limit_mid_turn", SIX, True),
    ],
)
def test_a_full_window_is_a_limit_until_its_reset(name, until, accepted):
    """R17, R30: by the typed event; the program's own sentence is no answer."""
    events, error = heard(lines(f"{name}.ndjson"))
    assert isinstance(error, LimitReached)
    assert (error.until, error.scope, error.model, error.accepted) == (until, "limit", "", accepted)
    assert any(window.used_percent >= 100 for window in error.room.windows)
    assert "limit" not in "".join(event.text for event in only(events, Text))


def test_a_limit_of_older_versions_is_read_from_its_sentence():
    """R30's exception; the reset in words is the last resort."""
    events, error = heard(lines("stream_limit_old_prose_no_event.ndjson"))
    assert isinstance(error, LimitReached)
    assert only(events, Text) == []


def test_lim_13_a_synthetic_message_is_never_an_answer():
    """LIM-13: whatever the subtype and the exit code say."""
    events, error = heard(synthetic("You've hit your limit · resets 1pm (Europe/Lisbon)"))
    assert isinstance(error, LimitReached)
    assert error.until == NOW + timedelta(days=1)  # it is just 1pm there: the next one
    assert events == []


@pytest.mark.parametrize("error", [None, "rate_limit"])
def test_rst_01_the_number_after_the_bar_is_the_reset(error):
    """RST-01, a day later."""
    at = int((NOW + timedelta(hours=1)).timestamp())
    facts = {"error": error} if error else {}
    _, found = heard(synthetic(f"Claude AI usage limit reached|{at}", **facts))
    assert isinstance(found, LimitReached)
    assert found.until == NOW + timedelta(hours=1)


def test_a_throttle_is_no_limit():
    """R8: with a `rejected` event that names neither window nor reset, as 2.1.332 sends it, and without."""
    _, error = heard(lines("stream_throttle_429.ndjson"))
    assert isinstance(error, Throttled)
    bare = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "isUsingOverage": False}}
    text = "API Error: Server is temporarily limiting requests (not your usage limit)"
    _, error = heard([bare, *synthetic(text, error="rate_limit", api_error_status=429)])
    assert isinstance(error, Throttled)
    assert not error.accepted


def test_a_plans_sign_in_that_pays_by_a_key_ends_the_turn():
    """R34, CON-02: before the answer counts, and where only the refusal tells."""
    events, error = heard([{"type": "system", "subtype": "init", "apiKeySource": "ANTHROPIC_API_KEY"}])
    assert isinstance(error, Rejected)
    assert (error.reason, events) == ("paying", [])
    _, error = heard(lines("stream_api_key_credit_too_low.ndjson"))
    assert (type(error), error.reason) == (Rejected, "paying")


@pytest.mark.parametrize(
    ("text", "facts", "kind", "reason"),
    [
        ("Not logged in · Please run /login", {"error": "authentication_failed"}, SignedOut, ""),
        ("API Error: 529 Overloaded.", {"error": "server_error", "api_error_status": 529}, Overloaded, ""),
        ("API Error: 500 Internal server error.", {"error": "server_error", "api_error_status": 500}, EngineFault, ""),
        ("There's an issue with the selected model", {"error": "model_not_found"}, Rejected, "model_gone"),
        ("Prompt is too long", {"error": "invalid_request", "api_error_status": 400}, Rejected, "too_long"),
        ("API Error: Usage credits required", {"api_error": "long_context_credits_required"}, Rejected, "too_long"),
        ("API Error: 400 messages: …", {"error": "unknown", "api_error_status": 400}, Rejected, "bad"),
        ("API Error: Connection refused (ECONNREFUSED)", {"api_error": "connection_failed"}, Unreachable, ""),
        ("API Error: Connection dropped (ECONNRESET)", {"api_error": "connection_failed"}, EngineFault, ""),
    ],
)
def test_what_is_no_limit_is_told_apart(text, facts, kind, reason):
    """R8, R19, R36, as the program writes it (2.1.332)."""
    _, error = heard(synthetic(text, **facts))
    assert type(error) is kind
    assert getattr(error, "reason", "") == reason
    assert error.accepted is (kind is EngineFault)


def test_an_answer_that_broke_off_keeps_what_had_arrived():
    """R30."""
    start = {"type": "stream_event", "event": {"type": "message_start", "message": {"model": "m"}}}
    lost = synthetic("API Error: Connection to the API was lost (ECONNRESET).", api_error="connection_failed")
    events, error = heard([start, delta("Half"), *lost])
    assert [event.text for event in only(events, Text)] == ["Half"]
    assert (type(error), error.cut, error.accepted) == (EngineFault, True, True)


def test_what_streamed_is_replaced_where_the_message_reads_otherwise():
    """clis.md 3.4: deltas are provisional."""
    events, error = heard([delta("The tide"), *answered("It turns at six.")])
    assert error is None
    assert events[:3] == [Text("The tide"), Discard(), Text("It turns at six.")]


def test_thinking_and_trying_again_are_shown_not_said():
    thinking = {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}}
    said = [{"type": "stream_event", "event": thinking}, {"type": "system", "subtype": "api_retry", "attempt": 1}]
    events, _ = heard([*said, *answered("Six.")])
    assert events[:3] == [Progress("thinking"), Progress("trying again"), Text("Six.")]


def test_an_answer_of_nothing_is_a_fault():
    """R30."""
    _, error = heard(answered(""))
    assert isinstance(error, EngineFault)


def test_an_answer_cut_by_its_longest_says_so():
    stop = synthetic("API Error: exceeded the output token maximum", error="max_output_tokens")
    events, error = heard([delta("As far as"), *stop])
    assert error is None
    assert events[-1].ending == "length"
    assert "maximum" not in "".join(event.text for event in only(events, Text))


def test_con_04_extra_usage_is_paid_and_leaves_no_room():
    """CON-04, R32: the plan went on at a price; it is at its limit."""
    info = payload("claude_code/event_rejected_but_using_overage.json")
    events, error = heard([info, *answered("Six.", total_cost_usd=0.0123)])
    assert error is None
    usage = only(events, Usage)[-1]
    assert (usage.extra, usage.cost) == (True, Decimal("0.0123"))
    assert only(events, Room)[0].windows[0].used_percent >= 100
    bare = {"status": "allowed", "rateLimitType": "five_hour", "isUsingOverage": True, "resetsAt": 1791568800}
    window = event_room(bare, "", NOW).windows[0]
    assert (window.name, window.used_percent, window.resets_at) == ("5-hour", 100, SIX)


def test_a_process_that_was_kept_counts_on_from_what_it_cost_before():
    """R32: its total is of all its life. What it told of the windows stands until it tells of a change."""
    first = Turn("sonnet", lambda: NOW)
    for line in [payload("claude_code/event_warning_weekly.json"), *answered("Six.", total_cost_usd=0.5)]:
        first.read(line)
    assert first.answer == "Six."
    second, events = Turn("sonnet", lambda: NOW, before=first.after), []
    for line in answered("Seven.", total_cost_usd=0.75):
        events += second.read(line)
    assert only(events, Room) == [first.after.room]
    third, events = Turn("sonnet", lambda: NOW, before=second.after), []
    for line in [payload("claude_code/event_rejected_but_using_overage.json"), *answered("8.", total_cost_usd=1)]:
        events += third.read(line)
    assert only(events, Usage)[-1].cost == Decimal("0.25")
    assert third.answer is None  # paid for: its process goes on with nothing


def test_a_rejection_that_was_answered_all_the_same_was_stale():
    """providers.md 1.3."""
    events, error = heard([payload("claude_code/event_rejected_stale.json"), *answered("Six.")])
    assert error is None
    assert only(events, Room) == []


def test_a_limit_of_one_model_leaves_the_others():
    """R3."""
    said = [payload("claude_code/event_rejected_opus_only.json"), *synthetic("Opus limit", error="rate_limit")]
    _, error = heard(said, model="opus")
    assert isinstance(error, LimitReached)
    assert (error.model, error.room.windows[0].models) == ("opus", ("opus",))


def test_an_allowed_event_without_figures_says_nothing_of_them():
    """R29: missing is not zero."""
    room = event_room(payload("claude_code/event_allowed_old_no_windows.json")["rate_limit_info"], "", NOW)
    assert (room.windows[0].used_percent, room.windows[0].resets_at, room.complete) == (None, SIX, False)
    warned = event_room(payload("claude_code/event_warning_weekly.json")["rate_limit_info"], "", NOW)
    assert (warned.windows[0].name, warned.windows[0].used_percent) == ("weekly", pytest.approx(91))


def usage(name):
    return usage_room(payload(f"claude_code/{name}.json")["response"]["response"], NOW)


def test_windows_read_ahead_are_percent_and_iso():
    """providers.md 0.2, 0.3: scaled by source, never by size."""
    room = usage("control_get_usage_response")
    assert room.complete
    assert [(each.name, each.used_percent) for each in room.windows] == [
        ("5-hour", 28),
        ("weekly", 41),
        ("Sonnet weekly", 3),
    ]
    assert room.plan == "max"
    full = usage("control_get_usage_response_full")
    assert full_until(full, "opus", NOW)[0]
    assert abs(full_until(full, "opus", NOW)[1] - SIX) < timedelta(seconds=1)
    assert full_until(room, "opus", NOW) == (False, None)
    assert usage("control_get_usage_response_api_key") is None
    idle = usage("control_get_usage_response_idle")
    assert (idle.windows[0].used_percent, idle.windows[0].resets_at) == (0, None)


def test_half_a_percent_is_half_a_percent():
    room = usage_room({"rate_limits": {"five_hour": {"utilization": 0.5, "resets_at": None}}}, NOW)
    assert room.windows[0].used_percent == 0.5


@pytest.mark.parametrize(
    ("age", "evidence"),
    [(None, True), (-1, True), (0, True), (1, False), (60, False), (76, "failed"), (7200, "failed")],
)
def test_windows_that_the_program_only_says_again_are_no_evidence(age, evidence):
    """R29: it keeps what it has fetched for a minute; older, fetching anew has failed."""
    answer = {"rate_limits": {"five_hour": {"utilization": 42, "resets_at": None}}}
    fetched = None if age is None else NOW - timedelta(seconds=age)
    if evidence == "failed":
        with pytest.raises(EngineFault):
            usage_as_read(answer, fetched, NOW, NOW)
    else:
        assert (usage_as_read(answer, fetched, NOW, NOW) is not None) is evidence


def test_no_windows_where_there_should_be_some_is_a_reading_that_failed():
    with pytest.raises(EngineFault):
        usage_as_read({"rate_limits": None}, None, NOW, NOW)
