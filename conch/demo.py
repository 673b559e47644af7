"""The demonstration: the whole product over simulated providers on loopback, whose limits come after a few messages.

It has a data folder of its own, made afresh at every start, and settings of its own: so the command starts Conch once
more in its place with the environment that `environment` gives. The simulator lives beside the tests, in a checkout.
"""

import fcntl
import os
import shutil
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings

from conch.accounts.connect import Wish, connect
from conch.engines.registry import engine
from conch.models import Account, Person

MARK = "CONCH_DEMO"
SECONDS_A_WORD = 0.03
# What of the environment would point the demonstration at something real.
NOT_HANDED_ON = ("CONCH_SECRET_KEY", "CONCH_OLD_SECRET_KEYS", "CONCH_HTTPS")

SIMULATED = "*A simulated reply by {who}: no provider was asked.*\n\n"
REPLIES = (
    """You wrote: “{said}”.

Things to try here:

- send another message or two, until **this plan reaches its limit**
- see the line that says who answers instead, and *Switch back* beside it
- open *Settings → Providers* to change who comes next""",
    """Replies can hold code, too:

```python
def carry_on(accounts):
    \"""Who has room answers.\"""
    return next(account for account in accounts if account.has_room)
```

It works for “{said}” as well as for anything else: nobody here is thinking.""",
    """In three steps:

1. this plan fills a little with every reply
2. at 100% it refuses, as the real one would
3. the next account that has room answers **in the same turn**

Its window starts anew within minutes.""",
    """| Window | Fills with | Starts anew |
| --- | --- | --- |
| 5-hour | every reply | in a few minutes |
| weekly | every reply | in days |

In the real world, waiting takes longer than here.""",
)


class DemoMissing(Exception):
    """The demonstration can't be shown; says why and what to do."""


def simulated_providers() -> Any:
    """The simulator, running. Raises DemoMissing where Conch was installed without its tests."""
    try:
        module = import_module("tests.simulator.simulator")
    except ModuleNotFoundError as error:
        raise DemoMissing(
            "The demonstration needs the simulated providers in tests/simulator, which come with a checkout of Conch "
            f"and not with an installed package ({error}). Clone the repository and run `make demo` there."
        ) from error
    return module.Simulator().start()


def is_running_for(data: Path) -> bool:
    """Whether this process is the one that `environment` was made for."""
    return os.environ.get(MARK) == str(data) and bool(settings.CONCH_SIMULATED)


def fresh_folder(data: Path) -> Path:
    """The demonstration's own data folder, empty. Raises DemoMissing while another demonstration uses it.

    The lock is held by an open file that the next program in this process inherits, so it ends with that.
    """
    folder = data / "demo"
    lock = os.open(data / "demo.lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise DemoMissing(f"A demonstration is running already, in {folder}. End that one first.") from error
    os.set_inheritable(lock, True)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The environment of the demonstration: this one's, but with everything kept in that folder and marked."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_HANDED_ON}
    return kept | {
        "CONCH_DATA": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'conch.sqlite3'}",
        "CONCH_SIMULATED": "on",
        MARK: str(folder),
    }


async def connect_all(owner: Person, simulator: Any, folder: Path, now: datetime) -> list[Account]:
    """Connect the two plans and the two keys of the demonstration, in the order in which they carry on."""
    wishes = _wishes(simulator, folder)
    try:
        return [await connect(owner, wish, now) for wish in wishes]
    finally:
        for engine_id in {wish.engine for wish in wishes}:
            await engine(engine_id).close()  # the server's own loop opens its own connections


def _wishes(simulator: Any, folder: Path) -> list[Wish]:
    work = simulator.codex("ada@work.example", folder / "codex-work")
    home = simulator.codex("ada@home.example", folder / "codex-home")
    paid = simulator.key("sk-ant-simulated-7c1d")
    capped = simulator.key("sk-or-v1-simulated-4f2a", label="sk-or-v1-sim...f2a")
    work.window(300, used=40, resets_in=240, every=180, per_reply=30).window(10080, used=22, resets_in=3 * 86400)
    home.window(300, used=10, resets_in=300, every=240, per_reply=30).window(10080, used=15, resets_in=5 * 86400)
    capped.capped(5.0, spent=4.6, resets="monthly")
    for key, who in (
        (work, "the ChatGPT plan of ada@work.example"),
        (home, "the ChatGPT plan of ada@home.example"),
        (paid, "an Anthropic key"),
        (capped, "an OpenRouter key"),
    ):
        _speaks(key, who)
    urls = simulator.base_urls
    return [
        Wish("codex", base_url=urls["codex"], home=work.home),
        Wish("codex", base_url=urls["codex"], home=home.home),
        Wish("anthropic", base_url=urls["anthropic"], key=paid.secret),
        Wish("openrouter", base_url=urls["openrouter"], key=capped.secret),
    ]


def _speaks(key: Any, who: str) -> None:
    """Let it give the replies above, one after another, at the pace of somebody who reads along."""
    key.cycles = True
    for reply in REPLIES:
        key.replies(SIMULATED.format(who=who) + reply, quotes=True, delay=SECONDS_A_WORD, wait=0.3)
