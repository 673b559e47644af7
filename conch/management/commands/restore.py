"""`manage.py restore FILE`: a backup put back."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from conch import backup
from conch.management.base import Command as Base


class Command(Base):
    """Put one back."""

    sets_up = False
    help = "Put a backup back into CONCH_DATA. Conch must be stopped; what was there is kept beside."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """FILE."""
        parser.add_argument("file", metavar="FILE", type=Path, help="what `manage.py backup` wrote")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Put it back and say what became of what was there."""
        connection.close()
        try:
            kept = backup.restore(options["file"], settings.CONCH_DATA, timezone.now())
        except backup.CantRestore as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{options['file']} is back in {settings.CONCH_DATA}. `manage.py up` goes on from there.")
        if kept is not None:
            self.stdout.write(f"What was there before is kept in {kept}.")
