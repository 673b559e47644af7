"""What a reply costs at list price. Unknown is None, never zero; zero is a price (R5, R33).

Looked up in this order: an admin's PriceOverride; the provider's own list, kept in the account's `known_models`
(OpenRouter's); genai-prices with the data in its wheel, never fetched. A zero in a provider's list is believed only
where the bundled list doesn't say otherwise. A model on this computer has no entry anywhere, so it is never priced.

The functions read the database (overrides, kept for half a minute), so they are called where that may block: inside a
step, a view or a command. Lookups are kept; what is left is arithmetic.
"""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from django.db.models.signals import post_delete, post_migrate, post_save
from django.dispatch import receiver
from django.utils.asyncio import async_unsafe

from conch.engines import registry
from conch.models import PriceOverride
from conch.money import to_nano

# R5: a typical reply's tokens in and out.
TYPICAL_REPLY = (1500, 500)
# R34, R7: the cap on output tokens of a request to a key, and the least that is worth asking for.
OUTPUT_CAP = 8192
SMALLEST_OUTPUT = 256

OVERRIDES_KEPT_SECONDS = 30.0
MILLION = 1_000_000
ZERO = Decimal(0)

Steps = tuple[tuple[int, Decimal], ...]
KnownModels = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per million tokens, each as steps: (prompt tokens beyond which it holds, price), lowest first.

    Crossing a step puts every token of the request at its price, as the providers' long-context tiers do.
    """

    input: Steps
    cached: Steps
    cache_write: Steps
    output: Steps

    def cost(self, whole: int, cached: int, cache_write: int, output: int) -> Decimal:
        """USD for a request: `whole` is the prompt with what was read from and written to the cache."""
        fresh = whole - cached - cache_write
        return (
            _at(self.input, whole) * fresh
            + _at(self.cached, whole) * cached
            + _at(self.cache_write, whole) * cache_write
            + _at(self.output, whole) * output
        ) / MILLION


@async_unsafe("prices read the admin's overrides: ask for them inside a step or a thread")
def price_of(
    engine: str,
    model: str,
    input_tokens: int,
    cached_tokens: int,
    output_tokens: int,
    known_models: KnownModels = (),
    *,
    cache_write_tokens: int = 0,
    at: datetime | None = None,
) -> Decimal | None:
    """USD at list price for those tokens, by the prices of that day (today's); None where the model can't be priced.

    `input_tokens` is the whole prompt, cached tokens included. A provider that counts them beside it is understood: a
    prompt smaller than its cached part gets that part added.
    """
    rates = _rates(engine, model, known_models, at)
    if rates is None:
        return None
    cached, cache_write = max(0, cached_tokens), max(0, cache_write_tokens)
    whole = max(0, input_tokens)
    if cached + cache_write > whole:
        whole += cached + cache_write
    return rates.cost(whole, cached, cache_write, max(0, output_tokens))


def typical_reply(engine: str, model: str, known_models: KnownModels = ()) -> Decimal | None:
    """USD for a typical reply by that model (R5): what Settings shows and keys are ordered by."""
    tokens_in, tokens_out = TYPICAL_REPLY
    return price_of(engine, model, tokens_in, 0, tokens_out, known_models)


@async_unsafe("prices read the admin's overrides: ask for them inside a step or a thread")
def most(
    engine: str,
    model: str,
    input_tokens: int,
    output_cap: int,
    known_models: KnownModels = (),
    *,
    at: datetime | None = None,
) -> Decimal | None:
    """The most USD that a request can cost (R26): a tenth is added here to the tokens counted; the whole output cap.

    Nothing is taken as cached; where writing to a cache costs more than reading plainly, all of it is taken as
    written. A provider's own list has no tiers for long prompts, so the bundled list counts where it asks more.
    """
    whole = with_a_tenth(input_tokens)
    asked = [rates for rates in _all_rates(engine, model, known_models, at) if rates is not None]
    if not asked:
        return None
    return max(_most(rates, whole, output_cap) for rates in asked)


@async_unsafe("prices read the admin's overrides: ask for them inside a step or a thread")
def output_within(
    left: Decimal,
    engine: str,
    model: str,
    input_tokens: int,
    known_models: KnownModels = (),
    *,
    at: datetime | None = None,
) -> int | None:
    """The largest output cap, up to OUTPUT_CAP, with which the request's `most` is within `left` USD (R34).

    None where the model can't be priced (nothing bounds it); below SMALLEST_OUTPUT there is no room (R7, R18).
    """
    without = most(engine, model, input_tokens, 0, known_models, at=at)
    whole = most(engine, model, input_tokens, OUTPUT_CAP, known_models, at=at)
    if without is None or whole is None:
        return None
    if whole <= left:
        return OUTPUT_CAP
    # In whole nanodollars, as the hold will be: what fits here fits there.
    base, span = to_nano(without, up=True), to_nano(whole, up=True) - to_nano(without, up=True)
    over = to_nano(left) - base
    return over * OUTPUT_CAP // span if over > 0 and span > 0 else 0


def with_a_tenth(tokens: int) -> int:
    """Tokens as counted, with a tenth more (R26): a count is never exact for every tokenizer."""
    return -(-max(0, tokens) * 11 // 10)


@lru_cache(maxsize=4096)
def context_of(engine: str, model: str) -> int | None:
    """How many tokens that model reads and writes at once, by the bundled list; None where it doesn't say."""
    found = _found(engine, _plain(model))
    return None if found is None else found.context_window


def warm() -> None:
    """Load the bundled list now: it takes a second, better spent at the start than in somebody's first turn."""
    from genai_prices.data_snapshot import get_snapshot

    get_snapshot()


def _most(rates: Rates, whole: int, output_cap: int) -> Decimal:
    tokens_in = max(_at(rates.input, whole), _at(rates.cache_write, whole))
    return (tokens_in * whole + _at(rates.output, whole) * output_cap) / MILLION


def _at(steps: Steps, whole: int) -> Decimal:
    price = steps[0][1]
    for beyond, higher in steps[1:]:
        if whole > beyond:
            price = higher
    return price


def _rates(engine: str, model: str, known_models: KnownModels, at: datetime | None) -> Rates | None:
    return next((rates for rates in _all_rates(engine, model, known_models, at) if rates is not None), None)


def _all_rates(engine: str, model: str, known_models: KnownModels, at: datetime | None) -> Iterable[Rates | None]:
    """The rates in the order in which they count: an override alone, else the provider's list and the bundled one."""
    name = _plain(model)
    override = _overrides().get((engine, name))
    if override is not None:
        return (override,)
    listed, bundled = _listed(model, known_models), _on_day(_bundled(engine, name), at)
    if bundled is None and listed is None and name.isalpha():
        alias = _family(name, known_models)
        listed, bundled = _listed(alias, known_models), _on_day(_bundled(engine, _plain(alias)), at)
    # Zero is a claim to be checked (BUD-05).
    return (bundled, listed) if listed == FREE and bundled is not None else (listed, bundled)


@lru_cache(maxsize=4096)
def _plain(model: str) -> str:
    """A model id as the lists know it: without Google's "models/" and Claude's "[1m]", in small letters."""
    return re.sub(r"\[[^\]]*\]$", "", model.strip().lower().removeprefix("models/"))


def _family(name: str, known_models: KnownModels) -> str:
    """The first known model of a family that is named alone ("sonnet" → "claude-sonnet-5"); "" where there is none."""
    ids = (str(known.get("id", "")) for known in known_models)
    return next((model for model in ids if name in re.split(r"[-/]", model.lower())), "")


def _flat(price: Decimal) -> Steps:
    return ((0, price),)


FREE = Rates(_flat(ZERO), _flat(ZERO), _flat(ZERO), _flat(ZERO))


def _listed(model: str, known_models: KnownModels) -> Rates | None:
    """What the provider's own list says, kept as USD per token; a negative price stands for "it depends": unknown."""
    known = next((known for known in known_models if known.get("id") == model), None)
    if known is None or known.get("input_price") is None or known.get("output_price") is None:
        return None
    return _per_token(str(known["input_price"]), str(known["output_price"]))


@lru_cache(maxsize=4096)
def _per_token(input_price: str, output_price: str) -> Rates | None:
    try:
        prices = Decimal(input_price) * MILLION, Decimal(output_price) * MILLION
    except InvalidOperation:
        return None
    if not all(price.is_finite() and price >= 0 for price in prices):
        return None
    plain = _flat(prices[0])
    return Rates(input=plain, cached=plain, cache_write=plain, output=_flat(prices[1]))


# The bundled list: each model's prices with the days from which they hold, as genai-prices keeps them.
_Dated = tuple[tuple[Any, Rates | None], ...]


@lru_cache(maxsize=4096)
def _bundled(engine: str, model: str) -> _Dated:
    """The bundled prices of a model; empty where it isn't listed."""
    from genai_prices.types import ModelPrice

    found = _found(engine, model)
    if found is None:
        return ()
    if isinstance(found.prices, ModelPrice):
        return ((None, _from_bundled(found.prices, model)),)
    return tuple((dated.constraint, _from_bundled(dated.prices, model)) for dated in found.prices)


def _found(engine: str, model: str) -> Any:
    """The model in the bundled list, None where it isn't in it."""
    from genai_prices.data_snapshot import get_snapshot

    snapshot, listed_as = get_snapshot(), _listed_as(engine)
    if not model or all(provider.id != listed_as for provider in snapshot.providers):
        return None
    try:
        return snapshot.find_provider_model(model, None, listed_as, None)[1]
    except LookupError:
        return None


def _listed_as(engine: str) -> str:
    """The provider's name in the bundled list: the engine's `price_list`, else its id."""
    try:
        return str(getattr(registry.engine(engine), "price_list", engine))
    except (LookupError, ImportError, AttributeError):
        return engine  # removed since; what it did is still in the ledger


def _from_bundled(price: Any, model: str) -> Rates | None:
    """The rates of a bundled price. One without any figure is free only where the model's name says so."""
    if price.input_mtok is None and price.output_mtok is None and model.endswith(":free"):
        return FREE
    if price.input_mtok is None or price.output_mtok is None:
        return None
    plain = _steps(price.input_mtok)
    return Rates(
        input=plain,
        cached=plain if price.cache_read_mtok is None else _steps(price.cache_read_mtok),
        cache_write=plain if price.cache_write_mtok is None else _steps(price.cache_write_mtok),
        output=_steps(price.output_mtok),
    )


def _steps(price: Any) -> Steps:
    if isinstance(price, Decimal):
        return _flat(price)
    return ((0, price.base), *((tier.start, tier.price) for tier in price.tiers))


def _on_day(dated: _Dated, at: datetime | None) -> Rates | None:
    """The rates in force: the last whose condition holds, else the first (genai-prices' rule)."""
    if len(dated) <= 1:
        return dated[0][1] if dated else None
    at = at or datetime.now(UTC)
    return next((rates for when, rates in reversed(dated) if when is None or when.active(at)), dated[0][1])


# What an admin set goes before any list. Kept for half a minute, for the sake of other processes; a change made in
# this one counts at once.
_kept: tuple[float, dict[tuple[str, str], Rates]] | None = None


def _overrides() -> dict[tuple[str, str], Rates]:
    global _kept
    if _kept is None or time.monotonic() - _kept[0] > OVERRIDES_KEPT_SECONDS:
        rows = PriceOverride.objects.all()
        _kept = (time.monotonic(), {(row.engine, _plain(row.model)): _from_override(row) for row in rows})
    return _kept[1]


def _from_override(row: PriceOverride) -> Rates:
    plain = _flat(row.input_per_million)
    cached = row.cached_input_per_million
    return Rates(plain, plain if cached is None else _flat(cached), plain, _flat(row.output_per_million))


@receiver([post_save, post_delete], sender=PriceOverride)
@receiver(post_migrate)
def forget_overrides(**_: object) -> None:
    """Read the overrides anew at the next price asked for."""
    global _kept
    _kept = None
