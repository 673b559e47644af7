"""Which program is used: the person's own, the one named, the one carried; and what is said where none can be."""

import os
import stat

import pytest

from conch.engines import programs
from conch.engines.base import SignedOut
from conch.engines.programs import CLAUDE, CODEX, find, look, scrubbed

SCRIPT = "#!/bin/sh\necho '{said}'\n"


@pytest.fixture(autouse=True)
def nobodys_computer(monkeypatch, tmp_path):
    """A home, a path and usual places without any program; nothing carried."""
    for kind in (CLAUDE, CODEX):
        monkeypatch.delenv(kind.variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(programs, "USUAL_ELSEWHERE", ())
    monkeypatch.setattr(programs, "USUAL_PLACES", ("~/.local/bin",))
    monkeypatch.setattr(programs, "find_spec", lambda _: None)


def program(path, said):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCRIPT.format(said=said))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_one_on_the_path_comes_first(tmp_path):
    program(tmp_path / "home/.local/bin/claude", "2.1.400 (Claude Code)")
    first = program(tmp_path / "bin/claude", "2.1.332 (Claude Code)")
    assert (look(CLAUDE).path, look(CLAUDE).version) == (first, (2, 1, 332))


def test_the_usual_places_are_looked_in(tmp_path):
    own = program(tmp_path / "home/.local/bin/codex", "codex-cli 0.171.0")
    assert find(CODEX) == own
    node = program(tmp_path / "home/.nvm/versions/node/v22.1.0/bin/claude", "2.1.332 (Claude Code)")
    assert find(CLAUDE) == node


def test_the_one_that_is_named_is_the_only_one(tmp_path, monkeypatch):
    program(tmp_path / "bin/codex", "codex-cli 0.171.0")
    named = program(tmp_path / "mine/codex", "codex-cli 0.163.0")
    monkeypatch.setenv("CONCH_CODEX", named)
    assert find(CODEX) == named
    monkeypatch.setenv("CONCH_CODEX", str(tmp_path / "nowhere"))
    assert not look(CODEX).path
    assert "CONCH_CODEX names" in look(CODEX).why


def test_one_that_is_too_old_gives_way_to_one_that_is_not(tmp_path):
    program(tmp_path / "bin/claude", "2.0.14 (Claude Code)")
    assert look(CLAUDE).why.endswith("is 2.0.14; 2.1.197 or newer is needed. Renew it: claude update")
    newer = program(tmp_path / "home/.local/bin/claude", "2.1.332 (Claude Code)")
    assert find(CLAUDE) == newer


def test_a_file_that_is_no_such_program_is_said_not_to_run(tmp_path):
    path = program(tmp_path / "bin/codex", "hello")
    assert look(CODEX).why == f"The Codex program at {path} doesn’t run. Install it anew: {CODEX.install}"


def test_a_missing_program_says_how_to_install_it():
    """R36: not a limit; what to do is said."""
    with pytest.raises(SignedOut) as raised:
        find(CLAUDE)
    assert raised.value.missing_program
    assert raised.value.said == f"The Claude Code program isn’t installed. Install it: {CLAUDE.install}"


def test_a_renewed_program_is_asked_its_version_again(tmp_path):
    path = tmp_path / "bin/codex"
    program(path, "codex-cli 0.99.0")
    assert not look(CODEX).path
    program(path, "codex-cli 0.171.0 ")
    assert look(CODEX).version == (0, 171, 0)


def test_no_key_and_no_address_of_the_environment_reaches_a_program(monkeypatch):
    """R34: nothing found there pays, or answers, in the place of the sign-in."""
    taken = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN")
    taken += ("CLAUDE_CODE_USE_BEDROCK", "OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME")
    for name in (*taken, "HTTPS_PROXY"):
        monkeypatch.setenv(name, "from-the-environment")
    given = scrubbed("/opt/there/claude")
    assert not set(taken) & set(given)
    assert given["HTTPS_PROXY"] == "from-the-environment"  # the machine's way to the network
    assert given["PATH"].split(os.pathsep)[-1] == "/opt/there"
