"""The `simulator` fixture: a fresh one for each test, in a thread of its own."""

import pytest

from tests.simulator.simulator import Simulator


@pytest.fixture
def simulator():
    with Simulator() as running:
        yield running


@pytest.fixture
def tls_simulator():
    """The same with https beside it, by an authority whose certificate is at `ca_path`."""
    with Simulator(with_tls=True) as running:
        yield running
