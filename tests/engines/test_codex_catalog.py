"""What each of Codex's models is offered and told: the chat, and nothing that would make it an agent (R34)."""

import json
from dataclasses import replace

import pytest

from conch.engines import codex_catalog, programs
from conch.engines.base import Access, Message, Request
from conch.engines.codex_cli import CodexCli
from tests.engines.plans import Plan
from tests.engines.provider import heard, text_of
from tests.engines.test_programs_tools import WEATHER, Runs
from tests.simulator.scripts import Call, Reply

pytestmark = pytest.mark.usefixtures("real_programs", "no_spares")

NEWER = "gpt-6.1-sol"  # its entry in the catalog wants code mode, tools of the program's own, and many agents
UNAVOIDABLE = {"request_user_input"}  # nothing turns it off; the program declines it outside of its plan mode


@pytest.fixture
async def ada(simulator, tmp_path, monkeypatch):
    """A plan by Codex CLI that answers with a newer model."""
    monkeypatch.setenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE", f"{simulator.url}/oauth/token")
    key, engine = simulator.codex("ada@work.example", tmp_path / "ada"), CodexCli()
    access = Access("codex-cli", simulator.base_urls["codex-cli"], home=key.home)
    yield Plan(engine, key, access, NEWER, "usage_limit", simulator)
    await engine.close()


@pytest.fixture
def program():
    return programs.find(programs.CODEX)


def a_program(folder, script):
    """A program that isn't Codex."""
    path = folder / "codex"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def test_no_model_is_offered_a_tool_or_told_a_word_that_conch_did_not_give_it(ada):
    listed = [model.id for model in await ada.engine.models(ada.access)]
    assert NEWER in listed
    for model in listed:
        ada.key.replies("Good morning.")
        asked = Request(model, (Message("user", "Hello"),), instructions="Be brief.")
        assert text_of(await heard(ada.engine.reply(ada.access, asked))) == "Good morning."
        (seen,) = ada.asked[-1:]
        assert seen.model == model
        assert set(seen.asked.tools) <= UNAVOIDABLE, model
        assert list(seen.messages) == [("developer", "Be brief."), ("user", "Hello")], model
        assert "verbosity" not in json.dumps(seen.json.get("text")), model


async def test_a_newer_model_calls_the_tools_of_the_chat_itself_and_not_by_code(ada):
    ada.key.does(Reply("Let me look.", calls=(Call(WEATHER.name, {"place": "Bern"}),))).replies("12 degrees in Bern.")
    runs = Runs()
    events = await ada.turn("Is it warm?", tools=(WEATHER,), run_tool=runs)
    assert runs.calls == [(WEATHER.name, {"place": "Bern"})]
    assert text_of(events) == "Let me look.\n\n12 degrees in Bern."
    assert set(ada.asked[0].asked.tools) == UNAVOIDABLE | {WEATHER.name}


async def test_a_model_that_the_program_has_not_heard_of_answers_all_the_same(ada):
    ada.key.replies("Here I am.")
    unheard = replace(ada.ask("Hello"), model="gpt-12-example")
    assert text_of(await heard(ada.engine.reply(ada.access, unheard))) == "Here I am."
    assert ada.asked[-1].model == "gpt-12-example"
    assert set(ada.asked[-1].asked.tools) <= UNAVOIDABLE


async def test_the_models_to_pick_from_are_the_plans_and_not_only_what_the_program_came_with(ada, program):
    told = json.loads(codex_catalog.of_program(program))
    told["models"] = [told["models"][0] | {"slug": "gpt-12-example", "display_name": "GPT-12"}]
    ada.key.catalog = json.dumps(told)
    assert "gpt-12-example" in [model.id for model in await ada.engine.models(ada.access)]


async def test_a_program_that_runs_asks_for_its_users_settings_once_and_not_before_each_answer(ada):
    """Each time would be a way across the world before the first word."""
    for text in ("First", "Second", "Third"):
        ada.key.replies("Yes.")
        await ada.turn(text)
    asked = [seen.path for seen in ada.simulator.all_requests(ada.key.secret)]
    assert asked.count("/backend-api/codex/responses") == 3
    assert asked.count("/backend-api/wham/settings/user") == 1


@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "echo nonsense",
        "echo '{}'",
        """echo '{"models": [1]}'""",
        """[ "$1" = debug ] && echo '{"models":[]}'""",
    ],
)
def test_a_program_that_tells_no_catalog_is_given_none(tmp_path, script):
    """Then it starts as it would have: nothing is made up for it."""
    assert codex_catalog.of_program(a_program(tmp_path, script)) == ""


@pytest.mark.parametrize("script", ["exec yes", "exec sleep 600", "sleep 600 & wait"])
def test_a_program_that_never_stops_talking_or_never_ends_is_ended(tmp_path, monkeypatch, script):
    """It holds up one start for a while, and fills no memory; what it started ends with it."""
    monkeypatch.setattr(codex_catalog, "ASKED_WITHIN", 60.0 if "yes" in script else 0.2)
    monkeypatch.setattr(codex_catalog, "MOST_TOLD", 100_000)
    assert codex_catalog.of_program(a_program(tmp_path, script)) == ""


def test_a_catalog_that_the_program_would_not_take_is_not_given_to_it(tmp_path):
    """It wouldn't start with it."""
    script = """[ "$1" = debug ] && echo '{"models": [{"slug": "gpt-5.5", "tool_mode": "direct"}]}' || exit 1"""
    assert codex_catalog.of_program(a_program(tmp_path, script)) == ""


def test_a_program_that_failed_once_is_asked_again(tmp_path, program):
    """A busy machine would leave every model its tools until Conch is started anew."""
    path = a_program(tmp_path, f'[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; exit 1; }}; exec {program} "$@"')
    assert codex_catalog.of_program(path) == ""
    assert codex_catalog.of_program(path) == codex_catalog.of_program(program)


def test_only_what_an_entry_has_is_replaced(program):
    """A version of the program that doesn't know a setting isn't told of it."""
    for model in json.loads(codex_catalog.of_program(program))["models"]:
        held = {name: model[name] for name in codex_catalog.REPLIES_ONLY if name in model}
        assert held == {name: codex_catalog.REPLIES_ONLY[name] for name in held}
        assert model["context_window"] >= 272_000
