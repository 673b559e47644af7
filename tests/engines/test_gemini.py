"""Gemini by key: what is its own beside the contract."""

from datetime import UTC, datetime

import pytest

from conch.engines.base import (
    Access,
    Identity,
    LimitReached,
    Message,
    Overloaded,
    Request,
    SignedOut,
    Throttled,
    Usage,
)
from conch.engines.gemini import Gemini
from conch.ledger import prices
from tests.engines.conftest import NOW
from tests.engines.provider import heard, heard_until_refused, payload, text_of

ASK = Request("gemini-2.5-flash", (Message("user", "When is high tide?"),), max_output_tokens=8192)
NEXT_DAY = datetime(2026, 10, 10, 7, tzinfo=UTC)  # midnight in California
LISTED = (
    *("models/gemini-embedding-001", "models/aqa", "models/imagen-4.0-generate-001", "models/veo-3.0-generate-001"),
    *("models/gemini-2.5-flash-preview-tts", "models/gemini-2.5-flash-image", "models/gemini-live-2.5-flash"),
    *("models/gemini-2.5-pro", "models/gemini-2.5-flash", "models/gemma-3-27b-it"),
)


@pytest.fixture
async def gemini(provider):
    engine = Gemini()
    engine.clients.now = lambda: NOW
    yield engine
    await engine.close()


@pytest.fixture
def access(provider):
    return Access("g", provider.url + "/v1beta/openai/", "AIza-made-up")


async def test_a_reply_streams_from_the_compatible_interface(provider, gemini, access):
    """providers.md 7: the key as a bearer, the model's name without "models/"."""
    provider.says(payload("gemini/chat_ok.sse"))
    events = await heard(gemini.reply(access, ASK))
    assert text_of(events) == "The tide turns at six."
    usage = [event for event in events if isinstance(event, Usage)][-1]
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (2000, 500, None)
    asked = provider.asked[0]
    assert asked.path == "/v1beta/openai/chat/completions"
    assert asked.headers["authorization"] == "Bearer AIza-made-up"
    assert (asked.body["model"], asked.body["max_tokens"]) == ("gemini-2.5-flash", 8192)
    assert asked.body["stream_options"] == {"include_usage": True}


async def test_thoughts_are_counted_as_output(provider, gemini, access):
    """R33: Gemini leaves them out of the completion and has them in the total alone, and charges for them."""
    usage = '"completion_tokens":500,"total_tokens":3700'
    provider.says(payload("gemini/chat_ok.sse").replace(b'"completion_tokens":500,"total_tokens":2500', usage.encode()))
    usage = [event for event in await heard(gemini.reply(access, ASK)) if isinstance(event, Usage)][-1]
    assert (usage.input_tokens, usage.output_tokens) == (2000, 1700)


@pytest.mark.parametrize("name", ["error_429_per_day_array", "error_429_per_day_short_delay"])
async def test_a_days_quota_is_a_limit_of_that_model_until_californias_midnight(provider, gemini, access, name):
    """providers.md 7: not for the half minute that it says beside it."""
    provider.says_payload(f"gemini/{name}.json")
    _, error = await heard_until_refused(gemini.reply(access, ASK))
    assert isinstance(error, LimitReached)
    assert (error.scope, error.until, error.model) == ("limit", NEXT_DAY, "gemini-2.5-flash")
    assert not error.accepted


async def test_a_minutes_quota_is_a_pause(provider, gemini, access):
    """R8: its delay is believed."""
    provider.says_payload("gemini/error_429_per_minute.json")
    _, error = await heard_until_refused(gemini.reply(access, ASK))
    assert isinstance(error, Throttled)
    assert error.retry_after == pytest.approx(38.2)


async def test_a_model_without_any_quota_never_resets(provider, gemini, access):
    """providers.md 7: "limit: 0"."""
    provider.says_payload("gemini/error_429_limit_zero.json")
    _, error = await heard_until_refused(gemini.reply(access, ASK))
    assert isinstance(error, LimitReached)
    assert (error.scope, error.until, error.model) == ("not_entitled", None, "gemini-2.5-flash")


async def test_prepaid_credit_that_is_used_up_is_about_money(provider, gemini, access):
    provider.says_payload("gemini/error_429_prepaid_unverified.json")
    _, error = await heard_until_refused(gemini.reply(access, ASK))
    assert isinstance(error, LimitReached)
    assert (error.scope, error.until, error.model) == ("money", None, "")


async def test_an_overload_is_no_limit(provider, gemini, access):
    """R8."""
    provider.says_payload("gemini/error_503.json")
    _, error = await heard_until_refused(gemini.reply(access, ASK))
    assert isinstance(error, Overloaded)


async def test_a_quota_in_mid_stream_comes_in_an_array_too(provider, gemini, access):
    """R30: a limit, and what was said before is kept."""
    first = payload("gemini/chat_ok.sse").split(b"\n\n")[0] + b"\n\n"
    refusal = payload("gemini/error_429_per_day_array.json")["body"]
    provider.says([first, b"data: " + str(refusal).replace("'", '"').encode() + b"\n\n"])
    said, error = await heard_until_refused(gemini.reply(access, ASK))
    assert text_of(said) == "The tide"
    assert isinstance(error, LimitReached)
    assert (error.until, error.accepted) == (NEXT_DAY, True)


async def test_a_key_that_is_none_is_a_bad_request_and_means_signed_out(provider, gemini, access):
    """R36, providers.md 7: 400 with Google's words, at connecting and in a turn."""
    for asking in (lambda: gemini.identify(access), lambda: heard(gemini.reply(access, ASK))):
        provider.says_payload("gemini/error_400_key_invalid.json")
        with pytest.raises(SignedOut):
            await asking()


async def test_only_what_chats_is_listed_by_the_name_that_replies_take(provider, gemini, access):
    listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in LISTED]}
    provider.always("/v1beta/openai/models", listed)
    assert [model.id for model in await gemini.models(access)] == [
        "gemini-2.5-pro",
        "gemini-2.5-flash",
        "gemma-3-27b-it",
    ]
    assert await gemini.identify(access) == Identity()
    assert await gemini.read_room(access) is None


@pytest.mark.django_db
def test_its_models_are_priced_by_googles_list():
    """R33, providers.md 9: the price list calls the provider by another name than the engine."""
    assert prices.typical_reply(Gemini.id, "gemini-2.5-flash") > 0
    assert prices.typical_reply(Gemini.id, "models/gemini-2.5-flash") > 0
    assert prices.typical_reply(Gemini.id, "gemini-that-nobody-knows") is None
