"""Signing in to another account: each in a home of its own under CONCH_DATA/homes, watched until the sign-in is there.

A program that signs in by itself is run, and what it says to open and to type is read off its words; another's command
is for the person to type. The sign-in is the program's: Conch gives it a folder and waits. Those under way are known to
this process only; a home that came to nothing is taken away. The functions block.
"""

import re
import shlex
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from secrets import token_hex

from django.conf import settings

from conch.accounts import connect
from conch.accounts.connect import CantConnect, Wish
from conch.engines import programs
from conch.engines.base import Engine, SignedOut
from conch.engines.cli_process import Folder, end_watched, start_watched
from conch.engines.programs import Kind, Way
from conch.models import Account, Person

WITHIN = 600.0  # seconds in which to sign in
MOST = 8  # under way at once
KEPT = timedelta(days=1)  # how long a home that nobody came back to stays
LONGEST = 64 * 1024  # bytes read of what a program says
# Told to every program beside its way's own words.
MORE_WORDS: tuple[str, ...] = ()

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_URL = re.compile(r"^\s*(https?://\S+)\s*$", re.MULTILINE)
_CODE = re.compile(r"^\s*([A-Z0-9]{3,6}(?:-[A-Z0-9]{3,6})+)\s*$", re.MULTILINE)


class CantSignIn(Exception):
    """It can't be begun; says why and what to do."""


@dataclass(frozen=True, slots=True)
class Said:
    """What the program says: where to go, the code to type there, and its last line; each "" while it isn't there."""

    url: str = ""
    code: str = ""
    last: str = ""


@dataclass(slots=True)
class Program:
    """The program while it signs in. Its words stay when it has ended."""

    popen: "subprocess.Popen[bytes]"
    folder: Folder
    output: Path
    _last: bytes = b""
    _ended: bool = False
    _timer: threading.Timer | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def runs(self) -> bool:
        """Whether it hasn't ended."""
        return not self._ended and self.popen.poll() is None

    def words(self) -> bytes:
        """All that it has said."""
        with self._guard:
            if not self._ended:
                with self.output.open("rb") as said:
                    return said.read(LONGEST)
            return self._last

    def end_after(self, seconds: float) -> None:
        """End it then, whether anybody looks or not."""
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """End it and whatever it left running."""
        if self._timer is not None:
            self._timer.cancel()
        last = self.words()
        with self._guard:
            if self._ended:
                return
            self._ended, self._last = True, last
        end_watched(self.popen, self.folder)


@dataclass(slots=True, eq=False)
class SignIn:
    """One under way. `program` is None where the person types `command`."""

    name: str
    person_id: int
    engine: Engine
    kind: Kind
    way: Way | None
    home: Path
    begun: datetime
    command: str
    program: Program | None = None

    def late(self, now: datetime) -> bool:
        """Whether its time is over."""
        return (now - self.begun).total_seconds() >= WITHIN

    @property
    def waits(self) -> bool:
        """Whether a sign-in may still come of it: its program runs, or somebody may be typing."""
        return self.program is None or self.program.runs

    @property
    def done(self) -> bool:
        """Whether its program says by its end that it signed in."""
        return self.program is not None and self.program.popen.poll() == 0

    def said(self) -> Said:
        """What its program says by now."""
        return read(self.program.words()) if self.program is not None else Said()

    def stop(self) -> None:
        """End its program; the home stays."""
        if self.program is not None:
            self.program.end()


_under_way: dict[str, SignIn] = {}
_guard = threading.Lock()


def begin(person: Person, engine: Engine, way_name: str, now: datetime) -> SignIn:
    """Make a home and have the program sign in there. Raises CantSignIn where it is missing, too old or doesn't run.

    A way that the program hasn't is its first one.
    """
    kind: Kind = engine.signs_in_by  # type: ignore[attr-defined]  # an optional attribute (docs/adding-an-engine.md)
    looked = programs.look(kind)
    if not looked.path:
        raise CantSignIn(looked.why)
    _tidy(now)
    way = next((way for way in kind.ways if way.name == way_name), kind.ways[0] if kind.ways else None)
    with _guard:
        if len(_under_way) >= MOST:
            raise CantSignIn(f"{MOST} sign-ins are under way already. Finish or cancel one of them first.")
        name = f"{kind.name}-{token_hex(4)}"
        home = homes() / name
        home.mkdir(mode=0o700)
        command = _typed(kind, looked.path, home)
        one = _under_way[name] = SignIn(name, person.pk, engine, kind, way, home, now, command)
    if way is not None:
        try:
            one.program = _started(kind, looked.path, way, home)
        except OSError as error:
            cancel(one)
            raise CantSignIn(f"The {kind.label} program doesn’t start: {error.strerror}.") from error
        one.program.end_after(WITHIN)
    return one


def under_way(person: Person, engine_id: str, name: str) -> SignIn | None:
    """That person's sign-in of that name; None where there is none (any more)."""
    one = _under_way.get(name)
    return one if one is not None and (one.person_id, one.engine.id) == (person.pk, engine_id) else None


def cancel(one: SignIn) -> None:
    """End it, and take its home away, unless an account was connected with it meanwhile."""
    one.stop()
    with _guard:
        _under_way.pop(one.name, None)
    if not Account.objects.filter(home=str(one.home)).exists():
        shutil.rmtree(one.home, ignore_errors=True)


async def connected(person: Person, one: SignIn, now: datetime) -> Account | None:
    """Connect what was signed in to; None while nothing is there. Raises CantConnect, saying what is wrong."""
    try:
        account = await connect.connect(person, Wish(one.engine.id, home=str(one.home)), now)
    except CantConnect as error:
        cause = error.__cause__
        if isinstance(cause, SignedOut) and not cause.missing_program and not one.done:
            return None
        raise
    one.stop()
    with _guard:
        _under_way.pop(one.name, None)
    return account


def read(words: bytes) -> Said:
    """The address and the code, each on a line of its own, and the last line."""
    text = _COLOURS.sub("", words.decode("utf-8", "replace"))
    url, code, lines = _URL.search(text), _CODE.search(text), text.strip().splitlines()
    return Said(url[1] if url else "", code[1] if code else "", lines[-1].strip()[:300] if lines else "")


def homes() -> Path:
    """The folder of the homes that Conch makes, readable to its owner only."""
    folder = Path(settings.CONCH_DATA) / "homes"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder.absolute()


def _typed(kind: Kind, path: str, home: Path) -> str:
    """The command for a terminal, by the program's name where that is the one Conch uses."""
    name, *words = kind.sign_in.split()
    program = name if shutil.which(name) == path else path
    return f"{kind.home}={shlex.quote(str(home))} {shlex.join([program, *words])}"


def _started(kind: Kind, path: str, way: Way, home: Path) -> Program:
    folder = Folder()
    output = folder.path / "said"
    environment = programs.scrubbed(path, **{kind.home: str(home)})
    try:
        popen = start_watched([path, *way.words, *MORE_WORDS], environment, folder, output)
    except OSError:
        folder.remove()
        raise
    return Program(popen, folder, output)


def _tidy(now: datetime) -> None:
    """Forget those whose time is over, and take away homes that came to nothing: no account has ever had them."""
    for one in list(_under_way.values()):
        if one.late(now) and one.program is not None:
            cancel(one)
    used = set(Account.objects.exclude(home="").values_list("home", flat=True))
    for home in homes().iterdir():
        if home.name not in _under_way and str(home) not in used:
            made = datetime.fromtimestamp(home.stat().st_mtime, now.tzinfo)
            if now - made > KEPT:
                shutil.rmtree(home, ignore_errors=True)
