"""The server that was chosen under *This computer*: kept for the machine in CONCH_DATA, for every process of Conch.

It stands in the place of CONCH_LOCAL_URL, which comes before it where both are there.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT_IN = "local_model.json"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A server on this computer and the model to ask it for, as that server calls it."""

    url: str
    model: str


def chosen(folder: Path) -> Chosen | None:
    """What was chosen, kept in that folder; None where nothing was, or what is kept there can't be read."""
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads((folder / KEPT_IN).read_bytes())
        if isinstance(kept, Mapping) and all(
            isinstance(kept.get(name), str) and kept[name] for name in ("url", "model")
        ):
            return Chosen(kept["url"], kept["model"])
    return None


def choose(folder: Path, server: Chosen) -> None:
    """Keep that choice, whole or not at all: other processes may read while it is written. Raises OSError."""
    descriptor, made = tempfile.mkstemp(dir=folder, prefix=KEPT_IN)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(server), file)
        Path(made).replace(folder / KEPT_IN)
    except OSError:
        Path(made).unlink(missing_ok=True)
        raise


def choose_none(folder: Path) -> None:
    """Go back to what there is without a choice: the file of CONCH_LOCAL_MODEL, else the built-in model."""
    (folder / KEPT_IN).unlink(missing_ok=True)
