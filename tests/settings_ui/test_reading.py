"""Figures that are over a minute old are read while the page is looked at (R29)."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from conch.models import Account, Window
from tests.conftest import make_account
from tests.settings_ui.conftest import window
from tests.simulator.fixtures import simulator  # noqa: F401  a fixture is found by its name


@pytest.fixture
def tables(transactional_db):
    """Readings are written by the writer thread."""


def test_old_figures_are_read_and_what_follows_is_shown(signed_in, simulator, tmp_path):  # noqa: F811
    key = simulator.codex("ada@work.example", tmp_path)
    key.window(300, used=40, resets_in=3600)
    codex = make_account(signed_in.person, home=key.home, base_url=simulator.base_urls["codex"])
    window(codex, 90, timezone.now() - timedelta(hours=1))

    response = signed_in.post("/settings/read", {"engine": "codex"}, headers={"HX-Request": "true"})

    assert response.status_code == 200
    assert Window.objects.get(name="5-hour").used_percent == 40
    assert "60% left" in re.sub(r"<[^>]+>", "", response.content.decode())


def test_fresh_figures_are_left_alone(signed_in):
    make_account(signed_in.person, read_at=timezone.now())

    assert signed_in.post("/settings/read", headers={"HX-Request": "true"}).status_code == 204


def test_one_that_cannot_be_read_keeps_its_figures(signed_in):
    """R29: a reading that fails changes nothing."""
    codex = make_account(signed_in.person, home="/nowhere", base_url="http://127.0.0.1:9/backend-api")
    window(codex, 90, timezone.now())

    assert signed_in.post("/settings/read", {"engine": "codex"}).status_code == 200
    assert Window.objects.get().used_percent == 90
    assert Account.objects.get().read_failed_at is not None
