"""`manage.py disconnect`: remove an account."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from conch.accounts.connect import CantConnect, disconnect
from conch.accounts.people import NoSuchPerson, person_named
from conch.management.base import Command as Base
from conch.management.base import add_user


class Command(Base):
    """Remove one."""

    help = "Remove an account; its key is wiped, its ledger stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """SLUG, --user."""
        parser.add_argument("slug", metavar="SLUG", help="which account")
        add_user(parser)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Remove it."""
        try:
            person = person_named(options["user"])
            asyncio.run(disconnect(person.pk, options["slug"], timezone.now()))
        except (CantConnect, NoSuchPerson) as error:
            raise CommandError(str(error)) from error
