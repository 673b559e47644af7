"""`manage.py backup FILE`: the whole of CONCH_DATA, while Conch runs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from conch import backup
from conch.management.base import Command as Base


class Command(Base):
    """Take one."""

    sets_up = False
    help = "Write the whole of CONCH_DATA into one file, while Conch runs: chats, sealed keys, and what opens them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", metavar="FILE", type=Path, help="a gzipped tar; one that is there is replaced")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write it and say what it holds."""
        embedded = connection.vendor == "sqlite"
        if embedded and not (settings.CONCH_DATA / backup.DATABASE).exists():
            raise CommandError(f"There is nothing to back up: no database in {settings.CONCH_DATA}.")
        names = backup.take(settings.CONCH_DATA, options["file"], embedded=embedded)
        size = options["file"].stat().st_size
        self.stdout.write(f"{options['file']}: {size / 2**20:.1f} MiB, with {', '.join(names)}.")
        self.stdout.write("Keep it as you keep keys: with it, and nothing else, everything in it can be read.")
        if not embedded:
            self.stdout.write("The database is on PostgreSQL and not in this file: use pg_dump for it.")
