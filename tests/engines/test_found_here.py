"""What lies ready on this computer is found by the engines' own attributes, and only looked at."""

import json

import pytest

from conch.engines import found_here
from tests.bare_computer import bare, install  # noqa: F401  a fixture, found by name
from tests.simulator.homes import write_claude_home

pytestmark = pytest.mark.usefixtures("bare")


def signed_in():
    return [(one.engine.id, one.identity and one.identity.whose) for one in found_here.sign_ins()]


def test_on_a_bare_computer_nothing_is_found():
    assert found_here.sign_ins() == []
    assert found_here.keys_in_environment() == []


def test_a_chatgpt_sign_in_is_found_for_every_way_into_its_plan(bare, simulator):  # noqa: F811
    """R1: Codex and Codex CLI are ways into one account."""
    simulator.codex("ada@work.example", bare / ".codex")

    assert signed_in() == [("codex", "ada@work.example"), ("codex-cli", "ada@work.example")]
    assert simulator.all_requests() == []


def test_a_home_where_a_key_would_pay_is_no_sign_in(bare):  # noqa: F811
    """R34: a plan's sign-in is never replaced by a key."""
    (bare / ".codex").mkdir()
    (bare / ".codex" / "auth.json").write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-lying-there"}))

    assert found_here.sign_ins() == []


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"tokens": 3}', "\x00"])
def test_files_that_cant_be_read_are_no_sign_in(bare, kept):  # noqa: F811
    """Bad input."""
    (bare / ".codex").mkdir()
    (bare / ".codex" / "auth.json").write_text(kept)
    (bare / ".claude.json").write_text(kept)

    assert found_here.sign_ins() == []


def test_a_claude_sign_in_is_found_with_its_program_or_with_why_it_cant_be_used(bare, simulator):  # noqa: F811
    key = simulator.claude("ada@work.example", bare / "elsewhere")
    write_claude_home(bare, key)

    (without,) = found_here.sign_ins()
    assert (without.identity.whose, without.program.path) == ("ada@work.example", "")
    assert "isn’t installed" in without.program.why

    install(bare, "claude", "2.1.332 (Claude Code)")
    (found,) = found_here.sign_ins()
    assert found.program.version == (2, 1, 332)


def test_a_program_without_a_sign_in_is_found_as_that(bare):  # noqa: F811
    install(bare, "codex", "codex-cli 0.171.0")

    assert signed_in() == [("codex-cli", None)]


def test_keys_are_found_by_their_providers_usual_names_and_kept_out_of_words(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", " sk-made-up-0123456789abcdef4f2a\n")
    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-made-up")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://api.anthropic.com/")

    found = {one.engine.id: one for one in found_here.keys_in_environment()}

    assert sorted(found) == ["anthropic", "openai"]
    assert found["openai"].key == "sk-made-up-0123456789abcdef4f2a"
    assert found["anthropic"].base_url == ""
    assert "made-up" not in repr(found)


def test_a_key_for_another_server_is_found_with_that_servers_address(monkeypatch):
    """A key never goes to a host that it wasn't given for."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-0123456789abcdef4f2a")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.work.example/v1/")

    (found,) = found_here.keys_in_environment()

    assert found.base_url == "https://gateway.work.example/v1"
