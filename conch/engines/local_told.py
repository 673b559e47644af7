"""What a server of one's own tells of the model that it would answer with, kept in CONCH_DATA for every process.

It is asked beside the serving, now and then and when a page shows it; who decides a route or draws a page reads what is
kept (conch/engines/local_models.py). No request loads a model or asks it for a reply. Beyond names, each kind of server
tells in its own way:

    llama-server   /v1/models has what it loaded and whether it sees images; /props whether the template knows tools
    Ollama         /api/show has abilities and sizes; /api/ps how much of the model is loaded
    LM Studio      /api/v1/models has all of it
"""

import json
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from conch.engines.base import Model
from conch.engines.local_server import write_privately

KEPT_IN = "local_told.json"
SAYS_WITHIN = 2.0  # seconds
MOST_SAID = 4 * 1024 * 1024  # bytes: Ollama tells a model's licence and template along with it
FRESH, FRESH_ON_A_PAGE = timedelta(minutes=10), timedelta(minutes=1)
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 600.0  # seconds after a try that came to nothing, twice as long each time
AHEAD = timedelta(minutes=1)  # a time further ahead was written before the clock was set back
MOST_CONTEXT = 100_000_000  # tokens; more is a fault


class Server(NamedTuple):
    """The server of one's own, with the model to ask it for: none, and the first that it lists answers."""

    url: str
    model: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What that server said, at that time, of the model that would answer. None: it didn't say.

    `context`: the tokens of a chat and its answer together.
    """

    url: str
    model: str
    answers: str
    at: str
    tools: bool | None = None
    images: bool | None = None
    context: int | None = None


class _Stays(HTTPRedirectHandler):
    """A key goes to nobody but the server that it was given for."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


_opener = build_opener(ProxyHandler({}), _Stays())
_asking = threading.Lock()
# (url, model) → when a server that didn't answer is asked again, by a clock that nobody sets, and after what pause.
_left_alone: dict[tuple[str, str], tuple[float, float]] = {}


def kept(folder: Path, url: str, model: str) -> Told | None:
    """What that server said of that model; None where it was never asked, or what is kept can't be read."""
    with suppress(OSError, ValueError, RecursionError, TypeError):
        told = Told(**json.loads((folder / KEPT_IN).read_bytes()))
        readable = {told.tools, told.images} <= {None, True, False} and _tokens(told.context) == told.context
        readable &= bool(str(told.answers)) and datetime.fromisoformat(told.at).tzinfo is not None
        if readable and (told.url, told.model) == (url, model):
            return told
    return None


def ask_if_due(folder: Path, server: Server, now: datetime, fresh: timedelta = FRESH) -> bool:
    """Ask the server unless what it said is fresh, and keep it; True when it says something else. Blocking, seconds."""
    said = kept(folder, server.url, server.model)
    at = None if said is None else datetime.fromisoformat(said.at)
    if at is not None and now - fresh < at <= now + AHEAD:
        return False
    until, pause = _left_alone.get(server[:2], (0.0, 0.0))
    if time.monotonic() < until or not _asking.acquire(blocking=False):
        return False
    try:
        changed = ask(folder, server, now)
    finally:
        _asking.release()
    if changed is None:
        pause = min(2 * pause, LONGEST_PAUSE) or FIRST_PAUSE
        _left_alone[server[:2]] = (time.monotonic() + pause, pause)
        return False
    _left_alone.pop(server[:2], None)
    return changed


def ask(folder: Path, server: Server, now: datetime) -> bool | None:
    """The same, due or not; None where it didn't answer or lists nothing, and what it said before stays."""
    before = kept(folder, server.url, server.model)
    model = _asked(server)
    if model is None:
        return None
    told = Told(server.url, server.model, model.id, now.isoformat(), model.tools, model.images, model.context)
    with suppress(OSError):
        write_privately(folder / KEPT_IN, json.dumps(asdict(told)))
    return before is None or replace(before, at=told.at) != told


def run_here(listing: Any, tags: Any) -> list[Mapping[str, Any]]:
    """The models of a list that the server runs itself, by what an Ollama tells in `/api/tags`, None where it is none.

    It lists some that its maker's cloud runs: another's computer, with limits and a sign-in of its own.
    """
    away = [one.get("name") for one in _mappings(tags, "models") if one.get("remote_host") or one.get("remote_model")]
    return [one for one in entries(listing) if one["id"] not in away]


def entries(body: Any) -> list[Mapping[str, Any]]:
    """The models of a list as OpenAI-compatible servers give it; what can't be read is left out."""
    return [one for one in _mappings(body, "data") if isinstance(one.get("id"), str) and one["id"]]


def listed(entry: Mapping[str, Any]) -> Model:
    """One of them, with what its entry tells: llama-server how much it loaded and what goes in, others less."""
    context = _tokens(_of(entry, "meta").get("n_ctx")) or _tokens(entry.get("max_model_len"))
    kinds = _of(entry, "architecture").get("input_modalities")
    return Model(
        entry["id"],
        entry["id"],
        images="image" in kinds if isinstance(kinds, list) else None,
        context=context or _tokens(entry.get("context_length")),
    )


def _asked(server: Server) -> Model | None:
    listing = _said(server, f"{server.url.removesuffix('/')}/models")
    known = entries(listing)
    if known and not server.model:
        known = run_here(listing, _said(server, f"{_root(server)}/api/tags"))
    entry = next((one for one in known if not server.model or one["id"] == server.model), None)
    if entry is None and not (server.model and known):
        return None
    # Ollama takes a name without its tag, which its list has.
    model = Model(server.model, server.model) if entry is None else listed(entry)
    for ask_for in (_llama_server, _ollama, _lm_studio):
        told = ask_for(server, model.id)
        if told is not None:
            return _merged(model, told)
    return model


def _merged(model: Model, told: Model) -> Model:
    """What the list said of it goes before what was asked about it alone."""
    known = {name: getattr(model, name) for name in ("tools", "images", "context")}
    return replace(told, **{name: said for name, said in known.items() if said is not None})


def _llama_server(server: Server, model: str) -> Model | None:
    said = _said(server, f"{_root(server)}/props")
    settings = _of(said, "default_generation_settings")
    if not settings:
        return None
    # A template that doesn't know tools says nothing: llama.cpp has a way of its own for those.
    tools = True if _of(said, "chat_template_caps").get("supports_tools") is True else None
    images = _word(_of(said, "modalities"), "vision")
    return Model(model, tools=tools, images=images, context=_tokens(settings.get("n_ctx")))


def _ollama(server: Server, model: str) -> Model | None:
    said = _said(server, f"{_root(server)}/api/show", {"model": model})
    takes = said.get("capabilities") if isinstance(said, Mapping) else None
    if not isinstance(takes, list):
        return None
    running = _mappings(_said(server, f"{_root(server)}/api/ps"), "models")
    loaded: Mapping[str, Any] = next((one for one in running if model in (one.get("name"), one.get("model"))), {})
    words = str(said.get("parameters") or "").split()
    set_to = [after for word, after in pairwise(words) if word == "num_ctx"]
    largest = [size for name, size in _of(said, "model_info").items() if str(name).endswith(".context_length")]
    context = next(filter(None, map(_tokens, (loaded.get("context_length"), *map(_number, set_to), *largest))), None)
    return Model(model, tools="tools" in takes, images="vision" in takes, context=context)


def _lm_studio(server: Server, model: str) -> Model | None:
    for one in _mappings(_said(server, f"{_root(server)}/api/v1/models"), "models"):
        running = [loaded for loaded in one.get("loaded_instances") or () if isinstance(loaded, Mapping)]
        if model != one.get("key") and model not in {loaded.get("id") for loaded in running}:
            continue
        sizes = [_of(loaded, "config").get("context_length") for loaded in running]
        context = next(filter(None, map(_tokens, (*sizes, one.get("max_context_length")))), None)
        can = _of(one, "capabilities")
        tools = True if can.get("trained_for_tool_use") is True else None
        return Model(model, tools=tools, images=_word(can, "vision"), context=context)
    return None


def _said(server: Server, url: str, asked: Mapping[str, Any] | None = None) -> Any:
    """What the server answers there, as JSON; None where it answers nothing that can be read."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {server.key}"} if server.key else {})
    with suppress(OSError, ValueError, RecursionError, HTTPException):
        request = Request(url, None if asked is None else json.dumps(asked).encode(), headers)  # noqa: S310  http(s), checked
        with _opener.open(request, timeout=SAYS_WITHIN) as response:
            return json.loads(response.read(MOST_SAID))
    return None


def _root(server: Server) -> str:
    return server.url.removesuffix("/").removesuffix("/v1")


def _mappings(said: Any, name: str) -> Iterable[Mapping[str, Any]]:
    found = said.get(name) if isinstance(said, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _of(said: Any, name: str) -> Mapping[str, Any]:
    found = said.get(name) if isinstance(said, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _word(said: Mapping[str, Any], name: str) -> bool | None:
    word = said.get(name)
    return word if isinstance(word, bool) else None


def _number(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None


def _tokens(said: Any) -> int | None:
    """A number of tokens; None for what is none."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 < said < MOST_CONTEXT else None
