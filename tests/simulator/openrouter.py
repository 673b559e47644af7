"""OpenRouter under /api/v1: chat with comments and cost, the key's facts, models with prices (providers.md 6)."""

from typing import Any

from tests.simulator.keys import Key
from tests.simulator.openai import ChatStream, chat_usage
from tests.simulator.scripts import Call
from tests.simulator.wire import Asked, Refusal, Usage, sse

# USD a token: prompt, completion.
PRICES = {
    "anthropic/claude-sonnet-5": ("0.000003", "0.000015"),
    "openai/gpt-5.5": ("0.000005", "0.00003"),
    "openai/gpt-5-mini": ("0.00000025", "0.000002"),
    "example/tiny:free": ("0", "0"),
    "openrouter/auto": ("-1", "-1"),
}
NAMES = {
    "anthropic/claude-sonnet-5": "Anthropic: Claude Sonnet 5",
    "openai/gpt-5.5": "OpenAI: GPT-5.5",
    "openai/gpt-5-mini": "OpenAI: GPT-5 Mini",
    "example/tiny:free": "Example: Tiny (free)",
    "openrouter/auto": "Auto Router",
}
SETTINGS = "Manage it using https://openrouter.ai/settings/keys"


def refusal(
    status: int, message: str, metadata: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> Refusal:
    error: dict[str, Any] = {"code": status, "message": message}
    if metadata is not None:
        error["metadata"] = metadata
    return Refusal(status, {"error": error, "user_id": "user_example0001"}, headers or {})


def unauthorized() -> Refusal:
    return Refusal(401, {"error": {"code": 401, "message": "No auth credentials found"}})


def key_limit(key: Key) -> Refusal:
    """403 of a key whose own limit is spent."""
    period = f" ({key.cap.resets} limit)" if key.cap.resets else ""
    return refusal(403, f"Key limit exceeded{period}. {SETTINGS}")


def cost_of(model: str, usage: Usage) -> float:
    """What OpenRouter would charge; a model without a fixed price goes as GPT-5 mini."""
    prompt, completion = PRICES.get(model, PRICES["openai/gpt-5-mini"])
    if prompt == "-1":
        prompt, completion = PRICES["openai/gpt-5-mini"]
    return round(usage.input_tokens * float(prompt) + usage.output_tokens * float(completion), 9)


def key_facts(key: Key) -> dict[str, Any]:
    cap = key.cap
    spent = round(cap.spent, 9)
    data = {
        "label": key.label or f"{key.secret[:11]}...{key.secret[-3:]}",
        "limit": cap.limit,
        "limit_remaining": None if cap.limit is None else round(cap.limit - spent, 9),
        "limit_reset": cap.resets,
        "include_byok_in_limit": False,
        "usage": spent,
        "usage_daily": spent,
        "usage_weekly": spent,
        "usage_monthly": spent,
        "byok_usage": 0,
        "byok_usage_daily": 0,
        "byok_usage_weekly": 0,
        "byok_usage_monthly": 0,
        "is_free_tier": cap.free_requests is not None,
        "is_management_key": False,
        "is_provisioning_key": False,
        "creator_user_id": key.user_id or "user_example0001",
        "expires_at": None,
        "rate_limit": {"requests": -1, "interval": "10s", "note": "This field is deprecated and safe to ignore."},
    }
    if cap.free_requests is not None:
        used, limit = cap.free_requests
        data["free_model_daily_requests"] = {"used": used, "limit": limit, "remaining": limit - used}
    return {"data": data}


def credits_refused() -> Refusal:
    return Refusal(403, {"error": {"code": 403, "message": "Only management keys can perform this operation"}})


def models() -> dict[str, Any]:
    return {"data": [_model(model, *price) for model, price in PRICES.items()]}


def _model(model: str, prompt: str, completion: str) -> dict[str, Any]:
    images = ["text"] if model.startswith("example/") else ["text", "image"]
    tools = ["max_tokens", "temperature"] + ([] if model.startswith("example/") else ["tools"])
    return {
        "id": model,
        "canonical_slug": model,
        "name": NAMES[model],
        "created": 1780000000,
        "context_length": 32000 if model.startswith("example/") else 400000,
        "architecture": {"modality": "text->text", "input_modalities": images, "output_modalities": ["text"]},
        "pricing": {"prompt": prompt, "completion": completion},
        "top_provider": {"context_length": 400000, "max_completion_tokens": 128000, "is_moderated": False},
        "supported_parameters": tools,
    }


class Stream(ChatStream):
    """OpenRouter's chunks: comments first, the last chunk always with usage and cost."""

    def __init__(self, asked: Asked, created: float) -> None:
        super().__init__(asked.model, created, usage_wanted=True)
        self._facts |= {"provider": "Simulated"}

    def opening(self, usage: Usage) -> bytes:
        return b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + super().opening(usage)

    def thinking(self, text: str) -> bytes:
        return self._chunk({"reasoning": text})

    def closing(self, usage: Usage, ending: str) -> bytes:
        finish = {"stop": "stop", "length": "length", "tool": "tool_calls"}.get(ending, ending)
        said = self._chunk({"content": ""}, finish, native_finish_reason=finish)
        said += self._chunk({"content": ""}, None, usage=paid_usage(usage))
        return said + b"data: [DONE]\n\n"

    def refusal(self, refusal: Refusal, inside: str) -> bytes:
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return sse(self._facts | {"error": refusal.error, "choices": [choice]}) + b"data: [DONE]\n\n"

    def whole(self, text: str, calls: tuple[Call, ...], usage: Usage, ending: str) -> dict[str, Any]:
        return super().whole(text, calls, usage, ending) | {"usage": paid_usage(usage)}


def paid_usage(usage: Usage) -> dict[str, Any]:
    cost = {"cost": usage.cost, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    return chat_usage(usage) | cost
