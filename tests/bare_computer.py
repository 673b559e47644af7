"""A computer with nothing on it for tests of what is found: an empty home, no program, no key, no server, no choice."""

import stat

import pytest

from conch.engines import local, programs
from routing.known import forget_local

VARIABLES = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"),
    "GEMINI_API_KEY",
    *("CONCH_LOCAL_URL", "CONCH_LOCAL_KEY", "CONCH_LOCAL_MODEL", "CONCH_CLAUDE", "CONCH_CODEX"),
)


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """The home of that computer's person; CONCH_DATA is `data` in it."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CONCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(programs, "USUAL_ELSEWHERE", ())
    monkeypatch.setattr(programs, "USUAL_PLACES", ())
    monkeypatch.setattr(programs, "find_spec", lambda _: None)
    monkeypatch.setattr(local, "PORTS", (9,))
    (tmp_path / "data").mkdir(mode=0o700)
    forget_local()
    yield tmp_path
    forget_local()


def install(bare, name, said):
    """A program of that name on the path, which says its version and nothing else."""
    path = bare / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
