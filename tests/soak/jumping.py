"""Conch on a machine whose clock somebody sets: it is off by as many seconds as the file of CONCH_TEST_CLOCK says.

`python -m tests.soak.jumping up --port 0` is `manage.py up --port 0` there. Time itself goes on evenly, as on a machine
whose clock is set. Never part of the product.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path


def now():
    try:
        ahead = float(Path(os.environ["CONCH_TEST_CLOCK"]).read_text() or 0)
    except OSError:
        ahead = 0.0
    return datetime.now(UTC) + timedelta(seconds=ahead)


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")
    import django

    django.setup()
    from django.utils import timezone

    from conch.turns.clock import SYSTEM

    timezone.now = now
    object.__setattr__(SYSTEM, "now", now)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[1:]])


if __name__ == "__main__":
    main()
