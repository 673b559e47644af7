"""A person with accounts at the simulator, and routines and tasks that its worker runs."""

import asyncio
from datetime import UTC, datetime

import pytest

from conch.db import look, step
from conch.models import Agent, Routine, Turn
from conch.tasks import background, routines
from conch.tasks.agents import accounts_of, beginning
from conch.turns.run import all_ended, start
from tests.conftest import make_person
from tests.turns.conftest import World


class TasksWorld(World):
    """The same hands for what runs without a page."""

    def agent(self, **fields):
        given = {"name": "Reviewer", "instructions": "Be brief.", "created_at": self.time.now()} | fields
        return Agent.objects.create(person=self.person, **given)

    def routine(self, cron="0 9 * * *", **fields):
        """A routine as its page makes it: planned from now on."""
        given = {"name": "Morning news", "text": "What is new?", "created_at": self.time.now()} | fields
        row = Routine.objects.create(person=self.person, cron=cron, **given)
        Routine.objects.filter(pk=row.pk).update(**routines.plan(row, self.time.now()))
        row.refresh_from_db()
        return row

    async def worker_runs_routines(self):
        """One look of the worker for routines, at the time that it is for this world."""
        await routines.look_round(self.time.clock)
        await asyncio.wait_for(all_ended(), 60)

    async def until(self, routine, **beyond):
        """Time goes on until the routine is due, and a little beyond."""
        await look(routine.refresh_from_db)
        seconds = (routine.next_at - self.time.now()).total_seconds()
        self.time.moves(seconds=seconds + 1)
        if beyond:
            self.time.moves(**beyond)

    async def in_the_background(self, text="Summarise it", account="", agent=None, key="k"):
        """A background task, begun as its page does; its turn once nothing runs."""
        how = await look(lambda: beginning(accounts_of(self.person.pk), agent, account))
        turn_id = await step(background.begin, self.person.pk, how, text, key, self.time.now())
        start(turn_id, clock=self.time.clock)
        await asyncio.wait_for(all_ended(), 60)
        return await look(Turn.objects.get, pk=turn_id)

    async def runs(self, routine):
        """The turns of the routine's runs, in order."""
        rows = Turn.objects.filter(routine_run__routine=routine).select_related("conversation", "routine_run")
        return await look(lambda: list(rows.order_by("pk")))


@pytest.fixture
def world(transactional_db, simulator, tmp_path):
    return TasksWorld(make_person("ada", is_owner=True), simulator, tmp_path)


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)
