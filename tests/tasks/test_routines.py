"""Prompts on a schedule: run by any process, once, never carried on; late ones say so (R25, RST-29)."""

import asyncio
import os
import subprocess
import sys
from datetime import timedelta

import pytest

from conch.chat.shown import names_of
from conch.copy.clock import Viewer
from conch.copy.failures import failure_said, failure_text
from conch.db import look, step
from conch.models import Account, Conversation, Routine, RoutineRun, Turn
from conch.tasks import background, routines
from conch.tasks.routines import claim, due
from conch.turns import doors
from conch.turns.worker import work
from conch.turns.writing import keep_writing
from tests.tasks.conftest import utc

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_routine_runs_at_its_moment_in_a_chat_of_its_own(world):
    codex = await look(world.account, "codex")
    codex.key.replies("Nothing new.")
    agent = await look(world.agent)
    routine = await look(world.routine, account="codex", agent=agent)
    await world.worker_runs_routines()
    assert await world.runs(routine) == [], "it isn't due"

    await world.until(routine)
    await world.worker_runs_routines()
    await world.worker_runs_routines()

    (turn,) = await world.runs(routine)
    chat = turn.conversation
    assert (turn.state, turn.answer, turn.text) == ("done", "Nothing new.", "What is new?")
    assert (turn.unattended, turn.routine) == (True, True)
    assert (str(chat), chat.account, chat.agent, chat.instructions) == ("Morning news", "codex", agent.pk, "Be brief.")
    assert chat.unread
    assert await world.lines(chat) == [], "it ran in time: nothing is to be said"
    before = routine.next_at
    await look(routine.refresh_from_db)
    assert routine.next_at == before + timedelta(days=1)
    assert turn.routine_run.planned_at == before


async def test_at_a_limit_a_run_is_held_and_nobody_else_is_asked(world):
    """R25: not the next plan, not a key with Automatic allowed to pay, not the model on this computer."""
    await world.prefers(limit_paid=True, offline_fallback=True, month_budget_nano=10 * 10**9)
    codex, other = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    key = await look(world.account, "openai", model="gpt-5.5")
    routine = await look(world.routine, cron="* * * * *", account="codex")
    await world.until(routine)
    codex.key.refuses("usage_limit", resets_in=3600)

    await world.worker_runs_routines()

    (turn,) = await world.runs(routine)
    assert (turn.state, turn.failure_code) == ("failed", "held")
    assert turn.failure["account"] == "codex"
    assert turn.failure["until"]
    assert not world.simulator.requests(other.key.secret)
    assert not world.simulator.requests(key.key.secret)
    assert await world.lines(turn.conversation) == []
    assert turn.conversation.unread

    viewer = Viewer(world.time.now())
    said = failure_said(turn.failure, viewer)
    assert said.text.startswith("Held: Codex · codex@work.example is at its limit until ")
    assert said.text.endswith(". The next run is tried as usual.")
    assert (said.tone, said.buttons) == ("warn", ())
    (shown,) = background.present([turn], {}, await look(names_of, world.person.pk), viewer)
    assert (shown.tag, shown.tag_kind) == ("Held", "warn")


async def test_after_a_held_run_the_next_one_is_tried_as_usual(world):
    codex = await look(world.account, "codex")
    codex.key.refuses("usage_limit", resets_in=3600)
    routine = await look(world.routine, account="codex")
    await world.until(routine)
    await world.worker_runs_routines()
    codex.key.replies("Today’s news.")

    await world.until(routine)
    await world.worker_looks()
    await world.worker_runs_routines()

    held, turn = await world.runs(routine)
    assert (held.state, held.failure_code) == ("failed", "held"), "it isn't woken: it doesn't wait"
    assert (turn.state, turn.answer) == ("done", "Today’s news.")


async def test_a_limit_that_is_known_beforehand_holds_the_run_without_asking(world):
    codex = await look(world.account, "codex")
    codex.key.refuses("usage_limit", resets_in=30 * 3600)
    chat = await look(world.chat, "codex")
    await world.say(chat)
    asked = len(world.simulator.requests(codex.key.secret))
    routine = await look(world.routine, account="codex")

    await world.until(routine)
    await world.worker_runs_routines()

    (turn,) = await world.runs(routine)
    assert turn.failure_code == "held"
    assert len(world.simulator.requests(codex.key.secret)) == asked


def test_a_run_held_without_a_known_reset_says_no_time():
    said = failure_text({"code": "held", "label": "Codex", "until": None}, Viewer(utc(2026, 10, 9)))

    assert said == "Held: Codex is at its limit. The next run is tried as usual."


async def test_a_retry_of_a_held_run_is_the_persons_own_and_carries_on(world):
    """Somebody is looking now: it is a message like any other."""
    codex, other = await look(world.account, "codex"), await look(world.account, "codex", "codex-2")
    codex.key.refuses("usage_limit", resets_in=3600)
    other.key.replies("From the other.")
    routine = await look(world.routine, account="codex")
    await world.until(routine)
    await world.worker_runs_routines()
    (turn,) = await world.runs(routine)

    await doors.retry(world.person.pk, turn.pk, clock=world.time.clock)

    turn = await world.settled(turn)
    assert (turn.state, turn.answer, turn.account) == ("done", "From the other.", "codex-2")
    assert (turn.unattended, turn.routine) == (False, False)


async def test_what_was_slept_through_is_one_late_run_that_says_so(world):
    """RST-29: Conch was not running for three days: one run, not three, and the next at its usual time."""
    codex = await look(world.account, "codex")
    codex.key.replies("Late news.", times=5)
    routine = await look(world.routine, account="codex")
    await world.until(routine, days=3, hours=2)
    first = routine.next_at

    await world.worker_runs_routines()
    await world.worker_runs_routines()

    (turn,) = await world.runs(routine)
    assert (turn.state, turn.routine_run.late) == ("done", True)
    assert turn.routine_run.planned_at == first + timedelta(days=3)
    ((kind, data),) = await world.lines(turn.conversation)
    assert (kind, data["late"]) == ("limit.sent", True)
    await look(routine.refresh_from_db)
    assert routine.next_at == first + timedelta(days=4)


async def test_a_run_that_is_still_under_way_is_waited_for_and_runs_never_pile_up(world):
    codex = await look(world.account, "codex")
    codex.key.replies("Once.", times=5)
    routine = await look(world.routine, cron="* * * * *", account="codex")
    await world.until(routine)
    turn_id = await step(claim, routine.pk, world.time.now())
    await look(Turn.objects.filter(pk=turn_id).update, state="running", lease_until=utc(2030, 1, 1))

    world.time.moves(minutes=10)
    assert await look(due, world.time.now()) == []
    await look(
        Turn.objects.filter(pk=turn_id).update,
        state="done",
        answer="Long.",
        lease_until=None,
        ended_at=world.time.now(),
    )
    await world.worker_runs_routines()
    await world.worker_runs_routines()

    _, turn = await world.runs(routine)
    assert turn.state == "done"
    assert await world.lines(turn.conversation) == [], "Conch was running: it isn't said that it wasn't"


async def test_many_looks_at_once_run_it_once(world):
    """RST-29: claimed atomically, not per worker."""
    codex = await look(world.account, "codex")
    codex.key.replies("Once.", times=9)
    routine = await look(world.routine, account="codex")
    await world.until(routine)

    await asyncio.gather(*(world.worker_runs_routines() for _ in range(8)))

    assert len(await world.runs(routine)) == 1
    assert len(world.simulator.requests(codex.key.secret)) == 1


def test_four_processes_claim_a_run_once(world, tmp_path):
    """RST-29: four processes, each with a writer of its own, let go at the same moment."""
    world.account("codex")
    routine = world.routine(account="codex")
    go = tmp_path / "go"
    program = (
        "import sys, time, pathlib, django\n"
        "django.setup()\n"
        "from django.conf import settings\n"
        "settings.DATABASES['default']['NAME'] = sys.argv[1]\n"
        "from django.db import connections\n"
        "connections.settings['default']['NAME'] = sys.argv[1]\n"
        "from conch.db import step_now\n"
        "from conch.tasks.routines import claim\n"
        "from datetime import datetime\n"
        "print('ready', flush=True)\n"
        "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.001)\n"
        "print(step_now(claim, int(sys.argv[3]), datetime.fromisoformat(sys.argv[4])))\n"
    )
    from django.db import connection

    at = (routine.next_at + timedelta(seconds=1)).isoformat()
    arguments = [str(connection.settings_dict["NAME"]), str(go), str(routine.pk), at]
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    go.touch()
    claimed = [process.communicate(timeout=60)[0].strip() for process in started]

    assert claimed.count("None") == len(started) - 1
    assert RoutineRun.objects.filter(routine=routine).count() == 1
    assert Turn.objects.count() == Conversation.objects.count() == 1


async def test_a_claimed_run_whose_process_died_is_run_by_the_next(world):
    """The claim, the chat and the queued turn are one step; whoever finds the turn runs it."""
    codex = await look(world.account, "codex")
    codex.key.replies("All the same.")
    routine = await look(world.routine, account="codex")
    await world.until(routine)
    await step(claim, routine.pk, world.time.now())

    world.time.moves(seconds=5)
    await world.worker_looks()

    (turn,) = await world.runs(routine)
    assert (turn.state, turn.answer) == ("done", "All the same.")


async def test_another_zone_moves_the_next_run(world):
    """The schedule is in the person's zone, wherever they are now."""
    await world.prefers(time_zone="Europe/Berlin")
    routine = await look(world.routine, account="codex")
    assert routine.next_at.astimezone(routines.zone_of_name("Europe/Berlin")).hour == 9

    await world.prefers(time_zone="Asia/Tokyo")
    await world.worker_runs_routines()

    await look(routine.refresh_from_db)
    assert routine.next_at.astimezone(routines.zone_of_name("Asia/Tokyo")).hour == 9
    assert await world.runs(routine) == []


async def test_one_that_is_switched_off_doesnt_run_and_makes_up_for_nothing(world):
    codex = await look(world.account, "codex")
    codex.key.replies("News.", times=3)
    routine = await look(world.routine, account="codex")
    await look(lambda: routines.switch(routine, world.time.now(), on=False))
    world.time.moves(days=3)
    await world.worker_runs_routines()
    assert await world.runs(routine) == []

    await look(lambda: routines.switch(routine, world.time.now(), on=True))
    await world.worker_runs_routines()
    assert await world.runs(routine) == []

    await world.until(routine)
    await world.worker_runs_routines()
    assert [turn.state for turn in await world.runs(routine)] == ["done"]


async def test_a_clock_set_back_runs_no_moment_twice(world):
    codex = await look(world.account, "codex")
    codex.key.replies("News.", times=3)
    routine = await look(world.routine, account="codex")
    await world.until(routine)
    await world.worker_runs_routines()
    first = (await world.runs(routine))[0].routine_run.planned_at

    await look(Routine.objects.filter(pk=routine.pk).update, next_at=first)
    await world.worker_runs_routines()

    assert len(await world.runs(routine)) == 1
    await look(routine.refresh_from_db)
    assert routine.next_at == first + timedelta(days=1)


@pytest.mark.parametrize(
    ("state", "removed", "code"), [("signed_out", False, "signed_out"), ("ok", True, "no_account")]
)
async def test_an_account_that_is_gone_or_signed_out_fails_the_run_with_what_to_do(world, state, removed, code):
    """R36: not at its limit, and nothing is routed past it."""
    await look(world.account, "codex")
    await look(world.account, "codex", "codex-2")
    routine = await look(world.routine, account="codex")
    gone = world.time.now() if removed else None
    await look(Account.objects.filter(slug="codex").update, state=state, removed_at=gone)

    await world.until(routine)
    await world.worker_runs_routines()

    (turn,) = await world.runs(routine)
    assert (turn.state, turn.failure_code) == ("failed", code)


async def test_offline_a_routine_asks_nobody_else_either(world):
    """R25 with R19: not even the model on this computer."""
    await world.prefers(offline_fallback=True)
    await look(world.account, "codex")
    await look(Account.objects.filter(slug="codex").update, base_url="http://127.0.0.1:9/backend-api")
    routine = await look(world.routine, account="codex")

    await world.until(routine)
    await world.worker_runs_routines()

    (turn,) = await world.runs(routine)
    assert turn.state == "failed"
    assert turn.failure_code in {"offline", "unreachable"}
    assert "offline.routed" not in [kind for kind, _ in await world.lines(turn.conversation)]


async def test_a_person_who_was_switched_off_runs_nothing(world):
    routine = await look(world.routine, account="codex")
    world.person.is_active = False
    await look(lambda: world.person.save(update_fields=["is_active"]))

    await world.until(routine)

    assert await look(due, world.time.now()) == []


async def test_an_agent_that_is_deleted_switches_its_routines_off(world):
    """Rather than run without its instructions, by whoever new chats start with."""
    from conch.tasks import agents

    agent = await look(world.agent, account="codex")
    routine = await look(world.routine, agent=agent)

    await look(agents.delete, world.person, agent)

    await look(routine.refresh_from_db)
    assert (routine.active, routine.next_at, routine.agent_id) == (False, None, None)


async def test_the_worker_runs_what_is_due_beside_the_rest(world):
    """doors.md: `up` and `worker` run routines."""
    codex = await look(world.account, "codex")
    codex.key.replies("By the worker.")
    routine = await look(world.routine, account="codex")
    await look(Routine.objects.filter(pk=routine.pk).update, next_at=utc(2026, 1, 1))
    stop = asyncio.Event()
    working = asyncio.create_task(work(stop, also=(routines.look_round,)))
    writing = asyncio.create_task(keep_writing())

    while not [turn for turn in await world.runs(routine) if turn.state == "done"]:
        await asyncio.sleep(0.05)
        assert not working.done()
    stop.set()
    await working
    writing.cancel()

    (turn,) = await world.runs(routine)
    assert turn.answer == "By the worker."
