"""A database for several processes: PostgreSQL where CONCH_TEST_POSTGRES names a server, else SQLite."""

import os
import time
from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.growing.proxy import Proxy
from tests.soak import faults

POSTGRES = os.environ.get("CONCH_TEST_POSTGRES", "")
AWAY_SECONDS = 2.0


@pytest.fixture
def database():
    """A new database: its address, and how it goes away for a while."""
    if not POSTGRES:
        yield "", faults.lock
        return
    name = f"conch_growing_{os.getpid()}"
    there = urlsplit(POSTGRES)
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        proxy = Proxy((there.hostname, there.port or 5432))
        who = there.netloc.rpartition("@")[0]
        try:
            yield f"postgres://{who}@127.0.0.1:{proxy.port}/{name}", partial(away, proxy)
        finally:
            proxy.end()
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def away(proxy, *_):
    """The database can't be reached for a while, then it is back."""
    kept, proxy.backends = proxy.backends, []
    proxy.hang_up()
    time.sleep(AWAY_SECONDS)
    proxy.backends = kept
