"""Fixtures of the engine tests: a provider on loopback, and the instant that recorded payloads were made for."""

from datetime import UTC, datetime

import pytest

from tests.engines.plans import no_spares, plan
from tests.engines.provider import Provider

__all__ = ["no_spares", "plan"]

NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)


@pytest.fixture
async def provider():
    """A loopback server that says what a test tells it to."""
    made = await Provider().start()
    yield made
    await made.stop()
