"""The writer thread: steps are committed together, and one that fails takes nobody with it."""

import asyncio

import pytest

from conch.db import step
from conch.models import Person

pytestmark = pytest.mark.django_db(transaction=True)


def _add(name):
    return Person.objects.create(username=name).pk


def _add_and_break(name):
    _add(name)
    raise ValueError(name)


async def test_of_thirty_steps_at_once_six_that_break_are_told_so_and_the_others_are_kept():
    steps = [step(_add_and_break if n % 5 == 0 else _add, f"p{n}") for n in range(30)]

    results = await asyncio.gather(*steps, return_exceptions=True)

    assert sum(isinstance(result, ValueError) for result in results) == 6
    assert await Person.objects.acount() == 24


async def test_a_caller_that_goes_away_does_not_undo_its_step():
    task = asyncio.create_task(step(_add, "stays"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await step(_add, "later")
    assert await Person.objects.filter(username="stays").aexists()
