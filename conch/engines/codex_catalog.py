"""What the Codex program knows of its models, without what would make them agents.

A model's own entry in the program's catalog wins over every switch: `tool_mode` "code_mode_only", that of all newer
models, gives it an interpreter of JavaScript and hides Conch's tools inside, whatever `features` says; others name
tools and lay pages of instructions for a coding agent over the chat. `model_catalog_json` is the one setting that
reaches them. So the program is asked for its catalog, which it carries, and is given it back with those entries
emptied. With a catalog of its own it asks for no list of models before a turn, either. A model that the catalog
doesn't know is used with none of all that.
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from conch.engines.programs import ASKED_WITHIN, scrubbed

SETTING = "model_catalog_json"
MOST_TOLD = 16 * 1024 * 1024  # bytes; the catalog has a twentieth of it
# Only what an entry has is replaced: the program's versions differ in what they take.
REPLIES_ONLY: Mapping[str, Any] = {
    "tool_mode": "direct",
    "shell_type": "disabled",
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
    "supports_search_tool": False,
    "multi_agent_version": None,
    "model_messages": None,
    "base_instructions": "",
    # Terse answers suit a terminal; by its other way (codex.py) the account answers as the provider has it.
    "default_verbosity": None,
}


def of_program(path: str) -> str:
    """The catalog for that program, JSON; "" where it tells none or wouldn't take it. Blocking, once for each version.

    What failed is asked again at the next start: the machine may just have been busy. Raises OSError where there is no
    such program.
    """
    made = Path(path).stat()
    try:
        return _made(path, made.st_mtime_ns, made.st_size)
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=8)
def _made(path: str, _changed: int, _size: int) -> str:
    with tempfile.TemporaryDirectory(prefix="conch-catalog-") as folder:
        return _replies_only(path, Path(folder))


def _replies_only(path: str, folder: Path) -> str:
    told = json.loads(_asked(path, folder, "debug", "models", "--bundled"))
    models = [_plain(model) for model in _entries(told)]
    catalog = json.dumps(told | {"models": models})
    kept = folder / "catalog.json"
    kept.write_text(catalog)
    # One that it wouldn't take would keep it from starting at all.
    taken = json.loads(_asked(path, folder, "-c", f"{SETTING}={json.dumps(str(kept))}", "debug", "models"))
    names = [model.get("slug") for model in models]
    if not names or names != [model.get("slug") for model in _entries(taken)]:
        raise ValueError("it doesn't take its own catalog back")
    return catalog


def _plain(model: Mapping[str, Any]) -> dict[str, Any]:
    return dict(model) | {name: value for name, value in REPLIES_ONLY.items() if name in model}


def _entries(told: Any) -> list[dict[str, Any]]:
    """Raises ValueError for what is no catalog."""
    models = told.get("models") if isinstance(told, dict) else None
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise ValueError("no catalog of models")
    return models


def _asked(path: str, home: Path, *words: str) -> bytes:
    """What it says to that. Raises ValueError where it fails, says more than anybody reads, or doesn't end."""
    with subprocess.Popen(  # noqa: S603 - the program that the person installed, or named
        [path, *words],
        env=scrubbed(path, CODEX_HOME=str(home)),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as program:
        late = threading.Timer(ASKED_WITHIN, _end, [program.pid])
        late.start()
        try:
            assert program.stdout is not None
            said = program.stdout.read(MOST_TOLD)
            if len(said) == MOST_TOLD:
                _end(program.pid)
            failed = program.wait()
        finally:
            late.cancel()
    if failed:
        raise ValueError(f"{words[-1]}: it ended with {failed}")
    return said


def _end(group: int) -> None:
    """Also what it started, which may have its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
