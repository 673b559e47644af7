"""`manage.py demo`: the product against simulated providers."""

import asyncio
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from conch import demo
from conch.accounts.people import make_owner
from conch.accounts.signin import make_link
from conch.management.base import Command as Base
from conch.management.commands.up import prepare
from conch.serving import CantListen, base_address, listen, serve_on

ABOUT = """
Everything in it is simulated and marked so; nothing leaves this machine, and your own Conch stays as it is.
Send three messages: the first plan reaches its limit, and the second one answers in the same turn.
"""


class Command(Base):
    """Start afresh in a folder of its own, connect simulated accounts, serve."""

    sets_up = False
    help = "Show the product against simulated providers on loopback, marked as simulated on every page."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--host, --port."""
        parser.add_argument("--host", metavar="H", default=settings.CONCH_HOST, help="where to listen")
        parser.add_argument("--port", metavar="P", type=int, help="where CONCH_PORT is taken: a free one")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        try:
            if not demo.is_running_for(settings.CONCH_DATA):
                self._start_over()
            simulator = demo.simulated_providers()
            listening = _listen(options["host"], options["port"])
        except (demo.DemoMissing, CantListen) as error:
            raise CommandError(str(error)) from error
        prepare()
        owner = make_owner()
        asyncio.run(demo.connect_all(owner, simulator, settings.CONCH_DATA, timezone.now()))
        address = base_address(options["host"], listening.getsockname()[1])
        link = make_link(owner, timezone.now())
        self.stdout.write(f"The demonstration of Conch is at {address}{ABOUT}Sign in: {address}/signin/{link}")
        self.stdout.flush()
        connection.close()
        serve_on(listening)
        simulator.stop()

    def _start_over(self) -> None:
        """Become the demonstration: settings are read once a process, so this one starts once more in its place."""
        folder = demo.fresh_folder(settings.CONCH_DATA)
        os.execve(sys.executable, [sys.executable, *sys.argv], demo.environment(folder))  # noqa: S606  it is this program


def _listen(host: str, port: int | None) -> Any:
    """At the port that was asked for; where none was, Conch's own, or a free one if that is taken."""
    if port is not None:
        return listen(host, port)
    try:
        return listen(host, settings.CONCH_PORT)
    except CantListen:
        return listen(host, 0)
