"""Another process of the same Conch, which runs one turn and ends.

`python -m tests.turns.another_process DATABASE TURN`.
"""

import asyncio
import os
import subprocess
import sys

from tests import settings as settings_of_tests


def begun(turn_id):
    """That process, begun; it works on the database of this test."""
    from django.db import connection

    name = str(connection.settings_dict["NAME"])
    environment = os.environ | {"CONCH_TEST_DATA": str(settings_of_tests.CONCH_DATA)}
    command = [sys.executable, "-m", "tests.turns.another_process", name, str(turn_id)]
    return subprocess.Popen(command, env=environment)


def main():
    import django
    from django.conf import settings

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    settings.DATABASES["default"]["NAME"] = sys.argv[1]
    django.setup()
    asyncio.run(_run(int(sys.argv[2])))


async def _run(turn_id):
    from conch.turns import run, writing

    beside = asyncio.get_running_loop().create_task(writing.keep_writing())
    run.start(turn_id)
    await run.all_ended()
    beside.cancel()


if __name__ == "__main__":
    main()
