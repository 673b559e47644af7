"""The owner of a machine, and sessions that end with their test."""

import pytest

from conch.tools import sessions
from tests.conftest import make_person


@pytest.fixture
def owner(transactional_db):
    return make_person("ada", is_owner=True)


@pytest.fixture
async def _ended():
    yield
    await sessions.end_all()
