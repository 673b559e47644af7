"""Much at once, and a database that won't: never past the budget, each message once, said clearly, over by itself."""

import asyncio
from decimal import Decimal

import pytest
from django.db import OperationalError, connection

from conch import ledger
from conch.api.turns import sse
from conch.db import look, step
from conch.models import Entry, MonthTotal, Turn
from conch.money import from_nano, to_nano
from conch.turns import doors, live
from conch.turns.clock import Clock
from conch.turns.run import DATABASE_PAUSES, all_ended
from conch.turns.writing import keep_writing
from tests.simulator.scripts import Raw, Refuse
from tests.turns.conftest import world  # noqa: F401  a fixture is found by name

pytestmark = pytest.mark.django_db(transaction=True)


async def spent_and_held(person):
    total = await look(MonthTotal.objects.filter(person=person, account="").first)
    return (0, 0) if total is None else (total.spent_nano, total.held_nano)


async def test_of_fifty_turns_at_once_near_the_budget_only_those_that_fit_are_sent(world):  # noqa: F811
    """R26: what is spent and held is never past the budget, seen all the while; whoever doesn't fit waits or fails."""
    key = (await look(world.account, "openai", secret="sk-tight")).key
    key.replies("Fine.", delay=0.01, output_tokens=400)
    budget = Decimal("0.60")
    await world.prefers(month_budget_nano=to_nano(budget), limit_paid=True)
    chats = [await look(world.chat, "openai") for _ in range(50)]
    past = []

    async def watch():
        while True:
            past.append(sum(await spent_and_held(world.person)) > to_nano(budget))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock) for chat in chats))
    await asyncio.wait_for(all_ended(), 60)
    watching.cancel()

    spent, held = await spent_and_held(world.person)
    states = await look(lambda: list(Turn.objects.values_list("state", flat=True)))
    assert not any(past)
    assert len(past) > 5
    assert held == 0
    assert from_nano(spent) <= budget
    assert await look(ledger.check) == []
    assert len(states) == 50
    assert states.count("done") == len(world.simulator.requests("sk-tight")) == await look(Entry.objects.count)
    assert 0 < states.count("done") < 50


async def test_five_hundred_quick_posts_are_each_there_once_and_in_order(world):  # noqa: F811
    """R35: 250 messages in ten chats, each sent from two tabs at once: 500 posts."""
    await look(world.account, "openai", secret="sk-quick")
    world.simulator.key("sk-quick").replies("Yes.")
    chats = [await look(world.chat, "openai") for _ in range(10)]

    async def tabs(number):
        chat = chats[number % 10].pk
        given = {"key": f"key-{number}", "clock": world.time.clock}
        return await asyncio.gather(*(doors.send(world.person.pk, chat, f"no. {number}", **given) for _ in range(2)))

    pairs = await asyncio.gather(*map(tabs, range(250)))
    await asyncio.wait_for(all_ended(), 120)

    rows = await look(lambda: list(Turn.objects.order_by("pk").values_list("conversation_id", "started_at", "state")))
    asked = [seen.asked.last for seen in world.simulator.requests("sk-quick")]
    assert all(one.pk == other.pk for one, other in pairs)
    assert len(rows) == 250
    assert {state for _, _, state in rows} == {"done"}
    assert sorted(asked) == sorted(f"no. {number}" for number in range(250))
    for chat in chats:
        began = [started for owner, started, _ in rows if owner == chat.pk]
        assert began == sorted(began)


async def test_str_07_two_hundred_watchers_that_go_leave_nothing_and_the_turn_goes_on(world):  # noqa: F811
    """STR-07: before the first chunk, in the middle, and without a word; the work isn't the response's."""
    key = (await look(world.account, "openai", secret="sk-slow")).key
    key.replies("one two three four", hold_after=2)
    chat = await look(world.chat, "openai")
    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=world.time.clock)
    streams = [aiter(sse.stream(turn.pk).streaming_content) for _ in range(200)]

    async def begin(stream):
        async for _ in stream:
            return

    await asyncio.gather(*(begin(stream) for stream in streams[:150]))
    waiting = [asyncio.create_task(begin(stream)) for stream in streams[150:]]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for stream in streams:
        await stream.aclose()
    watchers = len(live.live_of(turn.pk)._waiting)
    key.release()
    await asyncio.wait_for(all_ended(), 30)

    assert watchers == 0
    assert (await look(Turn.objects.get, pk=turn.pk)).state == "done"


def full(on):
    """The disk is full from now on, as far as the writing connection can tell; or there is room again."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0] if on else 2**31 - 2
        cursor.execute(f"PRAGMA max_page_count = {pages}")


def without_gaps():
    """What tests before this one took away leaves room inside the file, that a full disk would let be filled."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")


@pytest.fixture
async def disk(world):  # noqa: F811
    """A database that fills the room it has."""
    await look(without_gaps)
    yield
    await step(full, False)


async def test_on_a_full_disk_nothing_is_confirmed_and_with_room_again_all_goes_on(world, disk, caplog):  # noqa: F811
    """A message that couldn't be written is refused, not lost in silence; an answer that arrives meanwhile is kept."""
    key = (await look(world.account, "openai", secret="sk-disk")).key
    key.replies("A long answer. " * 20_000, pieces=40, hold_after=20, output_tokens=100).replies("Again.")
    chat, other = await look(world.chat, "openai"), await look(world.chat, "openai")
    waited = []

    async def pause(seconds):
        """Somebody makes room while the end of the answer waits to be written down for the second time."""
        waited.append(seconds)
        if len(waited) == 2:
            await step(full, False)

    turn = await doors.send(world.person.pk, chat.pk, "hi", clock=Clock(world.time.now, pause))
    await asyncio.to_thread(world.simulator.wait_for, 1, "sk-disk")
    await step(full, True)

    with pytest.raises(OperationalError, match="full"):
        await doors.send(world.person.pk, other.pk, "x" * 190_000, clock=world.time.clock)
    writing = asyncio.create_task(keep_writing(world.time.clock))
    while "what had arrived of 1 turns could not be written down yet" not in caplog.text:  # noqa: ASYNC110  the log tells
        await asyncio.sleep(0.01)
    key.release()
    ended = await world.settled(turn)
    writing.cancel()

    assert waited == list(DATABASE_PAUSES[:2])
    assert (ended.state, ended.answer) == ("done", "A long answer. " * 20_000)
    assert (await world.say(other, "again")).state == "done"
    assert await look(ledger.check) == []


HOSTILE = [
    Raw(200, b""),
    Raw(200, b"data: {}\n\n" * 50),
    Raw(200, b"\xff\xfe\0" * 1000, {"content-type": "text/event-stream"}),
    Raw(200, b"data: " + b"[" * 100_000 + b"\n\n", {"content-type": "text/event-stream"}),
    Raw(200, b"x" * 10_000_000, {"content-type": "text/event-stream"}),
    Raw(302, b"", {"location": "http://127.0.0.1:1/elsewhere"}),
    Raw(429, {"error": {"type": None, "code": [], "message": {"resets_at": "1e999"}}}),
    Raw(402, {"error": "\ud800 sk-hostile"}),
    Raw(500, b"<html>" + b"a" * 300_000),
    Raw(401, [[[]]]),
]


@pytest.mark.parametrize("step_of_it", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_hostile_provider_crashes_no_turn_and_touches_no_other_account(world, step_of_it):  # noqa: F811
    """R17, R30: the turn has an end that is said, nothing stays held, and another account is as it was."""
    await look(world.account, "openai", secret="sk-hostile")
    world.simulator.key("sk-hostile").does(step_of_it)
    good = await look(world.account, "openai", "openai-2", secret="sk-good")
    before = await look(lambda: (good.row.refusals.count(), type(good.row).objects.values().get(pk=good.row.pk)))

    turn = await world.say(await look(world.chat, "openai"))

    after = await look(lambda: (good.row.refusals.count(), type(good.row).objects.values().get(pk=good.row.pk)))
    assert turn.state in {"failed", "waiting"}
    assert turn.failure_code != "internal"
    assert "sk-hostile" not in str(turn.failure)
    assert after == before
    assert (await spent_and_held(world.person))[1] == 0
    assert world.simulator.requests("sk-good") == []
    assert (await world.say(await look(world.chat, "openai-2"))).state == "done"


async def test_an_endless_answer_ends_bounded(world):  # noqa: F811
    """A provider that never stops is stopped by size, with what had arrived."""
    await look(world.account, "openai", secret="sk-endless")
    world.simulator.key("sk-endless").replies("word " * 20_000, pieces=4, then="endless")

    turn = await world.say(await look(world.chat, "openai"))

    assert turn.state == "failed"
    assert turn.ending == "cut"
    assert 2_000_000 < len(turn.answer) < 2_200_000


async def test_a_throttle_is_kept_to_and_the_same_account_answers(world):  # noqa: F811
    """R8: no switch, no block."""
    await look(world.account, "openai", secret="sk-busy")
    world.simulator.key("sk-busy").does(Refuse("throttle", {"retry_after": 2})).replies("Here.")

    turn = await world.say(await look(world.chat, "openai"))

    assert (turn.state, turn.answer) == ("done", "Here.")
    assert world.time.slept[0] >= 2
