"""What every command of ours shares: errors in one line on stderr; exit 0 done, 2 for a usage error, 1 otherwise."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser, handle_default_options
from django.db import DatabaseError, InterfaceError, connection, connections

CONNECT_SECONDS = 5


class _OneLineParser(CommandParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call, without the whole usage before it."""
        print(f"conch: {message} (manage.py {self.prog.split()[-1]} --help)", file=sys.stderr)  # noqa: T201
        sys.exit(2)


class Command(BaseCommand):
    """A command: parse, call, print."""

    # An empty database is set up first, so that commands work in any order on a new machine.
    sets_up = True
    # It stays, and so needs the database's pool of connections.
    serves = False

    requires_system_checks: list[str] = []  # noqa: RUF012  Django's own name and type; `doctor` and `up` check

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Our parser."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = _OneLineParser
        return parser

    def run_from_argv(self, argv: list[str]) -> None:
        """Run it; whatever a person can meet is one line."""
        self._called_from_command_line = True
        options = self.create_parser(argv[0], argv[1]).parse_args(argv[2:])
        handle_default_options(options)
        try:
            with one_connection():
                if self.sets_up:
                    set_up_if_empty()
                if not self.serves:
                    self.execute(**vars(options))
            if self.serves:
                self.execute(**vars(options))
        except CommandError as error:
            _end(error, error.returncode)
        except (DatabaseError, InterfaceError) as error:
            _end(database_trouble(error))
        except ImproperlyConfigured as error:
            _end(error)
        except OSError as error:
            _end(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        except KeyboardInterrupt:
            sys.exit(130)
        finally:
            connections.close_all()


@contextmanager
def one_connection() -> Iterator[None]:
    """PostgreSQL without its pool: a command needs none, and a pool that can't connect tries for long, and loudly."""
    options: dict[str, Any] = connection.settings_dict["OPTIONS"]
    if connection.vendor != "postgresql":
        yield
        return
    kept = dict(options)
    options.pop("pool", None)
    options.setdefault("connect_timeout", CONNECT_SECONDS)
    try:
        yield
    finally:
        connection.close()
        options.clear()
        options.update(kept)


def set_up_if_empty() -> None:
    """Make the tables where there are none at all; a database of another version is left to `up` and `migrate`.

    A database file is its owner's alone, also in a folder that others may look into; what SQLite keeps beside it, too.
    """
    file = Path(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite" and file.is_absolute() and file.parent.is_dir() and not file.exists():
        file.touch(mode=0o600)
    if "django_migrations" not in connection.introspection.table_names():
        call_command("migrate", interactive=False, verbosity=0)


def add_user(parser: ArgumentParser) -> None:
    """--user, which every command about somebody's things takes."""
    parser.add_argument("--user", metavar="U", help="whose; without it the owner's")


def database_trouble(error: BaseException) -> str:
    """What a failing database means, and what to do."""
    said = " ".join(str(error).split())
    if "full" in said:
        return f"The disk is full: {said}. Make room where CONCH_DATA or the database is."
    if "no such table" in said or "does not exist" in said or "no such column" in said:
        return f"The database isn't set up for this version ({said}). `manage.py up` or `manage.py migrate` does that."
    return f"DATABASE_URL: the database can't be reached or used: {said}"


def _end(said: object, status: int = 1) -> NoReturn:
    print(f"conch: {' '.join(str(said).split())}", file=sys.stderr)  # noqa: T201
    sys.exit(status)
