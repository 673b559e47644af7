"""Each provider's own ways to say no, as rules for refusals.refusal. Pure."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from conch.engines import resets, windows
from conch.engines.base import EngineError, LimitReached, Overloaded, SignedOut, Throttled
from conch.engines.refusals_told import Rule, Speaks, Told, by_time

_NO_CREDIT = {
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_not_active",
    "billing_hard_limit_reached",
}
_SPEND_LIMITS = {"enforced_spend_limit_reached", "contract_spend_limit_reached"}
_LINKED_BILLING = {"linked_organization_spend_limit_reached", "linked_organization_billing_unavailable"}
_TOO_LONG = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
    "string_above_max_length",
    "request_too_large",
}

_OWN_LIMIT = re.compile(r"You have reached your specified (?:workspace )?API usage limits", re.IGNORECASE)
_LONG_CONTEXT = re.compile(r"extra usage is required for long context", re.IGNORECASE)
_AFFORDS = re.compile(r"can only afford (\d+)")
_KEY_LIMIT = re.compile(r"key limit exceeded(?: \((daily|weekly|monthly) limit\))?", re.IGNORECASE)
_SIZE = re.compile(
    r"prompt is too long|maximum context length|exceeds? the (?:available )?context|prompt token count"
    r"|input is too long",
    re.IGNORECASE,
)
# A prompt beyond what may be sent in a minute: waiting never helps (LIM-03).
_LARGER_THAN_A_MINUTE = re.compile(r"^request too large for ", re.IGNORECASE)
_FITS = re.compile(
    r"(?:tokens? > |: limit |limit of |maximum context length (?:is|of) |context size \()(\d[\d,]{2,})", re.IGNORECASE
)
_GONE = re.compile(
    r"\bmodel\b.{0,200}?\b(?:not found|does not exist|not supported when using|is not available|has been retired"
    r"|requires a newer version)"
    r"|not a valid model|no endpoints found for|^model: ",
    re.IGNORECASE | re.DOTALL,
)
_NO_IMAGES = re.compile(
    r"unknown variant .?image_url|(?:does not|doesn't|not) support (?:\w+ )?image|image input", re.IGNORECASE
)
_NO_TOOLS = re.compile(r"(?:does not|doesn't|not) support (?:\w+ )?tool|support tool use", re.IGNORECASE)

_UNFIT = (("images", _NO_IMAGES), ("tools", _NO_TOOLS), ("model_gone", _GONE))


def anthropic(told: Told, now: datetime) -> EngineError | None:
    """Anthropic: spend limits with a date in the message, credit as a 400, a size gate that looks like a throttle."""
    code = told.mapping("details").get("error_code")
    if told.status in {400, 429} and (code in _SPEND_LIMITS or _OWN_LIMIT.match(told.message)):
        at = resets.regained(told.message)
        until = resets.reset(at.timestamp() if at else None, None, told.headers, now, longest=resets.LONGEST_MONTH)
        return told.limit(now, until=until)
    no_credit = told.status == 400 and told.message.startswith("Your credit balance is too low")
    if no_credit or code in _LINKED_BILLING or told.status == 402 or told.type == "billing_error":
        return told.limit(now, scope="money")
    if told.status == 429 and _LONG_CONTEXT.search(told.message):
        return told.rejected("too_long")
    return None


def no_credit(told: Told, now: datetime) -> EngineError | None:
    """OpenAI's family of "no credit": the type first, then the code; it never has a reset."""
    return told.limit(now, scope="money") if told.codes & _NO_CREDIT else None


def codex(told: Told, now: datetime) -> EngineError | None:
    """The ChatGPT plan: only the error's type tells a limit; the reset from the body, else from the full window."""
    if "usage_not_included" in told.codes:
        return told.limit(now, scope="not_entitled")
    if "usage_limit_reached" in told.codes:
        return _codex_limit(told, now)
    if told.codes & {"server_is_overloaded", "slow_down"}:
        return Overloaded(told.words, accepted=told.answer.accepted, status=told.status)
    return None


def _codex_limit(told: Told, now: datetime) -> LimitReached:
    room = windows.codex_headers(told.headers, now)
    reached = told.headers.get("x-codex-rate-limit-reached-type", "")
    meter = told.headers.get("x-codex-active-limit", "")
    # A meter of its own, beside the plan's: it blocks the model that was asked, not the account.
    name = told.headers.get(f"x-{meter}-limit-name", "") if meter not in {"", "codex"} else ""
    until = resets.reset(told.error.get("resets_at"), told.error.get("resets_in_seconds"), told.headers, now)
    if until is None and not reached.startswith("workspace_"):
        until = resets.bounded(windows.full_until(room, scope=name), now, longest=resets.LONGEST_MONTH)
    scope = "money" if reached.endswith("credits_depleted") else "limit"
    return told.limit(now, until=until, scope=scope, room=room, model=told.model if name else "")


def openrouter(told: Told, now: datetime) -> EngineError | None:
    """OpenRouter: credit (402), the key's own cap (402 or 403), its day's free requests, a busy upstream."""
    facts = told.mapping("metadata")
    source = facts.get("limit_source")
    capped = _KEY_LIMIT.match(told.message)
    if told.status in {402, 403} and (source == "openrouter_key_limit" or capped):
        kind = capped[1] if capped else None
        at = resets.instant(facts.get("resets_at")) or resets.starts_anew((kind or "").lower(), told.headers, now)
        return told.limit(now, until=resets.bounded(at, now, longest=resets.LONGEST_MONTH))
    if told.status == 402 and source == "openrouter_in_flight_budget":
        wait = resets.pause(told.headers, now) or 5.0
        return Throttled(told.words, retry_after=max(wait, 1.0), accepted=told.answer.accepted, status=402)
    if told.status == 402:
        affords = _AFFORDS.search(told.message)
        return told.limit(now, scope="money", affordable_output=int(affords[1]) if affords else None)
    return _openrouter_busy(told, facts, now) if told.status == 429 else None


def _openrouter_busy(told: Told, facts: Mapping[str, Any], now: datetime) -> EngineError:
    wait = resets.pause(told.headers, now)
    if facts.get("provider_name") or facts.get("raw") or facts.get("provider_code"):
        # One upstream is busy; the account isn't.
        wait = min(wait or 5.0, 60.0)
        return Throttled(told.words, retry_after=max(wait, 1.0), accepted=told.answer.accepted, status=429)
    inner = facts.get("headers")
    inner = {str(name).lower(): value for name, value in inner.items()} if isinstance(inner, Mapping) else {}
    until = resets.reset(inner.get("x-ratelimit-reset"), None, told.headers, now)
    if wait is None and until is not None:
        wait = (until - now).total_seconds()
    found = by_time(told, now, wait)
    if isinstance(found, LimitReached) and told.model.endswith(":free"):
        found.model = told.model  # the day's free requests are used up; paid models go on
    return found


def gemini(told: Told, now: datetime) -> EngineError | None:
    """Google's error objects: quotas by model and day or minute, prepaid credit, a key that isn't one."""
    kind = told.error.get("status")
    details = told.error.get("details")
    details = [item for item in details if isinstance(item, Mapping)] if isinstance(details, list) else []
    if kind == "INVALID_ARGUMENT":
        bad_key = "API key not valid" in told.message or any(d.get("reason") == "API_KEY_INVALID" for d in details)
        return SignedOut(told.words, status=told.status) if bad_key else None
    if kind != "RESOURCE_EXHAUSTED":
        return None
    if told.status == 402 or "prepayment credits are depleted" in told.message:
        return told.limit(now, scope="money")
    quotas = list(_violations(details))
    if any(quota.get("quotaValue") in {"0", 0} for quota in quotas) or re.search(r"limit: 0\b", told.message):
        return told.limit(now, scope="not_entitled", model=told.model)
    if any("PerDay" in str(quota.get("quotaId")) for quota in quotas):
        return told.limit(now, until=resets.next_pacific_midnight(now), model=told.model)
    return by_time(told, now, _delay(details))


def _violations(details: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    for detail in details:
        found = detail.get("violations")
        yield from (item for item in found if isinstance(item, Mapping)) if isinstance(found, list) else ()


def _delay(details: Iterable[Mapping[str, Any]]) -> float | None:
    for detail in details:
        facts = detail.get("metadata")
        wait = resets.duration(detail.get("retryDelay"))
        if wait is None and isinstance(facts, Mapping):
            wait = resets.duration(facts.get("quotaResetDelay"))
        if wait:
            return wait
    return None


def unfit(told: Told, now: datetime) -> EngineError | None:  # noqa: ARG001 - a rule
    """This request, not this account: too long, its model gone, images or tools not taken. Never a limit (FBK-06)."""
    by_words = _LARGER_THAN_A_MINUTE if told.status == 429 else _SIZE if told.status in {400, 413, 422} else None
    if told.codes & _TOO_LONG or (by_words and by_words.search(told.message)):
        named, fits = _FITS.search(told.message), told.error.get("n_ctx")
        if not isinstance(fits, int):
            fits = int(named[1].replace(",", "")) if named else None
        return told.rejected("too_long", fits_tokens=fits)
    if told.status not in {400, 403, 404, 410, 422}:
        return None
    for reason, matches in _UNFIT:
        if matches.search(told.message):
            return told.rejected(reason)
    return told.rejected("model_gone") if "model_not_found" in told.codes else None


RULES: Mapping[Speaks, tuple[Rule, ...]] = {
    Speaks.ANTHROPIC: (anthropic, unfit),
    Speaks.OPENROUTER: (openrouter, unfit),
    Speaks.CODEX: (codex, no_credit, unfit),
    Speaks.COMPATIBLE: (no_credit, gemini, unfit),
}
