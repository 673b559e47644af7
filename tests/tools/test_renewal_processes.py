"""One sign-in, several processes of Conch: a refresh token that works once is used once."""

import asyncio
import os
import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import connection

from conch.db import look
from conch.tools import grants
from tests.tools.servers.guarded import guarded
from tests.tools.site import ROOT

PROCESSES = 4
RENEWS = """
import asyncio, sys, django
django.setup()
from conch.models import ToolServer
from conch.tools import renewal
from conch.tools.launches import launch_of
launch = launch_of(ToolServer.objects.select_related("person").get(pk=int(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
print(asyncio.run(renewal.renewed(launch, launch.grant)).access_token, flush=True)
"""


@pytest.fixture
def environment(transactional_db):
    """Of another process over the tests' own database."""
    name = connection.settings_dict["NAME"]
    url = f"sqlite:///{name}" if connection.vendor == "sqlite" else _of_the_server(name)
    told = {"DATABASE_URL": url, "CONCH_TEST_DATA": str(settings.CONCH_DATA)}
    return os.environ | told | {"DJANGO_SETTINGS_MODULE": "tests.settings"}


def _of_the_server(name):
    return re.sub(r"/[^/]*$", f"/{name}", os.environ["DATABASE_URL"])


def _all_at_once(pk, environment):
    """What each of them has then."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RENEWS, str(pk)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        for _ in range(PROCESSES)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].strip() for process in started]


async def test_of_several_processes_one_renews_and_all_have_what_it_got(owner, environment):
    with guarded() as site:
        server = await look(site.server_of, owner)
        before = await look(grants.grant_of, server.pk)

        found = await asyncio.to_thread(_all_at_once, server.pk, environment)

        after = await look(grants.grant_of, server.pk)
    assert site.keeper.renewed == [before.refresh_token]
    assert found == [after.access_token] * PROCESSES
    assert after.access_token != before.access_token
