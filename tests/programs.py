"""The real programs of Claude Code and Codex for tests, unmodified, against the simulator, nothing leaving the machine.

`make test` installs them into .venv/clis (requirements/clis.txt). What a program would ask of another host dies at a
closed port of this one (clis.md 4); tests/engines/test_programs_network.py proves that there is nothing of the kind.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conch.engines import programs

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv" / "clis"
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


def told_by(trial: str, folder: Path) -> Any:
    """What that module says as one line of JSON, run in namespaces of its own: only the loopback interface is there.

    Fails where there are none to be had, saying what is missing.
    """
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CONCH_DATA": str(folder), "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        ["unshare", "--net", "--mount", "--user", "--map-root-user", sys.executable, "-m", trial, str(folder)],
        cwd=ROOT,
        env=environment | named(),
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, (
        "this test needs a network namespace of its own (unshare --net --mount --user --map-root-user), as root or"
        f" where user namespaces are allowed: {told.stderr.decode()[-2000:]}"
    )
    return json.loads(told.stdout.decode().splitlines()[-1])


@pytest.fixture
def real_programs(monkeypatch, tmp_path):
    """Both programs, for a person whose own home is empty."""
    home = tmp_path / "person"
    home.mkdir()
    for name, value in (named() | STRAYS | {"HOME": str(home)}).items():
        monkeypatch.setenv(name, value)
    return home
