"""A process that adds to two people's totals in every step, in the order given: `python -m … first second times`."""

import asyncio
import sys

import django


async def work(first, second, times):
    from conch.db import step
    from conch.ledger import rows

    def both():
        for person in (first, second):
            rows.add_held(person, "2026-10", "", 1, None)

    for _ in range(times):
        await asyncio.gather(*(step(both) for _ in range(3)))


if __name__ == "__main__":
    django.setup()
    sys.stdin.readline()
    asyncio.run(work(*map(int, sys.argv[1:])))
