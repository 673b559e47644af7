"""`manage.py doctor`: what is set up, what is reachable, what doesn't add up, and what to do about it."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from conch import examination
from conch.db import step_now
from conch.engines.registry import engines_in_use
from conch.examination import Finding, Kind
from conch.ledger import recount
from conch.management.base import Command as Base


class Command(Base):
    """Look at everything; exit 1 where something is wrong."""

    sets_up = False
    help = "Say what is set up, what is reachable, what doesn't add up, and what to do about it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--recount."""
        parser.add_argument("--recount", action="store_true", help="set totals that differ to what their entries say")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print a line for each thing looked at."""
        wrong = self._say(examination.of_the_machine())
        if wrong:
            raise CommandError(f"{_things(wrong)} wrong; the rest can't be looked at before that is mended.")
        wrong += self._say(examination.of_the_people())
        if options["recount"]:
            self.stdout.write(f"{Kind.WELL}: {step_now(recount)} totals were set to what their entries say.")
        wrong += self._say(examination.of_the_ledger(timezone.now()))
        wrong += self._say(asyncio.run(_accounts()))
        wrong += self._say(asyncio.run(_tools()))
        if wrong:
            raise CommandError(f"{_things(wrong)} wrong.")

    def _say(self, findings: Iterable[Finding]) -> int:
        wrong = 0
        for finding in findings:
            wrong += finding.kind is Kind.WRONG
            self.stdout.write(f"{finding.kind}: {finding.said}{f' → {finding.help}' if finding.help else ''}")
        return wrong


def _things(count: int) -> str:
    return "One thing is" if count == 1 else f"{count} things are"


async def _tools() -> list[Finding]:
    return [finding async for finding in examination.of_the_tools()]


async def _accounts() -> list[Finding]:
    try:
        return [finding async for finding in examination.of_the_accounts()]
    finally:
        for engine in engines_in_use():
            await engine.close()
