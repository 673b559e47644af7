"""Refusals from the field, each by its case, and the fine points of providers.md."""

from datetime import UTC, datetime, timedelta

import pytest

from conch.engines.base import LimitReached, Overloaded, SignedOut, Throttled
from conch.engines.refusals import Answer, Speaks, reading_failure
from tests.engines.answers import SIX, facts, limit, meant, rejected, said, throttled
from tests.engines.conftest import NOW

CODEX_LIMIT = {
    "type": "error",
    "status_code": 429,
    "error": {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": 1777936568,
        "eligible_promo": None,
        "resets_in_seconds": 13872,
    },
}


def test_lim_01_a_full_plan_is_one_limit_of_the_whole_account_with_its_meters():
    """LIM-01: until the 5-hour reset; the 80% of the week don't matter, and both meters are read."""
    headers = {
        "X-Codex-Active-Limit": "premium",
        "X-Codex-Plan-Type": "plus",
        "X-Codex-Primary-Used-Percent": "100",
        "X-Codex-Primary-Window-Minutes": "300",
        "X-Codex-Primary-Reset-At": "1777936568",
        "X-Codex-Primary-Reset-After-Seconds": "13873",
        "X-Codex-Secondary-Used-Percent": "80",
        "X-Codex-Secondary-Window-Minutes": "10080",
        "X-Codex-Secondary-Reset-At": "1778239400",
        "X-Codex-Credits-Has-Credits": "False",
    }
    now = datetime(2026, 5, 4, 19, 24, 56, tzinfo=UTC)
    error = said(429, CODEX_LIMIT, speaks=Speaks.CODEX, now=now, model="gpt-5.5", headers=headers)
    assert facts(error) == limit(datetime(2026, 5, 4, 23, 16, 8, tzinfo=UTC))
    assert not error.accepted
    assert error.room.plan == "plus"
    assert [(window.name, window.used_percent) for window in error.room.windows] == [("5-hour", 100), ("weekly", 80)]


def test_a_meter_of_its_own_blocks_its_model_only():
    """R8: a refusal that names a model counts for that model."""
    headers = {
        "x-codex-active-limit": "codex_spark",
        "x-codex_spark-limit-name": "Example-Spark",
        "x-codex_spark-primary-used-percent": "100",
        "x-codex_spark-primary-window-minutes": "300",
        "x-codex_spark-primary-reset-at": "1791568800",
        "x-codex-primary-used-percent": "3",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1791569000",
    }
    body = {"error": {"type": "usage_limit_reached", "message": "…"}}
    error = said(429, body, speaks=Speaks.CODEX, model="example-spark", headers=headers)
    assert facts(error) == limit(SIX, model="example-spark")


def test_a_refusal_by_two_full_windows_lasts_until_the_later_reset():
    """providers.md 3.3: the later one, where the body says none."""
    headers = {
        "x-codex-primary-used-percent": "100",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "1791568800",
        "x-codex-secondary-used-percent": "100",
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": "1791925200",
    }
    error = said(429, {"error": {"type": "usage_limit_reached"}}, speaks=Speaks.CODEX, headers=headers)
    assert error.until == datetime.fromtimestamp(1791925200, UTC)


def test_lim_03_a_per_minute_refusal_of_a_key_is_a_pause():
    """LIM-03: no limit, no block: 17 seconds."""
    body = {
        "type": "error",
        "error": {
            "type": "rate_limit_error",
            "message": "This request would exceed the rate limit for your organization (ORG) of 30,000 input tokens.",
        },
    }
    headers = {
        "retry-after": "17",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-18T10:00:17Z",
    }
    assert facts(said(429, body, speaks=Speaks.ANTHROPIC, headers=headers)) == throttled(17.0)


def test_lim_03_a_prompt_larger_than_a_minutes_allowance_is_too_long():
    """LIM-03: said instead of trying for ever."""
    message = (
        "Request too large for gpt-5.5 in organization org-example on tokens per min (TPM): Limit 30000, Requested "
        "45000. The input or output tokens must be reduced in order to run successfully."
    )
    body = {"error": {"message": message, "type": "tokens", "param": None, "code": "rate_limit_exceeded"}}
    assert facts(said(429, body)) == rejected("too_long", fits_tokens=30000)


def test_without_retry_after_the_emptied_bucket_says_how_long():
    headers = {
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-10-09T12:00:50Z",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-10-09T12:00:06Z",
    }
    body = {"error": {"type": "rate_limit_error", "message": "slow down"}}
    assert facts(said(429, body, speaks=Speaks.ANTHROPIC, headers=headers)) == throttled(6.0)
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "3.6s"}
    assert facts(said(429, {"error": {"type": "tokens"}}, headers=headers)) == throttled(3.6)


def test_lim_05_no_credit_comes_as_a_bad_request():
    """LIM-05: out of credit, without a reset."""
    error = meant(Speaks.ANTHROPIC, "anthropic/error_400_credit_too_low.json")
    assert facts(error) == limit(scope="money")
    assert not error.accepted


def test_lim_07_what_a_key_can_still_afford_is_said():
    """LIM-07."""
    message = (
        "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only "
        "afford 3919. To increase, visit https://openrouter.ai/settings/credits"
    )
    body = {"error": {"message": message, "code": 402, "metadata": {"provider_name": None}}}
    assert facts(said(402, body, speaks=Speaks.OPENROUTER)) == limit(scope="money", affordable_output=3919)


def test_lim_10_a_gate_for_long_prompts_is_too_long_and_no_limit():
    """LIM-10."""
    body = {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": "Extra usage is required for long context requests."},
    }
    headers = {"anthropic-ratelimit-unified-status": "allowed"}
    assert facts(said(429, body, speaks=Speaks.ANTHROPIC, headers=headers)) == rejected("too_long")


def test_lim_22_a_plan_without_codex_has_no_reset():
    """LIM-22: an entitlement."""
    body = {
        "error": {
            "type": "usage_not_included",
            "message": "To use Codex with your ChatGPT plan, upgrade to Plus",
            "plan_type": "free",
        }
    }
    assert facts(said(429, body, speaks=Speaks.CODEX)) == limit(scope="not_entitled")


@pytest.mark.parametrize("speaks", list(Speaks))
@pytest.mark.parametrize(
    "message",
    [
        "messages: at least one message is required",
        "Your prompt asks about usage limits and rate limit reached",
        "You have reached the maximum of 20 images: usage limit for attachments",
    ],
)
def test_lim_24_a_bad_request_that_speaks_of_limits_is_a_bad_request(speaks, message):
    """LIM-24, R30."""
    assert facts(said(400, {"error": {"message": message}}, speaks=speaks)) == rejected("bad")


@pytest.mark.parametrize(
    "odd", ["Wed, 99 Foo 2026 25:61:00 GMT", "soon", "NaN", "-5", "", "Infinity"], ids=lambda odd: odd or "empty"
)
def test_rst_05_an_unreadable_wait_is_a_pause_above_zero(odd):
    """RST-05."""
    error = said(429, {"error": {"type": "rate_limit_error"}}, speaks=Speaks.ANTHROPIC, headers={"Retry-After": odd})
    assert isinstance(error, Throttled)
    assert error.retry_after >= 1


def test_a_wait_of_zero_on_a_refusal_that_stays_is_half_a_minute():
    """providers.md 10."""
    assert facts(said(429, {"error": {}}, headers={"retry-after": "0"})) == throttled(30.0)


def test_rst_13_a_date_in_another_language_is_not_guessed():
    """RST-13: the provider's words are kept, the reset is unknown."""
    message = "Ai atins limita de utilizare. … încearcă din nou la 21 iun. 2026, 00:22."
    error = said(429, {"error": {"type": "usage_limit_reached", "message": message}}, speaks=Speaks.CODEX)
    assert facts(error) == limit()
    assert error.said == message


def test_rst_18_a_wrong_clock_waits_the_relative_time_and_says_so():
    """RST-18."""
    now = datetime(2026, 5, 5, 3, 24, 56, tzinfo=UTC)
    headers = {"Date": "Mon, 04 May 2026 19:24:56 GMT"}
    error = said(429, CODEX_LIMIT, speaks=Speaks.CODEX, now=now, headers=headers)
    assert error.until == now + timedelta(seconds=13872)
    assert error.clock_off_seconds == 8 * 3600


def test_rst_23_a_wait_longer_than_any_window_is_cut():
    """RST-23: 18 days become eight."""
    body = {"error": {"type": "rate_limit_error", "message": "cooling down"}}
    error = said(429, body, speaks=Speaks.ANTHROPIC, headers={"Retry-After": "1587827"})
    assert facts(error) == limit(NOW + timedelta(days=8))


def test_rst_25_a_reset_hours_ahead_is_kept():
    """RST-25: five hours, never shortened."""
    now = datetime(2026, 8, 3, 9, tzinfo=UTC)
    body = {"error": {"type": "usage_limit_reached", "resets_at": 1785765600}}
    assert said(429, body, speaks=Speaks.CODEX, now=now).until == datetime.fromtimestamp(1785765600, UTC)


def test_rst_27_a_burst_stays_a_pause_however_often_it_comes():
    """RST-27: nothing escalates."""
    body = {"error": {"message": "Rate limit exceeded: tokens per minute", "code": 429}}
    for _ in range(3):
        assert facts(said(429, body, speaks=Speaks.OPENROUTER, headers={"retry-after": "20"})) == throttled(20.0)


def test_a_busy_upstream_is_never_a_limit_of_the_account():
    body = {"error": {"code": 429, "message": "Provider returned error", "metadata": {"provider_name": "Example"}}}
    assert facts(said(429, body, speaks=Speaks.OPENROUTER, headers={"retry-after": "3600"})) == throttled(60.0)


@pytest.mark.parametrize("status", [401, 429, 403, 500])
def test_lim_20_a_failed_reading_marks_no_account(status):
    """LIM-20: a throttled or refused meter says nothing of the plan."""
    body = {"error": {"type": "rate_limit_error", "message": "Rate limited. Please try again later."}}
    answer = Answer(status, {"retry-after": "0"} if status == 429 else {}, body if status == 429 else "")
    for speaks in Speaks:
        error = reading_failure(speaks, answer, NOW)
        assert not isinstance(error, LimitReached)
        assert isinstance(error, SignedOut) == (status == 401)
        assert isinstance(error, Throttled) == (status == 429)
    credit = Answer(402, {}, {"error": {"message": "Insufficient credits", "code": 402}})
    assert not isinstance(reading_failure(Speaks.OPENROUTER, credit, NOW), LimitReached)


@pytest.mark.parametrize(
    ("status", "body", "speaks", "expected"),
    [
        (401, {"error": {"type": "authentication_error", "message": "invalid x-api-key"}},
         Speaks.ANTHROPIC, "SignedOut"),
        (404, {"error": {"type": "not_found_error", "message": "model: x"}}, Speaks.ANTHROPIC, "model_gone"),
        (400, {"error": {"type": "invalid_request_error", "message": "messages: roles must alternate"}},
         Speaks.ANTHROPIC, "bad"),
        (525, "<html>SSL handshake failed</html>", Speaks.ANTHROPIC, "EngineFault"),
        (403, "<html>Just a moment…</html>", Speaks.CODEX, "EngineFault"),
        (403, {"error": {"type": "permission_error", "message": "no access"}}, Speaks.ANTHROPIC, "bad"),
        (404, {"error": {"code": "model_not_found", "message": "The model `x` does not exist"}},
         Speaks.COMPATIBLE, "model_gone"),
        (400, {"error": {"message": "nope/nope is not a valid model ID", "code": 400}},
         Speaks.OPENROUTER, "model_gone"),
        (404, {"error": {"message": "No endpoints found that support image input", "code": 404}},
         Speaks.OPENROUTER, "images"),
        (404, {"error": {"message": "No endpoints found that support tool use.", "code": 404}},
         Speaks.OPENROUTER, "tools"),
        (400, {"error": {"message": "messages[0]: unknown variant `image_url`, expected `text`"}},
         Speaks.COMPATIBLE, "images"),
        (302, "", Speaks.COMPATIBLE, "EngineFault"),
    ],
)  # fmt: skip
def test_fbk_17_what_is_wrong_with_a_key_a_model_or_a_request_is_no_limit(status, body, speaks, expected):
    """FBK-17, FBK-10: each says what to fix."""
    error = said(status, body, speaks=speaks)
    assert expected in (type(error).__name__, getattr(error, "reason", ""))


@pytest.mark.parametrize(
    "message",
    [
        "The 'gpt-5.5-mini' model is not supported when using Codex with a ChatGPT account.",
        "The '' model is not supported when using Codex with a ChatGPT account.",
        "The 'gpt-12' model requires a newer version of Codex. Please upgrade to the latest app or CLI and try again.",
        "Model not found gpt-5.6-luna",
    ],
)
def test_fbk_05_a_model_that_a_plan_has_not_is_gone(message):
    """FBK-05: the body is `{"detail": …}`."""
    assert facts(said(400, {"detail": message}, speaks=Speaks.CODEX)) == rejected("model_gone")


@pytest.mark.parametrize(
    ("status", "error", "fits"),
    [
        (400, {"message": "prompt token count of 125516 exceeds the limit of 64000",
               "code": "model_max_prompt_tokens_exceeded"}, 64000),
        (400, {"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"},
         200000),
        (400, {"code": "context_length_exceeded",
               "message": "This model's maximum context length is 128000 tokens. However, …"}, 128000),
        (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}, None),
        (500, {"code": 500, "type": "exceed_context_size_error", "message": "…", "n_ctx": 4096}, 4096),
    ],
)  # fmt: skip
def test_fbk_06_a_prompt_that_is_too_long_is_no_limit(status, error, fits):
    """FBK-06, R9: it says what would fit, where it does."""
    expected = rejected("too_long") | ({"fits_tokens": fits} if fits else {})
    for speaks in Speaks:
        assert facts(said(status, {"error": error}, speaks=speaks)) == expected


@pytest.mark.parametrize(
    ("status", "accepted"),
    [(500, True), (502, True), (504, True), (408, True), (503, False), (529, False), (429, False)],
)
def test_bud_11_only_what_took_nothing_is_known_to_have_taken_nothing(status, accepted):
    """BUD-11, R8, R34."""
    assert said(status, {"error": {"message": "…"}}).accepted is accepted


@pytest.mark.parametrize("started", [False, True])
def test_an_overload_inside_a_stream_may_be_paid_for_once_it_began(started):
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = said(200, body, speaks=Speaks.ANTHROPIC, in_stream=True, accepted=started)
    assert isinstance(error, Overloaded)
    assert error.accepted is started


def test_no_key_is_repeated_in_a_refusal():
    """base.EngineError: `said` is redacted."""
    body = {"error": {"message": "Incorrect API key provided: sk-exam****key. Bearer abcdef123456, my-own-secret"}}
    shown = said(401, body, secret="my-own-secret").said
    assert shown == "Incorrect API key provided: … …, …"
    assert len(said(400, {"error": {"message": "x" * 10_000}}).said) < 510
