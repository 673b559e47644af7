"""`manage.py up`: everything from an empty folder to a running Conch."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from conch.accounts.people import make_owner
from conch.accounts.signin import make_link
from conch.collected import collect_static
from conch.management.base import Command as Base
from conch.management.base import one_connection
from conch.serving import CantListen, base_address, keep_address, listen, serve, serve_on

__all__ = ["Command", "make_owner", "prepare", "serve"]


class Command(Base):
    """Set up, print the link, serve."""

    sets_up, serves = False, True
    help = "Migrate, make the owner, print a one-time sign-in link, serve, and run the background worker beside."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--host, --port, --workers."""
        parser.add_argument("--host", metavar="H", default=settings.CONCH_HOST, help="where to listen")
        parser.add_argument("--port", metavar="P", type=_port, default=settings.CONCH_PORT, help="0: a free one")
        parser.add_argument("--workers", metavar="N", type=_workers, default=1, help="serving processes")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        try:
            listening = listen(options["host"], options["port"])
        except CantListen as error:
            raise CommandError(str(error)) from error
        with one_connection():
            prepare()
            link = make_link(make_owner(), timezone.now())
        address = base_address(options["host"], listening.getsockname()[1])
        keep_address(address)
        self.stdout.write(f"Conch is at {address}")
        self.stdout.write(f"Sign in: {address}/signin/{link}")
        self.stdout.flush()
        connection.close()
        serve_on(listening, options["workers"])


def prepare() -> None:
    """The database as this version needs it, and the static files."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
    collect_static()


def _port(given: str) -> int:
    if not given.isdigit() or int(given) > 65535:
        raise ValueError(given)
    return int(given)


def _workers(given: str) -> int:
    if not given.isdigit() or not 0 < int(given) <= 64:
        raise ValueError(given)
    return int(given)


_port.__name__, _workers.__name__ = "port", "number of processes"  # as argparse names them
