"""List prices: whose figure counts, what unknown is, what a request can cost at most (R5, R26, R33, R34)."""

import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from conch.ledger import prices
from conch.models import PriceOverride

pytestmark = pytest.mark.django_db
MILLION = Decimal(1_000_000)
DAY = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)

# A list like OpenRouter's, USD per token.
LISTED = [
    {"id": "acme/paid", "input_price": "0.000002", "output_price": "0.00001"},
    {"id": "acme/gift:free", "input_price": "0", "output_price": "0"},
    {"id": "acme/depends", "input_price": "-1", "output_price": "-1"},
    {"id": "acme/odd", "input_price": "n/a", "output_price": None},
    {"id": "acme/nan", "input_price": "NaN", "output_price": "0.1"},
    {"id": "openai/gpt-5.5", "input_price": "0", "output_price": "0"},
    {"id": "claude-sonnet-5"},
    {},
]


def whole_list(*providers):
    snapshot = get_snapshot()
    return [
        (provider.id, model.id)
        for provider in snapshot.providers
        if provider.id in providers
        for model in provider.models
    ]


BUNDLED = whole_list("anthropic", "openai", "openrouter")


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(BUNDLED),
    st.integers(0, 2_000_000),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 200_000),
    st.integers(-200, 400).map(lambda days: DAY + timedelta(days=days)),
)
def test_a_price_is_what_the_bundled_list_says(of, tokens_in, cached, written, tokens_out, day):
    """providers.md 9: tiers of long prompts, cached and written tokens, prices that begin on a day."""
    provider, model = of
    cached = int(tokens_in * cached)
    written = int((tokens_in - cached) * written)
    ours = prices.price_of(provider, model, tokens_in, cached, tokens_out, cache_write_tokens=written, at=day)
    if ours is None:
        return
    usage = Usage(
        input_tokens=tokens_in, cache_read_tokens=cached, cache_write_tokens=written, output_tokens=tokens_out
    )
    theirs = calc_price(usage, model_ref=model, provider_id=provider, genai_request_timestamp=day).total_price
    assert abs(ours - theirs) <= Decimal("1e-15")


def test_nearly_every_model_that_answers_in_text_has_a_price():
    """Unknown is the exception: models without a price for their output, and unnamed gifts."""
    unknown = [of for of in BUNDLED if prices.price_of(*of, 1000, 0, 100) is None]
    assert len(unknown) < len(BUNDLED) // 20
    assert not [model for _, model in unknown if model.endswith(":free")]


@pytest.mark.parametrize(
    ("engine", "model"),
    [
        ("openai", "gpt-5.5-mini"),
        ("openai", "no-such-model"),
        ("openai", ""),
        ("openrouter", "x/y:free"),
        ("openrouter", "openrouter/auto"),
        ("local", "deepseek-r1:8b"),
        ("local", "llama3.2:3b"),
        ("codex", "gpt-5.5"),
        ("claude-code", "claude-sonnet-5"),
        ("anthropic", "sonnet"),
    ],
)
def test_what_no_list_has_is_unknown_and_never_zero(engine, model):
    """R5, R33: also models on this computer, which the bundled list would take for a provider's of that name."""
    assert prices.price_of(engine, model, 2000, 0, 500) is None
    assert prices.most(engine, model, 2000, 500) is None
    assert prices.typical_reply(engine, model) is None
    assert prices.output_within(Decimal(1), engine, model, 2000) is None


@pytest.mark.parametrize(
    ("engine", "model", "same_as"),
    [
        ("anthropic", "claude-sonnet-5[1m]", "claude-sonnet-5"),
        ("anthropic", "Claude-Sonnet-5", "claude-sonnet-5"),
        ("openai", "models/gpt-5.5", "gpt-5.5"),
        ("anthropic", "sonnet", "claude-sonnet-5"),
    ],
)
def test_a_model_is_found_under_the_names_it_goes_by(engine, model, same_as):
    """providers.md 9: a prefix, a suffix of the context's size, an alias of the account's own list."""
    found = prices.price_of(engine, model, 2000, 0, 500, LISTED)
    assert found is not None
    assert found == prices.price_of(engine, same_as, 2000, 0, 500)


@pytest.mark.parametrize("observed", json.loads((Path(__file__).parent / "observed_prices.json").read_text()))
def test_what_was_observed_of_the_bundled_list_still_holds(observed):
    """payloads/prices: what is found and what isn't; the figures themselves may change with the list."""
    found = prices.price_of(observed["provider_id"], observed["model_ref"], 2000, 0, 500)
    assert (found is not None) is observed["found"]


def test_the_providers_own_list_goes_before_the_bundled_one():
    """R5: OpenRouter's price per token."""
    assert prices.price_of("openrouter", "acme/paid", 2000, 0, 500, LISTED) == Decimal("0.009")
    assert prices.price_of("openrouter", "acme/paid", 2000, 2000, 0, LISTED) == Decimal("0.004")


@pytest.mark.parametrize("model", ["acme/depends", "acme/odd", "acme/nan", "acme/unlisted"])
def test_a_list_that_says_nothing_usable_says_nothing(model):
    """R33: a negative price stands for "it depends"."""
    assert prices.price_of("openrouter", model, 2000, 0, 500, LISTED) is None


def test_zero_is_a_price_where_nothing_says_otherwise():
    """R5, R33, BUD-05: a list of zeros is believed for a gift, not for a model that is known to cost."""
    assert prices.price_of("openrouter", "acme/gift:free", 2000, 0, 500, LISTED) == 0
    assert prices.price_of("openrouter", "openai/gpt-5.5", 2000, 0, 500, LISTED) > 0
    gifts = [model for provider, model in BUNDLED if provider == "openrouter" and model.endswith(":free")]
    assert {prices.price_of("openrouter", model, 2000, 0, 500) for model in gifts} == {0}


def test_an_admins_price_goes_before_every_list_at_once():
    """R5: also a price of zero, and for a model that no list has."""
    before = prices.price_of("openai", "gpt-5.5", 1000, 0, 0)
    row = PriceOverride.objects.create(engine="openai", model="GPT-5.5", input_per_million=7, output_per_million=9)
    assert prices.price_of("openai", "gpt-5.5", 1000, 0, 0) == Decimal("0.007") != before
    assert prices.price_of("openai", "gpt-5.5", 1000, 1000, 1000) == Decimal("0.016")
    row.input_per_million, row.output_per_million, row.cached_input_per_million = 0, 0, Decimal("0.5")
    row.save()
    assert prices.price_of("openai", "gpt-5.5", 1000, 0, 1000) == 0
    assert prices.price_of("openai", "gpt-5.5", 1000, 1000, 1000) == Decimal("0.0005")
    row.delete()
    assert prices.price_of("openai", "gpt-5.5", 1000, 0, 0) == before


def test_a_price_set_by_another_process_counts_within_half_a_minute(monkeypatch):
    prices.price_of("openai", "gpt-5.5", 1000, 0, 0)
    PriceOverride.objects.bulk_create(
        [PriceOverride(engine="openai", model="gpt-5.5", input_per_million=7, output_per_million=9)]
    )
    assert prices.price_of("openai", "gpt-5.5", 1000, 0, 0) != Decimal("0.007")
    later = time.monotonic() + prices.OVERRIDES_KEPT_SECONDS + 1
    monkeypatch.setattr(prices.time, "monotonic", lambda: later)
    assert prices.price_of("openai", "gpt-5.5", 1000, 0, 0) == Decimal("0.007")


def test_a_typical_reply_is_fifteen_hundred_tokens_in_and_five_hundred_out():
    """R5."""
    assert prices.typical_reply("openrouter", "acme/paid", LISTED) == Decimal("0.008")


@pytest.fixture
def tiered():
    """The first bundled model whose prompts cost more beyond a length, with that length."""
    for provider, model in BUNDLED:
        found = next(p for p in get_snapshot().providers if p.id == provider).find_model(model)
        steps = getattr(found.get_prices(DAY), "input_mtok", None)
        if hasattr(steps, "tiers"):
            return provider, model, steps.tiers[0].start
    raise AssertionError("no model in the bundled list has a tier any more")


def test_the_most_is_the_whole_prompt_with_a_tenth_more_and_the_whole_output_cap():
    """R26: at list price, nothing cached."""
    PriceOverride.objects.create(
        engine="openai", model="m", input_per_million=10, cached_input_per_million=1, output_per_million=100
    )
    assert prices.most("openai", "m", 1000, 500) == Decimal("0.061")
    assert prices.most("openai", "m", 1, 0) == Decimal("0.00002")  # a tenth of one token is one more


def test_the_most_is_at_the_tier_of_that_length(tiered):
    """R26: a prompt just below the step is over it with its tenth."""
    provider, model, start = tiered
    below, above = (prices.most(provider, model, tokens, 0, at=DAY) for tokens in (start // 2, start))
    assert above > 2 * below * Decimal("1.05")


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(BUNDLED),
    st.integers(0, 1_000_000),
    st.floats(0, 1.1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 8192),
)
def test_no_request_costs_more_than_the_most_that_was_held_for_it(of, counted, real, cached, written, cap):
    """R26: however much of it was cached, wherever the real count lies within the tenth."""
    most = prices.most(*of, counted, cap, at=DAY)
    if most is None:
        return
    whole = int(counted * real)
    cached = int(whole * cached)
    written = int((whole - cached) * written)
    assert prices.price_of(*of, whole, cached, cap, cache_write_tokens=written, at=DAY) <= most


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(BUNDLED), st.integers(0, 300_000), st.decimals(0, 2, places=4))
def test_the_output_cap_leaves_the_request_within_what_is_left(of, counted, left):
    """R34: 8,192, less where less is left; as much as fits."""
    cap = prices.output_within(left, *of, counted, at=DAY)
    if cap is None:
        return
    assert 0 <= cap <= prices.OUTPUT_CAP
    if cap:
        assert prices.most(*of, counted, cap, at=DAY) <= left
    if cap < prices.OUTPUT_CAP:
        assert prices.most(*of, counted, cap * 10 // 9 + 2, at=DAY) > left


def test_prices_are_asked_for_where_the_database_may_be_read():
    """They say so always, not only when the overrides are due to be read."""

    async def asked():
        return prices.price_of("openai", "gpt-5.5", 1, 0, 1)

    prices.price_of("openai", "gpt-5.5", 1, 0, 1)
    with pytest.raises(SynchronousOnlyOperation):
        async_to_sync(asked)()


def test_a_lookup_costs_microseconds_and_no_query(django_assert_num_queries):
    """The hot path: ten accounts are priced for every decision."""
    asked = [(provider, model) for provider, model in BUNDLED[:200]]
    for of in asked:
        prices.typical_reply(*of)
    with django_assert_num_queries(0):
        started = time.thread_time()
        for _ in range(10):
            for of in asked:
                prices.typical_reply(*of)
        each = (time.thread_time() - started) / 2000
    assert each < 500e-6  # a few microseconds on an idle machine; a search through the list takes milliseconds
