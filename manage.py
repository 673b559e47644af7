#!/usr/bin/env python
"""Conch's commands; `manage.py help` lists them."""

import os
import sys


def main() -> None:
    """Run one command; a configuration that can't work ends in one line that names the variable."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"conch: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
