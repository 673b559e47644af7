"""`manage.py token`: an API token, printed once and nothing else."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from conch.accounts import tokens
from conch.accounts.people import NoSuchPerson, person_named
from conch.management.base import Command as Base
from conch.management.base import add_user


class Command(Base):
    """Make a token."""

    help = "Make an API token and print it, and nothing else, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--user, --name."""
        add_user(parser)
        parser.add_argument("--name", metavar="N", default="", help="what the token is for, as shown under You")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print it."""
        try:
            person = person_named(options["user"])
        except NoSuchPerson as error:
            raise CommandError(str(error)) from error
        self.stdout.write(tokens.make(person, options["name"], timezone.now()))
