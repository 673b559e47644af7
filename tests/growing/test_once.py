"""What several processes look after is done once: waits, routines, sweeps; also when a clock jumps under load."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from tests.soak.run import Soak

HOUR = 3600
WAITING, ROUTINES, EXPIRED = 2, 4, 3
JUMPING = ("-m", "tests.soak.jumping")
DONE_WITHIN = 180.0  # seconds, on a busy machine


@pytest.fixture
def soak(tmp_path, database):
    """A Conch of one serving process and two workers, on a machine whose clock the test sets."""
    address, _ = database
    made = Soak(tmp_path, seed=9, database=address, begun_by=JUMPING, CONCH_TEST_CLOCK=str(tmp_path / "clock"))
    yield made
    made.end()


def set_clock(soak, ahead):
    whole = soak.place.folder / "clock.new"
    whole.write_text(str(ahead))
    whole.replace(soak.place.folder / "clock")


def sent(soak):
    """How often each message that nobody sends during the test was taken by a provider; refused, it may go again."""
    asked = (one for one in soak.provider.read("/_requests") if one["messages"])
    taken = (one["messages"][-1][1] for one in asked if not one["outcome"].startswith("refused"))
    return Counter(text for text in taken if not text.startswith("message "))


async def until(true, what):
    began = time.monotonic()
    while not await asyncio.to_thread(true):
        assert time.monotonic() - began < DONE_WITHIN, what
        await asyncio.sleep(0.3)


async def live_through_it(soak, planned):
    """People at work; then the clock is an hour ahead, and everything is due in all processes at once; then back."""
    web = soak.place.serve()
    workers = [soak.place.work() for _ in range(2)]
    await asyncio.to_thread(web.wait_until_serving)
    soak.load.addresses = [web.address]
    at_work = asyncio.create_task(soak.load.run(2))
    await asyncio.sleep(1.5)
    assert not await asyncio.to_thread(sent, soak)

    set_clock(soak, HOUR + 60)
    await until(lambda: len(sent(soak)) >= planned, "not all that was due went out")
    await until(lambda: soak.place.query("SELECT count(*) FROM conch_conversation WHERE temporary")[0][0] == 0, "sweep")
    set_clock(soak, -HOUR)
    await asyncio.sleep(2)
    set_clock(soak, HOUR + 60)
    await asyncio.sleep(2)
    assert all(process.is_up() for process in (web, *workers))
    return await soak.conclude(at_work)


def test_what_is_due_in_every_process_at_once_is_done_once_and_a_jump_of_the_clock_ends_no_turn(soak):
    """Growing; R16, R25: each turn that waited and each routine goes out once, whoever looks; what ran goes on."""
    at = datetime.now(UTC) + timedelta(seconds=HOUR)
    soak.place.inside("plan", at=at.isoformat(), waiting=WAITING, routines=ROUTINES, expired=EXPIRED)
    planned = 4 * WAITING + ROUTINES

    verdict = asyncio.run(live_through_it(soak, planned))

    went = sent(soak)
    assert len(went) == planned
    tries = dict(
        soak.place.query(
            "SELECT turn.text, count(*) FROM conch_attempt AS one JOIN conch_turn AS turn ON turn.id = one.turn_id"
            " GROUP BY turn.text"
        )
    )
    assert {text: times for text, times in went.items() if times != tries[text]} == {}
    runs = soak.place.query("SELECT routine_id, count(*) FROM conch_routinerun GROUP BY routine_id")
    assert [times for _, times in runs] == [1] * ROUTINES
    assert verdict.states["interrupted"] == 0
    known = [one for one in verdict.found if "of a message that nobody sent" not in one]
    assert known == [], f"{verdict}\n" + "\n".join(known)
    assert "the clock of this machine jumped" in soak.place.logged()
