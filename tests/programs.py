"""The real programs of Claude Code and Codex for tests, unmodified, against the simulator, nothing leaving the machine.

`make test` installs them into .venv/clis (requirements/clis.txt). What a program would ask of another host dies at a
closed port of this one (clis.md 4); tests/engines/test_programs_network.py proves that there is nothing of the kind.
"""

from pathlib import Path

import pytest

from conch.engines import programs

FOLDER = Path(__file__).resolve().parent.parent / ".venv" / "clis"
NOWHERE = "http://127.0.0.1:9"
STRAYS = {
    "HTTPS_PROXY": NOWHERE,
    "HTTP_PROXY": NOWHERE,
    "ALL_PROXY": NOWHERE,
    "NO_PROXY": "127.0.0.1,localhost",
}


def path_of(kind: programs.Kind) -> Path:
    """Where the program is. Fails where it isn't installed."""
    path = FOLDER / kind.package / kind.inside
    if not path.exists():
        pytest.fail(f"{path} is missing: make .venv/.clis installs it")
    return path


def named() -> dict[str, str]:
    """The variables that name both."""
    return {kind.variable: str(path_of(kind)) for kind in (programs.CLAUDE, programs.CODEX)}


@pytest.fixture
def real_programs(monkeypatch, tmp_path):
    """Both programs, for a person whose own home is empty."""
    home = tmp_path / "person"
    home.mkdir()
    for name, value in (named() | STRAYS | {"HOME": str(home)}).items():
        monkeypatch.setenv(name, value)
    return home
