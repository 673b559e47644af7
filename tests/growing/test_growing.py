"""Two web processes and two workers on one database, behind one proxy: each is killed in turn, and nothing is lost.

PostgreSQL where CONCH_TEST_POSTGRES says that there is one (the continuous integration has it), else SQLite.
"""

import asyncio

from tests.growing.proxy import Proxy
from tests.soak.run import Soak


class Growing:
    """Webs and workers of one Conch, behind one address."""

    def __init__(self, folder, database):
        self.soak = Soak(folder, seed=5, database=database)
        self.front = Proxy()
        place = self.soak.place
        self.workers = [place.work(), place.work()]
        self.webs = [place.fork(), place.fork()]
        for web in self.webs:
            web.wait_until_serving()
        self._show()

    def _show(self):
        self.front.use(*(web.address for web in self.webs))

    def replace_web(self, number, end):
        """End one; the other serves everybody until its successor is there."""
        end(self.webs[number])
        start = self.soak.place.serve if end is roll else self.soak.place.fork
        self.webs[number] = start().wait_until_serving()
        self._show()

    def replace_worker(self, number, end):
        end(self.workers[number])
        self.workers[number] = self.soak.place.work()

    def end(self):
        self.soak.end()
        self.front.end()


def kill(process):
    process.kill()


def roll(process):
    process.end()


async def hurt(growing, goes_away):
    """Each process in turn, by force and by a rolling restart, and the database goes away once and comes back."""
    soak = growing.soak
    soak.load.addresses = [growing.front.address]
    at_work = asyncio.create_task(soak.load.run(3))
    for what, *given in (
        (growing.replace_web, 0, kill),
        (growing.replace_worker, 0, kill),
        (goes_away, None, soak.place),
        (growing.replace_web, 1, roll),
        (growing.replace_worker, 1, roll),
        (growing.replace_web, 1, kill),
    ):
        await asyncio.sleep(1.5)
        soak.look()
        await asyncio.to_thread(what, *given)
    await asyncio.sleep(1.5)
    return await soak.conclude(at_work)


def test_processes_come_and_go_and_every_message_is_answered_once(tmp_path, database):
    """design.md 4 and Growing: any process serves anybody, watchers follow others' turns, waits and sweeps run once."""
    address, goes_away = database
    growing = Growing(tmp_path, address)
    try:
        verdict = asyncio.run(hurt(growing, goes_away))
        logged = growing.soak.place.logged()
    finally:
        growing.end()

    assert verdict.found == [], f"{verdict}\n" + "\n".join(verdict.found)
    assert verdict.turns > 10
    assert verdict.states["done"] > verdict.states["interrupted"]
    assert "deadlock" not in logged
