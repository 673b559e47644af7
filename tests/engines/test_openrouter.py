"""OpenRouter by key: what is its own beside the contract."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from conch.engines.base import Access, EngineFault, LimitReached, Message, Request, Usage
from conch.engines.openrouter import OpenRouter
from tests.engines.conftest import NOW
from tests.engines.provider import heard, heard_until_refused, payload, text_of

ASK = Request("openai/gpt-5.5", (Message("user", "Hi"),), max_output_tokens=8192)


@pytest.fixture
async def router(provider):
    engine = OpenRouter()
    engine.clients.now = lambda: NOW
    yield engine
    await engine.close()


@pytest.fixture
def access(provider):
    return Access("r", provider.url + "/api/v1", "sk-or-x")


async def test_what_was_charged_is_exact(provider, router, access):
    """providers.md 0.5: the last chunk's cost, as written."""
    provider.says(payload("openrouter/chat_ok.sse"))
    usage = [event for event in await heard(router.reply(access, ASK)) if isinstance(event, Usage)][-1]
    assert usage == Usage(2000, 0, None, 500, Decimal("0.0213"))
    assert provider.asked[0].path == "/api/v1/chat/completions"


async def test_an_upstream_that_breaks_off_is_no_limit(provider, router, access):
    provider.says(payload("openrouter/chat_error_midstream.sse"))
    said, error = await heard_until_refused(router.reply(access, ASK))
    assert text_of(said) == "The tide"
    assert isinstance(error, EngineFault)
    assert error.accepted


async def test_the_keys_own_reset_is_asked_for_where_the_refusal_gives_none(provider, router, access):
    """providers.md 0.4: computed from the key's `limit_reset`."""
    body = {"error": {"code": 402, "message": "…", "metadata": {"limit_source": "openrouter_key_limit"}}}
    provider.says(body, status=402, path="/api/v1/chat")
    provider.says(payload("openrouter/key_exhausted.json"), path="/api/v1/key")
    _, error = await heard_until_refused(router.reply(access, ASK))
    assert isinstance(error, LimitReached)
    assert error.until == datetime(2026, 11, 1, tzinfo=UTC)
    assert error.room.key_left == 0
    provider.says(body, status=402, path="/api/v1/chat")
    provider.says({}, status=500, path="/api/v1/key")
    _, error = await heard_until_refused(router.reply(access, ASK))
    assert error.until is None


async def test_models_have_live_prices_and_abilities(provider, router, access):
    provider.says(payload("openrouter/models.json"))
    listed = {model.id: model for model in await router.models(access)}
    gpt = listed["openai/gpt-5.5"]
    assert (gpt.label, gpt.tools, gpt.images, gpt.context) == ("OpenAI: GPT-5.5", True, False, 400000)
    assert (gpt.input_price, gpt.output_price) == (Decimal("0.000005"), Decimal("0.00003"))
    assert listed["example/tiny:free"].input_price == 0
    # A negative price means that it varies: no figure.
    assert listed["openrouter/auto"].input_price is None
