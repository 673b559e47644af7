"""The server that was chosen under *This computer*: kept for the machine in CONCH_DATA, for every process of Conch.

It stands in the place of CONCH_LOCAL_URL, which comes before it where both are there.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

KEPT_IN = "local_model.json"
SAYS_WITHIN = 1.0  # seconds
MOST_SAID = 4 * 1024 * 1024  # bytes: Ollama tells a model's licence and template along with it

JSON = {"Content-Type": "application/json"}
_no_proxy = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A server on this computer and the model to ask it for, as that server calls it.

    `tools` and `images`: whether the model takes them, as the server said when it was chosen; None: it didn't say.
    """

    url: str
    model: str
    tools: bool | None = None
    images: bool | None = None


def chosen(folder: Path) -> Chosen | None:
    """What was chosen, kept in that folder; None where nothing was, or what is kept there can't be read."""
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads((folder / KEPT_IN).read_bytes())
        if isinstance(kept, Mapping) and all(
            isinstance(kept.get(name), str) and kept[name] for name in ("url", "model")
        ):
            takes = [kept.get(name) if isinstance(kept.get(name), bool) else None for name in ("tools", "images")]
            return Chosen(kept["url"], kept["model"], *takes)
    return None


def asked(url: str, model: str) -> Chosen:
    """That server and model, with what Ollama says that the model takes; other servers say nothing of it.

    Blocking, a second at most; only a server on this computer that was found is asked.
    """
    root = url.removesuffix("/").removesuffix("/v1")
    request = Request(f"{root}/api/show", json.dumps({"model": model}).encode(), JSON)  # noqa: S310  loopback http
    said: Any = None
    with (
        suppress(OSError, ValueError, RecursionError, HTTPException),
        _no_proxy.open(request, timeout=SAYS_WITHIN) as response,
    ):
        said = json.loads(response.read(MOST_SAID))
    takes = said.get("capabilities") if isinstance(said, Mapping) else None
    if not isinstance(takes, list):
        return Chosen(url, model)
    return Chosen(url, model, tools="tools" in takes, images="vision" in takes)


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
