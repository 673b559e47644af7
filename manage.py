#!/usr/bin/env python
"""Conch's commands; `manage.py help` lists them."""

import os
import sys


def main() -> None:
    """Run one command; a configuration that can't work ends in one line that names the variable."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import BaseCommand, ManagementUtility, get_commands

    class Commands(ManagementUtility):
        def fetch_command(self, subcommand: str) -> BaseCommand:
            """As usual, but one that there isn't is a usage error: Django ends with two lines and exit status 1."""
            if settings.INSTALLED_APPS and subcommand not in get_commands():
                sys.stderr.write(f"conch: there is no command {subcommand!r} (manage.py help lists them)\n")
                sys.exit(2)
            return super().fetch_command(subcommand)

    try:
        Commands(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(f"conch: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
