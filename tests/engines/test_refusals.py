"""What each provider's "no" means, over recorded answers (providers.md 0.4, 2.2, 4, 5.3, 6, 7, 10)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conch.engines.base import (
    EngineError,
    EngineFault,
    LimitReached,
    Overloaded,
    Rejected,
    SignedOut,
    Throttled,
)
from conch.engines.refusals import Answer, Speaks, refusal
from tests.engines.answers import MONTH, SIX, facts, limit, meant, rejected, throttled
from tests.engines.conftest import NOW


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("error_400_credit_too_low", limit(scope="money")),
        ("error_400_plain", rejected("bad")),
        ("error_400_usage_limit_org", limit(MONTH)),
        ("error_400_usage_limit_workspace", limit(MONTH)),
        ("error_401", {"kind": "SignedOut"}),
        ("error_402_billing", limit(scope="money")),
        ("error_429_enforced_spend_limit", limit(MONTH)),
        ("error_429_throttle", throttled(23.0)),
        ("error_529_overloaded", {"kind": "Overloaded"}),
    ],
)
def test_anthropics_refusals(name, expected):
    assert facts(meant(Speaks.ANTHROPIC, f"anthropic/{name}.json")) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("error_401", {"kind": "SignedOut"}),
        ("error_429_past_resets_at", limit(NOW + timedelta(seconds=900))),
        ("error_429_seconds_only", limit(SIX)),
        ("error_429_throttle", throttled(11.054)),
        ("error_429_usage_limit", limit(SIX)),
        ("error_429_usage_not_included", limit(scope="not_entitled")),
        ("error_429_workspace_no_reset", limit(scope="money")),
        ("error_503_overloaded", {"kind": "Overloaded"}),
    ],
)
def test_the_chatgpt_plans_refusals(name, expected):
    assert facts(meant(Speaks.CODEX, f"codex_direct/{name}.json")) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("error_400_billing_hard_limit", limit(scope="money")),
        ("error_401", {"kind": "SignedOut"}),
        ("error_429_credit_balance_exhausted", limit(scope="money")),
        ("error_429_insufficient_quota", limit(scope="money")),
        ("error_429_project_spend_limit", limit(scope="money")),
        ("error_429_rate_limit", throttled(3.6)),
        # Longer than a turn would wait: a refusal until then, of the model that the message names.
        ("error_429_rate_limit_rpd", limit(NOW + timedelta(seconds=432), model="gpt-5.5")),
        ("error_503_overloaded", {"kind": "Overloaded"}),
    ],
)
def test_openais_refusals(name, expected):
    assert facts(meant(Speaks.COMPATIBLE, f"openai/{name}.json", model="gpt-5.5")) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("error_402_credits", limit(scope="money")),
        ("error_402_in_flight", throttled(12.0)),
        ("error_402_no_metadata", limit(scope="money")),
        ("error_403_key_limit", limit(MONTH)),
        ("error_403_key_limit_metadata_unverified", limit(MONTH)),
        ("error_403_moderation", rejected("bad")),
        ("error_429_free_per_day", limit(datetime(2026, 10, 10, tzinfo=UTC), model="example/tiny:free")),
        ("error_429_upstream", throttled(5.0)),
        ("error_502", {"kind": "EngineFault"}),
    ],
)
def test_openrouters_refusals(name, expected):
    assert facts(meant(Speaks.OPENROUTER, f"openrouter/{name}.json", model="example/tiny:free")) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("error_400_key_invalid", {"kind": "SignedOut"}),
        ("error_429_limit_zero", limit(scope="not_entitled", model="gemini-2.5-flash")),
        ("error_429_per_day_array", limit(datetime(2026, 10, 10, 7, tzinfo=UTC), model="gemini-2.5-flash")),
        ("error_429_per_day_short_delay", limit(datetime(2026, 10, 10, 7, tzinfo=UTC), model="gemini-2.5-flash")),
        ("error_429_per_minute", throttled(38.2)),
        ("error_429_prepaid_unverified", limit(scope="money")),
        ("error_503", {"kind": "Overloaded"}),
    ],
)
def test_geminis_refusals(name, expected):
    assert facts(meant(Speaks.COMPATIBLE, f"gemini/{name}.json", model="gemini-2.5-flash")) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llamacpp/error_400_context", rejected("too_long", fits_tokens=4096)),
        ("ollama/error_400_no_tools", rejected("tools")),
        ("ollama/error_401_cloud", {"kind": "SignedOut"}),
        ("ollama/error_404_model", rejected("model_gone")),
    ],
)
def test_refusals_of_local_servers(name, expected):
    assert facts(meant(Speaks.COMPATIBLE, f"{name}.json")) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["error", "type", "code", "message", "metadata", "details", "detail", "response", "status", "headers",
             "resets_at", "resets_in_seconds", "violations", "quotaId", "retryDelay", "limit_source"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.sampled_from(list(Speaks)),
    st.sampled_from([200, 302, 400, 401, 402, 403, 404, 413, 429, 500, 503, 529, 599]),
    JSON,
    st.dictionaries(st.sampled_from(["retry-after", "date", "x-codex-primary-used-percent"]), st.text(max_size=12)),
)
def test_no_answer_of_any_provider_is_beyond_words(speaks, status, body, headers):
    """Whatever comes, it is one of our errors, and a pause is above zero."""
    error = refusal(speaks, Answer(status, headers, body, in_stream=status == 200), NOW)
    assert isinstance(error, EngineError)
    assert isinstance(error, LimitReached | Throttled | Overloaded | SignedOut | Rejected | EngineFault)
    if isinstance(error, Throttled):
        assert error.retry_after > 0
    if isinstance(error, LimitReached) and error.until:
        assert error.until > NOW
