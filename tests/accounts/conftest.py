import pytest

from tests.api.site import caller, served


@pytest.fixture(scope="session")
def base():
    from conch.asgi import application

    with served(application) as address:
        yield address


@pytest.fixture
def call(base, transactional_db, ada):
    with caller(base, ada) as client:
        yield client
