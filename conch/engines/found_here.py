"""What lies ready on this computer: sign-ins of the providers' programs, the programs, keys in the environment.

It is looked at, never used: a person takes each by a press. Engines say by their attributes what to look for (all of
them optional): `signed_in_here()`, `program`, `key_variable`, and `address_variable` for the server that key is for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from conch.configuration import env
from conch.engines import programs
from conch.engines.base import ConnectBy, Engine, Identity
from conch.engines.registry import engine, paths


@dataclass(frozen=True, slots=True)
class SignIn:
    """An engine that takes a sign-in: whose there is, None where none is; and its program, None where it needs none."""

    engine: Engine
    identity: Identity | None
    program: programs.Looked | None


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the environment. `base_url`: the server that the environment names beside it, "" for the official."""

    engine: Engine
    variable: str
    base_url: str
    key: str = field(repr=False)


def known(connect_by: ConnectBy) -> Iterator[Engine]:
    """The engines that are connected so, in the registry's order; one whose module can't be imported is left out."""
    for engine_id in paths():
        try:
            one = engine(engine_id)
        except (ImportError, AttributeError):
            continue
        if one.connect_by is connect_by:
            yield one


def sign_ins() -> list[SignIn]:
    """Every engine whose sign-in or program is here. Reads files and asks programs their version; blocking."""
    looked: dict[programs.Kind, programs.Looked] = {}
    found = []
    for one in known(ConnectBy.SIGN_IN):
        whose = getattr(one, "signed_in_here", lambda: None)()
        kind = getattr(one, "program", None)
        if kind is not None and kind not in looked:
            looked[kind] = programs.look(kind)
        program = None if kind is None else looked[kind]
        if whose is not None or (program is not None and program.path):
            found.append(SignIn(one, whose, program))
    return found


def keys_in_environment() -> list[Key]:
    """Every key that the environment holds under its provider's usual name."""
    found = []
    for one in known(ConnectBy.KEY):
        variable = getattr(one, "key_variable", "")
        key = env.str(variable, default="").strip() if variable else ""
        if key:
            found.append(Key(one, variable, _address(one), key))
    return found


def _address(one: Engine) -> str:
    variable = getattr(one, "address_variable", "")
    given = str(env.str(variable, default="")).strip().rstrip("/") if variable else ""
    return "" if given == one.official_base_url.rstrip("/") else given
