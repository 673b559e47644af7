"""Every refusal of providers.md by a name, as its provider gives it.

`refusal_of(provider, key, Refuse(name, facts))` renders one. Every provider has the common names: `throttle`,
`overloaded`, `server_error`, `unauthorized`, `model_gone`, `too_long`, `bad_request`. Facts that a scenario takes:
`resets_in` (seconds; None: no reset is given), `retry_after` (seconds), `model`, `message`, and its function's own.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.simulator import anthropic, chatgpt, openai, openrouter
from tests.simulator.keys import Key
from tests.simulator.scripts import Refuse
from tests.simulator.wire import Refusal

Scenario = Callable[..., Refusal]
ANTHROPIC, OPENAI, OPENROUTER, CHATGPT = "anthropic", "openai", "openrouter", "chatgpt"
HOUR, WEEK = 3600, 7 * 86400


def names(provider: str) -> tuple[str, ...]:
    return tuple(SCENARIOS[provider])


def refusal_of(provider: str, key: Key, refuse: Refuse) -> Refusal:
    """The refusal as this provider gives it. Raises KeyError for a name it doesn't have."""
    made = SCENARIOS[provider][refuse.name](key, **refuse.facts)
    return Refusal(made.status, made.body, {"date": key.clock.date} | made.headers)


def _retry(retry_after: float | None) -> dict[str, str]:
    return {} if retry_after is None else {"retry-after": f"{retry_after:g}"}


# Anthropic


def _anthropic(status: int, kind: str, message: str, key: Key, *, retry_after: float | None = None, **facts: Any):
    said = facts.pop("message", message)
    return anthropic.refusal(status, kind, said, _retry(retry_after), **facts)


def _anthropic_throttle(key: Key, *, retry_after: float | None = 23, message: str = ""):
    said = message or "This request would exceed your organization's rate limit of 30,000 input tokens per minute."
    headers = anthropic.per_minute(key) | {"anthropic-ratelimit-input-tokens-remaining": "0"} | _retry(retry_after)
    return anthropic.refusal(429, "rate_limit_error", said, headers)


def _regain(key: Key, resets_in: float) -> str:
    at = datetime.fromtimestamp(key.clock.now() + resets_in, UTC)
    return f"You will regain access on {at:%Y-%m-%d} at {at:%H:%M} UTC."


def _anthropic_own_limit(key: Key, *, resets_in: float = 20 * 86400, workspace: bool = False):
    whose = "workspace API" if workspace else "API"
    said = f"You have reached your specified {whose} usage limits. {_regain(key, resets_in)}"
    return anthropic.refusal(400, "invalid_request_error", said)


def _anthropic_spend_limit(key: Key, *, resets_in: float = 20 * 86400, code: str = "enforced_spend_limit_reached"):
    said = f"You have reached your monthly spend limit. {_regain(key, resets_in)}"
    return anthropic.refusal(429, "rate_limit_error", said, error_code=code)


def _anthropic_plan(minutes: int, claim: str, key: Key, *, resets_in: float | None = 4 * HOUR, model: str = ""):
    """A claude.ai plan's window is full: unified headers say which and until when."""
    if not any(each.minutes == minutes and each.model == model and each.used >= 100 for each in key.windows):
        key.window(minutes, used=100, resets_in=resets_in, model=model)
    headers = anthropic.unified(key, claim) | {"x-should-retry": "true"}
    if resets_in is not None:
        headers["retry-after"] = str(int(resets_in))
    said = "This request would exceed your account's rate limit. Please try again later."
    return anthropic.refusal(429, "rate_limit_error", said, headers)


ANTHROPIC_SCENARIOS: dict[str, Scenario] = {
    "throttle": _anthropic_throttle,
    "overloaded": partial(_anthropic, 529, "overloaded_error", "Overloaded"),
    "server_error": partial(_anthropic, 500, "api_error", "Internal server error"),
    "timeout": partial(_anthropic, 504, "timeout_error", "Request timed out"),
    "unauthorized": partial(_anthropic, 401, "authentication_error", "invalid x-api-key"),
    "forbidden": partial(_anthropic, 403, "permission_error", "Your API key may not use this resource."),
    "model_gone": partial(_anthropic, 404, "not_found_error", "model: claude-gone"),
    "too_long": partial(_anthropic, 400, "invalid_request_error", "prompt is too long: 212000 tokens > 200000 maximum"),
    "too_large": partial(_anthropic, 413, "request_too_large", "Request exceeds the maximum size"),
    "bad_request": partial(_anthropic, 400, "invalid_request_error", "messages: at least one message is required"),
    "credit_too_low": partial(
        _anthropic,
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API."
        " Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    "billing": partial(_anthropic, 402, "billing_error", "There is a problem with your billing details."),
    "organization_spend_limit": partial(
        _anthropic,
        402,
        "billing_error",
        "The linked organization reached its spend limit.",
        error_code="linked_organization_spend_limit_reached",
    ),
    "usage_limit": _anthropic_own_limit,
    "workspace_limit": partial(_anthropic_own_limit, workspace=True),
    "spend_limit": _anthropic_spend_limit,
    "contract_limit": partial(_anthropic_spend_limit, code="contract_spend_limit_reached"),
    "ramp_limit": partial(
        _anthropic,
        429,
        "rate_limit_error",
        "Your usage grew too fast. Please grow it more slowly.",
        retry_after=30,
        error_code="ramp_limit_exceeded",
    ),
    "long_context": partial(_anthropic, 429, "rate_limit_error", "Extra usage is required for long context requests."),
    "session": partial(_anthropic_plan, 300, "five_hour"),
    "weekly": partial(_anthropic_plan, 10080, "seven_day", resets_in=3 * 86400),
    "opus_weekly": partial(_anthropic_plan, 10080, "seven_day_opus", resets_in=3 * 86400, model="opus"),
}


# OpenAI


def _openai(status: int, kind: str, code: str | None, message: str, key: Key, **facts: Any):
    headers = openai.headers(key) | _retry(facts.get("retry_after"))
    return openai.refusal(status, facts.get("message", message), kind, code, headers)


def _openai_throttle(key: Key, *, retry_after: float | None = 3.6, per_day: bool = False, in_message: bool = True):
    what, wait = ("requests per day (RPD)", "7m12s") if per_day else ("tokens per min (TPM)", f"{retry_after}s")
    hint = f" Please try again in {wait}." if in_message and (per_day or retry_after is not None) else ""
    said = f"Rate limit reached for gpt-5.5 in organization org-example on {what}: Limit 30000, Used 29800.{hint}"
    headers = openai.headers(key)
    if per_day:
        headers |= {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": wait}
    elif retry_after is not None:
        headers |= {"retry-after": str(-(-retry_after // 1)), "retry-after-ms": str(int(retry_after * 1000))}
        headers |= {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": wait}
    return openai.refusal(429, said, "requests" if per_day else "tokens", "rate_limit_exceeded", headers)


def _google(key: Key, *, quota: str, delay: str | None = "38.2s", message: str = "You exceeded your current quota."):
    """Gemini's refusal on the OpenAI-compatible endpoint: an array of one (providers.md 7)."""
    violation = {"quotaMetric": "generativelanguage.googleapis.com/requests", "quotaId": quota, "quotaValue": "20"}
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
    ]
    if delay is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return Refusal(429, [{"error": error}], {})


QUOTA = "You exceeded your current quota, please check your plan and billing details."
OPENAI_SCENARIOS: dict[str, Scenario] = {
    "throttle": _openai_throttle,
    "throttle_per_day": partial(_openai_throttle, per_day=True),
    "slow_down": partial(_openai, 429, "rate_limit_error", "slow_down", "Slow down."),
    "overloaded": partial(
        _openai, 503, "server_error", None, "The engine is currently overloaded, please try again later"
    ),
    "server_error": partial(_openai, 500, "server_error", None, "The server had an error. Sorry about that!"),
    "unauthorized": partial(_openai, 401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "model_gone": partial(
        _openai, 404, "invalid_request_error", "model_not_found", "The model `gpt-gone` does not exist."
    ),
    "too_long": partial(
        _openai,
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "llama_too_long": lambda key, tokens=9000, context=4096: Refusal(
        400,
        {
            "error": {
                "code": 400,
                "message": f"the request exceeds the available context size ({context} tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": tokens,
                "n_ctx": context,
            }
        },
    ),
    "bad_request": partial(_openai, 400, "invalid_request_error", None, "Invalid value for 'input'."),
    "insufficient_quota": partial(_openai, 429, "insufficient_quota", "insufficient_quota", QUOTA),
    "credit_balance_exhausted": partial(
        _openai, 429, "insufficient_quota", "credit_balance_exhausted", "Your credit balance is exhausted."
    ),
    "organization_spend_limit": partial(
        _openai,
        429,
        "insufficient_quota",
        "organization_spend_limit_exceeded",
        "This organization reached its spend limit for the month.",
    ),
    "project_spend_limit": partial(
        _openai,
        429,
        "insufficient_quota",
        "project_spend_limit_exceeded",
        "This project reached its spend limit for the month.",
    ),
    "organization_usage_limit": partial(
        _openai,
        429,
        "insufficient_quota",
        "organization_usage_limit_exceeded",
        "This organization reached its usage limit.",
    ),
    "billing_not_active": partial(
        _openai, 429, "billing_not_active", "billing_not_active", "Your account is not active."
    ),
    "billing_hard_limit": partial(
        _openai, 400, "invalid_request_error", "billing_hard_limit_reached", "Billing hard limit has been reached"
    ),
    "gemini_per_day": partial(_google, quota="GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
    "gemini_per_minute": partial(_google, quota="GenerateRequestsPerMinutePerProjectPerModel"),
    "gemini_no_quota": partial(
        _google, quota="GenerateRequestsPerDayPerProjectPerModel-FreeTier", message="Quota exceeded, limit: 0"
    ),
}


# OpenRouter


def _openrouter(status: int, message: str, metadata: dict[str, Any] | None, key: Key, **facts: Any):
    return openrouter.refusal(status, facts.get("message", message), metadata, _retry(facts.get("retry_after")))


def _openrouter_key_limit(key: Key, *, period: str | None = "monthly", resets_in: float | None = None, status=403):
    shown = f" ({period} limit)" if period else ""
    metadata = None
    if resets_in is not None:
        at = datetime.fromtimestamp(key.clock.now() + resets_in, UTC).isoformat().replace("+00:00", "Z")
        metadata = {"limit_source": "openrouter_key_limit", "limit_usd": 20, "spend_usd": 20, "resets_at": at}
    elif status == 402:
        metadata = {"limit_source": "openrouter_key_limit"}
    return openrouter.refusal(status, f"Key limit exceeded{shown}. {openrouter.SETTINGS}", metadata)


def _openrouter_affordable(key: Key, *, asked: int = 8192, afford: int = 1234):
    said = (
        "This request requires more credits, or fewer max_tokens."
        f" You requested up to {asked} tokens, but can only afford {afford}."
        " To increase, visit https://openrouter.ai/settings/credits and add more credits"
    )
    return openrouter.refusal(402, said)


def _openrouter_free_per_day(key: Key, *, resets_in: float = 12 * HOUR):
    reset = str(int((key.clock.now() + resets_in) * 1000))
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    said = "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"
    return openrouter.refusal(429, said, {"headers": headers, "provider_name": None})


NO_CREDIT = "Insufficient credits. Add more using https://openrouter.ai/settings/credits"
BUSY = {"provider_name": "Example", "raw": "example/model is temporarily rate-limited upstream."}
IN_FLIGHT = {"limit_source": "openrouter_in_flight_budget", "reason": "in_flight_budget_exhausted"}
FLAGGED = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "Example", "model_slug": "example/model"}
OPENROUTER_SCENARIOS: dict[str, Scenario] = {
    "throttle": partial(_openrouter, 429, "Rate limit exceeded", {"provider_name": None}, retry_after=5),
    "upstream": partial(_openrouter, 429, "Provider returned error", BUSY),
    "overloaded": partial(_openrouter, 503, "No provider is available right now", {"provider_name": "Example"}),
    "busy": partial(_openrouter, 529, "Provider is overloaded", {"provider_name": "Example"}),
    "server_error": partial(_openrouter, 502, "Provider returned error", {"provider_name": "Example"}),
    "unauthorized": lambda key: openrouter.unauthorized(),
    "model_gone": partial(_openrouter, 404, "No endpoints found for example/gone.", None),
    "too_long": partial(
        _openrouter,
        400,
        "This endpoint's maximum context length is 32000 tokens. However, you requested about 40000 tokens.",
        None,
    ),
    "bad_request": partial(_openrouter, 400, 'Input required: specify "prompt" or "messages"', None),
    "no_credit": partial(_openrouter, 402, NO_CREDIT, {"limit_source": "openrouter_credits"}),
    "no_credit_plain": partial(_openrouter, 402, "This request requires more credits, or fewer max_tokens.", None),
    "affordable": _openrouter_affordable,
    "in_flight": partial(_openrouter, 402, "Too many requests in flight for your balance.", IN_FLIGHT, retry_after=12),
    "key_limit": _openrouter_key_limit,
    "key_limit_402": partial(_openrouter_key_limit, status=402),
    "moderation": partial(_openrouter, 403, "The input was flagged.", FLAGGED),
    "free_per_day": _openrouter_free_per_day,
}


# Codex, by a ChatGPT sign-in


def _codex_limit(
    key: Key,
    *,
    minutes: int = 300,
    resets_in: float | None = 4 * HOUR,
    fields: tuple[str, ...] | list[str] = ("resets_at", "resets_in_seconds"),
    stale: bool = False,
    headers: bool = True,
):
    """A window is full. `fields`: which of the body's two fields are sent; `stale`: resets_at has passed already."""
    if not any(each.minutes == minutes and each.used >= 100 for each in key.windows):
        key.window(minutes, used=100, resets_in=resets_in)
    facts: dict[str, Any] = {"plan_type": key.plan}
    if resets_in is not None:
        at = {"resets_at": int(key.clock.now() + (-30 if stale else resets_in)), "resets_in_seconds": int(resets_in)}
        facts |= {name: at[name] for name in fields}
    shown = chatgpt.headers(key) | {"x-codex-active-limit": "codex"} if headers else {}
    return chatgpt.refusal(429, "usage_limit_reached", "The usage limit has been reached", shown, **facts)


def _codex_workspace(key: Key, *, kind: str = "workspace_member_credits_depleted"):
    headers = {"x-codex-rate-limit-reached-type": kind, "x-codex-credits-has-credits": "false"}
    said = "Your workspace is out of credits."
    return chatgpt.refusal(429, "usage_limit_reached", said, headers, plan_type="business")


def _codex_throttle(key: Key, *, retry_after: float = 11.054):
    said = f"Rate limit reached. Please try again in {retry_after:g}s."
    return chatgpt.refusal(429, "rate_limit_error", said, {}, code="rate_limit_exceeded")


def _codex_error(status: int, code: str, message: str, key: Key):
    return Refusal(status, {"error": {"code": code, "message": message}})


CHATGPT_SCENARIOS: dict[str, Scenario] = {
    "throttle": _codex_throttle,
    "overloaded": partial(_codex_error, 503, "server_is_overloaded", "Our servers are currently overloaded."),
    "server_error": partial(_codex_error, 500, "server_error", "An error occurred."),
    "unauthorized": lambda key: chatgpt.unauthorized(),
    "model_gone": lambda key: chatgpt.detail(400, "The 'gpt-gone' model is not supported when using Codex."),
    "too_long": partial(
        _codex_error, 400, "context_length_exceeded", "Your input exceeds the context window of this model."
    ),
    "bad_request": lambda key: chatgpt.detail(400, "Unsupported parameter: temperature"),
    "usage_limit": _codex_limit,
    "weekly": partial(_codex_limit, minutes=10080, resets_in=3 * 86400),
    "usage_not_included": lambda key: chatgpt.refusal(
        429, "usage_not_included", "Your plan does not include this.", plan_type="free"
    ),
    "workspace_limit": _codex_workspace,
    "bot_wall": lambda key: Refusal(
        403, b"<!DOCTYPE html><html><title>Just a moment...</title></html>", {"content-type": "text/html"}
    ),
    "insufficient_quota": lambda key: chatgpt.refusal(429, "insufficient_quota", QUOTA, code="insufficient_quota"),
}

SCENARIOS: dict[str, dict[str, Scenario]] = {
    ANTHROPIC: ANTHROPIC_SCENARIOS,
    OPENAI: OPENAI_SCENARIOS,
    OPENROUTER: OPENROUTER_SCENARIOS,
    CHATGPT: CHATGPT_SCENARIOS,
}
