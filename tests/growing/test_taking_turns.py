"""Two processes write the same rows in opposite orders: neither waits for the other for good, and nothing is lost."""

import subprocess
import sys

import pytest

from tests.soak.place import ROOT, Place

TIMES = 60
PEOPLE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
from conch.accounts.people import make_owner, make_person
print(make_owner().pk, make_person("bob").pk)
"""


@pytest.fixture
def place(tmp_path, database):
    (tmp_path / "data").mkdir(mode=0o700)
    place = Place(tmp_path, database=database[0])
    yield place
    place.end()


def begun(place, *words):
    command = [sys.executable, *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=place.environment, text=True, **pipes)


def test_rows_wanted_in_opposite_orders_are_all_written(place):
    """On PostgreSQL each would have a row that the other waits for, and one would be told of a deadlock."""
    said, error = begun(place, "-c", PEOPLE).communicate()
    assert error == ""
    ada, bob = said.split()
    orders = ((ada, bob), (bob, ada))
    both = [begun(place, "-m", "tests.growing.taking_turns", *order, str(TIMES)) for order in orders]
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    ended = [one.communicate(timeout=120) for one in both]

    assert [error for _, error in ended] == ["", ""]
    assert {held for (held,) in place.query("SELECT held_nano FROM conch_monthtotal")} == {2 * 3 * TIMES}
