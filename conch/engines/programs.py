"""The providers' own programs: where they are on this computer, which version, and what to do where one is missing.

The person's own comes first: on the path, then in the usual places. Else the one that an installed package carries
(clis.md 1). CONCH_CLAUDE and CONCH_CODEX name one and no other. Blocking; a version is asked once and remembered.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from conch.configuration import env
from conch.engines.base import SignedOut

# Nothing else of the environment goes to a program (R34): a key or an address found there would win over the sign-in.
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    # What the machine's network needs.
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
USUAL_PLACES = ("~/.local/bin", "~/bin", "~/.npm-global/bin", "~/.bun/bin", "~/.volta/bin", "/usr/local/bin")
USUAL_ELSEWHERE = ("/opt/homebrew/bin", "/usr/bin")
ASKED_WITHIN = 20.0  # seconds; a version is said in a tenth of one, cold in two

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


# Codex: where Conch reads it, whatever the machine's keyring.
_IN_A_FILE = ("-c", 'cli_auth_credentials_store="file"')


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a program signs a person in by itself, saying an address to open. `words`: what it is called with.

    `by_code`: it says a code to type there as well, so that any browser will do; else the browser must run here.
    """

    name: str
    words: tuple[str, ...]
    by_code: bool


@dataclass(frozen=True, slots=True)
class Kind:
    """A program to look for. `oldest`: the oldest version that is known to speak as clis.md describes.

    `home`: the variable that names the folder in which it keeps a sign-in. `ways`: how it signs in without a terminal;
    none where the person types `sign_in` in one.
    """

    name: str
    label: str
    variable: str
    package: str
    inside: str
    oldest: tuple[int, int, int]
    places: tuple[str, ...]
    install: str
    renew: str
    sign_in: str
    home: str
    ways: tuple[Way, ...] = ()


CLAUDE = Kind(
    name="claude",
    label="Claude Code",
    variable="CONCH_CLAUDE",
    package="claude_agent_sdk",
    inside="_bundled/claude",
    oldest=(2, 1, 197),
    places=("~/.claude/local",),
    install="npm install -g @anthropic-ai/claude-code@latest",
    renew="claude update",
    sign_in="claude auth login",
    home="CLAUDE_CONFIG_DIR",
)
CODEX = Kind(
    name="codex",
    label="Codex",
    variable="CONCH_CODEX",
    package="codex_cli_bin",
    inside="bin/codex",
    oldest=(0, 163, 0),
    places=(),
    install="npm install -g @openai/codex@latest",
    renew="codex update",
    sign_in="codex login",
    home="CODEX_HOME",
    ways=(
        Way("code", ("login", "--device-auth", *_IN_A_FILE), by_code=True),
        Way("browser", ("login", *_IN_A_FILE), by_code=False),
    ),
)


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found: `path` is "" where there is none to use, and `why` says so in words for a person."""

    kind: Kind
    path: str = ""
    version: tuple[int, int, int] | None = None
    why: str = ""


def look(kind: Kind) -> Looked:
    """The program to use, or why there is none: it is missing, too old, or doesn't run."""
    too_old: Looked | None = None
    broken = ""
    for path in _candidates(kind):
        version = _version_of(path)
        if version is None:
            broken = broken or path
        elif version >= kind.oldest:
            return Looked(kind, path, version)
        else:
            too_old = too_old or Looked(kind, "", version, _too_old(kind, path, version))
    return too_old or Looked(kind, why=_missing(kind, broken))


def find(kind: Kind) -> str:
    """The path of the program to use. Raises SignedOut with `missing_program`, saying what to do."""
    found = look(kind)
    if not found.path:
        raise SignedOut(found.why, missing_program=True)
    return found.path


def scrubbed(path: str = "", **more: str) -> dict[str, str]:
    """The environment that a program gets: what it needs to run, the machine's network, and `more`.

    A program that is a script finds its interpreter beside it, whatever the path says.
    """
    kept = given(*PASSED_ON)
    if path:
        kept["PATH"] = os.pathsep.join(filter(None, (kept.get("PATH", os.defpath), str(Path(path).parent))))
    return kept | more


def _candidates(kind: Kind) -> Iterator[str]:
    named = env.str(kind.variable, default="")
    if named:
        yield str(Path(named).expanduser())
        return
    seen = set()
    for path in (shutil.which(kind.name), *_usual(kind), _carried(kind)):
        if path and path not in seen and os.access(path, os.X_OK) and Path(path).is_file():
            seen.add(path)
            yield path


def _usual(kind: Kind) -> Iterator[str]:
    for place in (*kind.places, *USUAL_PLACES, *USUAL_ELSEWHERE):
        yield str(Path(place).expanduser() / kind.name)
    nodes = Path("~/.nvm/versions/node").expanduser()
    yield from sorted(map(str, nodes.glob(f"*/bin/{kind.name}")), reverse=True)


def _carried(kind: Kind) -> str:
    """The one inside an installed package, found without importing it."""
    spec = find_spec(kind.package)
    folders = spec.submodule_search_locations if spec is not None else None
    return next((str(Path(folder) / kind.inside) for folder in folders or ()), "")


def _version_of(path: str) -> tuple[int, int, int] | None:
    try:
        made = Path(path).stat()
    except OSError:
        return None
    return _asked(path, made.st_mtime_ns, made.st_size)


@lru_cache(maxsize=64)
def _asked(path: str, _changed: int, _size: int) -> tuple[int, int, int] | None:
    """What `--version` prints; None for a file that isn't the program or doesn't run."""
    try:
        said = subprocess.run(  # noqa: S603 - the program that the person installed, or named
            [path, "--version"],
            env=scrubbed(path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASKED_WITHIN,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(said.stdout.decode("utf-8", "replace"))
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))


def _missing(kind: Kind, broken: str) -> str:
    if env.str(kind.variable, default=""):
        return f"{kind.variable} names {env.str(kind.variable)}, which isn’t a {kind.label} program that runs."
    if broken:
        return f"The {kind.label} program at {broken} doesn’t run. Install it anew: {kind.install}"
    return f"The {kind.label} program isn’t installed. Install it: {kind.install}"


def _too_old(kind: Kind, path: str, version: tuple[int, int, int]) -> str:
    return (
        f"The {kind.label} program at {path} is {_dotted(version)}; {_dotted(kind.oldest)} or newer is needed."
        f" Renew it: {kind.renew}"
    )


def given(*names: str) -> dict[str, str]:
    """Those variables of the environment that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}
