"""A hostile or broken provider: whatever it sends, what comes of it is an answer or one of the engine's own errors.

Recorded answers with one or more of their values replaced by what no provider should send, and recorded streams cut,
split and spoilt at any byte. Nothing else than an EngineError may leave an engine, no figure may be absurd, and no wait
endless (product.md Times, R6, R30).
"""

import copy
import json
import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conch.engines import claude_code_room, codex_cli_lines, limit_sentences, resets, windows, wire_text
from conch.engines.anthropic import Anthropic
from conch.engines.base import Access, Done, EngineError, LimitReached, Message, Request, Room, Text, Throttled, Usage
from conch.engines.openai import OpenAI
from conch.engines.openrouter import OpenRouter
from conch.engines.refusals import Answer, Speaks, reading_failure, refusal
from conch.engines.wire_chat import chat_usage
from conch.engines.wire_frames import FrameReader
from conch.engines.wire_responses import responses_usage
from tests.engines.provider import PAYLOADS, payload

NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)
FARTHEST = timedelta(days=366)
BOUNDED = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(
        ["", "NaN", "-1", "1e999", "6m0s", "99999999999999999999h", "2026-13-40T99:99:99Z", "0001-01-01T00:00:00Z",
         "9999-12-31T23:59:59-23:59", "\ud800", "\0", "resets at 25:61pm (Mars/Olympus)", "x" * 100_000, "١٢٣"]
    ),
    st.text(max_size=40),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.none(), max_size=2),
)  # fmt: skip
ANYTHING = st.recursive(
    ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["error", "message", "type", "code", "rate_limit", "resets_at", "data", "usage", "x"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
RECORDED = sorted(str(path.relative_to(PAYLOADS)) for path in PAYLOADS.rglob("*.json"))


def spoilt(draw, value, chance):
    """The value with some of its leaves, names or branches replaced."""
    if chance.random() < 0.15:
        return draw(ODD)
    if isinstance(value, dict):
        return {name: spoilt(draw, one, chance) for name, one in value.items() if chance.random() > 0.05}
    if isinstance(value, list):
        return [spoilt(draw, one, chance) for one in value for _ in range(chance.choice([1, 1, 1, 0, 2]))]
    return value


@st.composite
def bodies(draw):
    """A body out of nowhere, or a recorded one, spoilt."""
    if draw(st.booleans()):
        return draw(ANYTHING)
    recorded = copy.deepcopy(payload(draw(st.sampled_from(RECORDED))))
    body = recorded.get("body", recorded) if isinstance(recorded, dict) else recorded
    return spoilt(draw, body, random.Random(draw(st.integers(0, 2**32))))


NAMES = ["retry-after", "date", "x-codex-primary-used-percent", "x-codex-primary-reset-at", "x-ratelimit-reset",
         "x-codex-primary-window-minutes", "x-codex-primary-reset-after-seconds", "retry-after-ms",
         "anthropic-ratelimit-unified-reset", "x-ratelimit-reset-requests", "x-should-retry"]  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(
        st.text(max_size=30), st.integers().map(str), st.floats().map(str), st.sampled_from(["6m0s", "-5", "inf"])
    ),
)


def check_room(room):
    """A room without absurd figures: shares are numbers, times are within what a window can be."""
    if room is None:
        return
    assert isinstance(room, Room)
    for window in room.windows:
        assert isinstance(window.name, str)
        assert window.used_percent is None or (math.isfinite(window.used_percent) and window.used_percent >= 0)
        assert window.resets_at is None or window.resets_at <= NOW + FARTHEST
    for amount in (room.key_cap, room.key_left):
        assert amount is None or amount.is_finite()


@BOUNDED
@given(st.sampled_from(list(Speaks)), st.integers(100, 599), HEADERS, bodies(), st.booleans(), st.booleans())
def test_whatever_a_refusal_says_it_means_one_of_our_errors(speaks, status, headers, body, in_stream, accepted):
    """R8, R30, Times: a wait is ahead of now, none over a year; no secret is in the words."""
    answer = Answer(status, headers, body, model="m", secret="sk-secret-1234", in_stream=in_stream, accepted=accepted)

    for error in (refusal(speaks, answer, NOW), reading_failure(speaks, answer, NOW)):
        assert isinstance(error, EngineError)
        assert "sk-secret-1234" not in error.said
        if isinstance(error, LimitReached):
            assert error.until is None or NOW < error.until <= NOW + FARTHEST
            check_room(error.room)
        if isinstance(error, Throttled):
            assert 0 <= error.retry_after < math.inf


@BOUNDED
@given(bodies(), HEADERS)
def test_whatever_a_meter_says_its_figures_make_sense_or_are_none(body, headers):
    """R6, R29: of every engine's readings."""
    event = body if isinstance(body, dict) else {"x": body}
    for reading in (
        lambda: windows.codex_usage(body, headers, NOW),
        lambda: windows.codex_headers(headers, NOW),
        lambda: windows.codex_event(event, headers, NOW),
        lambda: windows.openrouter_key(body, headers, NOW),
        lambda: claude_code_room.event_room(event, "m", NOW),
        lambda: claude_code_room.usage_room(event, NOW),
        lambda: codex_cli_lines.snapshot_room(body, NOW),
        lambda: codex_cli_lines.read_room(event, NOW),
    ):
        try:
            room = reading()
        except EngineError:
            continue
        check_room(room)


@BOUNDED
@given(ANYTHING, HEADERS)
def test_whatever_usage_and_times_are_said_no_figure_is_negative_or_endless(value, headers):
    """R26, R28, Times."""
    for usage in (chat_usage(value), responses_usage(value)):
        assert usage is None or isinstance(usage, Usage)
        if usage is not None:
            counts = (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens)
            assert all(count is None or 0 <= count < 10**15 for count in counts)
            assert usage.cost is None or (usage.cost.is_finite() and usage.cost >= 0)
    for at in (resets.instant(value), resets.http_date(value), resets.next_reset(value, NOW)):
        assert at is None or at.tzinfo is not None
    for wait in (resets.duration(value), resets.seconds(value), resets.pause(headers, NOW)):
        assert wait is None or math.isfinite(wait)
    assert wire_text.percent(value) is None or math.isfinite(wire_text.percent(value))
    json.dumps(wire_text.clean_json(value), ensure_ascii=False).encode()


@BOUNDED
@given(st.text(max_size=200) | st.from_regex(r"(?i)you've (hit|reached) your .{0,20} limit.{0,40}", fullmatch=True))
def test_whatever_an_answer_says_a_limit_sentence_is_one_or_none(text):
    """R30."""
    found = limit_sentences.limit_sentence(text, NOW)

    assert found is None or found.until is None or NOW < found.until <= NOW + FARTHEST


@BOUNDED
@given(st.binary(max_size=400), st.lists(st.integers(1, 50), min_size=1, max_size=10))
def test_any_bytes_in_any_pieces_are_the_same_frames(stream, sizes):
    """STR-09: at byte boundaries, also within characters and line ends."""

    def read(pieces):
        reader = FrameReader()
        return [frame for piece in pieces for frame in reader.feed(piece)]

    pieces, at = [], 0
    while at < len(stream):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(stream[at : at + size])
        at += size

    whole = stream + b"\n\n"
    assert read([*pieces, b"\n\n"]) == read([whole])


STREAMS = [
    (OpenAI, "/v1", "openai/responses_ok.sse"),
    (OpenRouter, "/api/v1", "openrouter/chat_ok.sse"),
    (Anthropic, "", "anthropic/stream_ok.sse"),
]


def spoilings(stream, count):
    """The stream, cut, split, doubled, or with bytes replaced, in `count` ways; the same ones every time."""
    chance = random.Random(4)
    for _ in range(count):
        at = chance.randrange(len(stream))
        to = min(len(stream), at + chance.randrange(1, 60))
        yield chance.choice(
            [
                [stream[:at]],
                [stream[:at], stream[at:]],
                [stream[:at] + stream[to:]],
                [stream[:at] + chance.randbytes(to - at) + stream[to:]],
                [stream[:to] + stream[at:]],
                [stream[:at].replace(b":", b";", 3) + stream[at:]],
                [bytes([byte]) for byte in stream[: min(len(stream), 600)]],
            ]
        )


@pytest.mark.parametrize(("engine", "path", "name"), STREAMS, ids=[name for _, _, name in STREAMS])
async def test_a_stream_spoilt_anywhere_is_an_answer_or_an_error_of_ours(provider, engine, path, name):
    """R30: without its terminal event it is never an answer; what is said is text that can be kept."""
    asked = engine()
    request = Request("gpt-5.5", (Message("user", "Hi"),), max_output_tokens=100)
    outcomes, longest = {"answered": 0, "failed": 0}, 0
    try:
        for pieces in spoilings(payload(name), 40):
            provider.says(pieces)
            events = []
            try:
                async for event in asked.reply(Access("x", provider.url + path, "sk-x"), request):
                    events.append(event)  # noqa: PERF401  what came before the error is looked at, too
            except EngineError as error:
                outcomes["failed"] += 1
                longest = max(longest, len(error.said))
            else:
                outcomes["answered"] += 1
                assert any(isinstance(event, Done) for event in events)
            "".join(event.text for event in events if isinstance(event, Text)).encode()
    finally:
        await asked.close()

    assert min(outcomes.values()) > 0, outcomes
    assert longest < 2_000
