"""`manage.py signin`: a fresh one-time sign-in link."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from conch.accounts.people import NoSuchPerson, make_person, person_named
from conch.accounts.signin import make_link
from conch.management.base import Command as Base
from conch.management.base import add_user
from conch.serving import present_address


class Command(Base):
    """Print a link."""

    help = "Print a fresh one-time sign-in link; --new makes that person first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--user, --new."""
        add_user(parser)
        parser.add_argument("--new", action="store_true", help="make that person first")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print it."""
        if options["new"] and not options["user"]:
            raise CommandError("--new makes somebody new: say who with --user.", returncode=2)
        try:
            person = make_person(options["user"]) if options["new"] else person_named(options["user"])
        except ValidationError as error:
            raise CommandError(f"{options['user']!r} can't be a name: {' '.join(error.messages)}") from error
        except (NoSuchPerson, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{present_address()}/signin/{make_link(person, timezone.now())}")
