"""Connecting by the real programs: verified without asking a model, told apart, and said clearly where it can't be."""

import pytest
from django.utils import timezone

from conch.accounts.connect import CantConnect, Wish, connect
from conch.db import look
from conch.engines.registry import engine
from conch.models import Account
from tests.conftest import make_person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_programs")]


@pytest.fixture
async def ada(transactional_db):
    return await look(make_person, "ada", is_owner=True)


@pytest.fixture(autouse=True)
async def programs_end():
    yield
    for name in ("codex-cli", "claude-code"):
        await engine(name).close()


def wish(simulator, name, home):
    return Wish(name, base_url=simulator.base_urls[name], home=str(home))


async def test_two_people_of_one_kind_are_two_accounts_and_the_same_again_is_the_same(ada, simulator, tmp_path):
    """R1: by whose they are; nothing was asked of a model."""
    for person in ("ada", "bob"):
        simulator.codex(f"{person}@work.example", tmp_path / person).window(10080, used=40, resets_in=9000)
    made = [
        await connect(ada, wish(simulator, "codex-cli", tmp_path / person), timezone.now())
        for person in ("ada", "bob", "ada")
    ]
    assert [(account.slug, account.whose) for account in made] == [
        ("codex-cli", "ada@work.example"),
        ("codex-cli-2", "bob@work.example"),
        ("codex-cli", "ada@work.example"),
    ]
    assert made[0].model == made[0].known_models[0]["id"]  # the plan's best, as the program has it
    windows = await look(lambda: [(window.name, window.used_percent) for window in made[0].windows.all()])
    assert windows == [("weekly", 40)]
    assert simulator.requests() == []


async def test_a_claude_plan_is_connected_with_its_models(ada, simulator, tmp_path):
    simulator.claude("bob@home.example", tmp_path / "bob")
    account = await connect(ada, wish(simulator, "claude-code", tmp_path / "bob"), timezone.now())
    assert (account.whose, account.plan, account.model) == ("bob@home.example", "pro", "opus")
    assert {"opus", "sonnet"} <= {model["id"] for model in account.known_models}
    assert simulator.requests() == []


@pytest.mark.parametrize(("name", "command"), [("claude-code", "claude auth login"), ("codex-cli", "codex login")])
async def test_signed_out_says_how_to_sign_in(ada, simulator, tmp_path, name, command):
    """R36."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(CantConnect, match=command):
        await connect(ada, wish(simulator, name, tmp_path / "empty"), timezone.now())
    assert not await look(Account.objects.exists)


async def test_a_missing_program_says_so(ada, simulator, tmp_path, monkeypatch):
    monkeypatch.setenv("CONCH_CODEX", str(tmp_path / "nowhere"))
    simulator.codex("ada@work.example", tmp_path / "ada")
    with pytest.raises(CantConnect, match="CONCH_CODEX names"):
        await connect(ada, wish(simulator, "codex-cli", tmp_path / "ada"), timezone.now())


async def test_a_home_that_pays_by_a_key_is_no_plan(ada, simulator, tmp_path):
    """R34."""
    (tmp_path / "keyed").mkdir()
    (tmp_path / "keyed/auth.json").write_text('{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-x", "tokens": null}')
    with pytest.raises(CantConnect, match="API key there, not by a ChatGPT plan"):
        await connect(ada, wish(simulator, "codex-cli", tmp_path / "keyed"), timezone.now())
