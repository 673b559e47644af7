"""The page of background tasks and routines: what can be pressed, by whom, and what is said (R25)."""

import json
import re

import pytest
from django.test import AsyncClient, Client
from django.utils import timezone

from conch.db import look
from conch.models import Account, Agent, Conversation, Preferences, Routine, RoutineRun, Task, Turn
from conch.turns.run import all_ended
from tests.conftest import NOW, make_account, make_person
from tests.tasks.conftest import utc

# Presses go through the writer thread, which sees what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(transactional_db):
    person = make_person("ada", is_owner=True)
    Preferences.objects.filter(person=person).update(time_zone="Europe/Berlin", hour_cycle="h12")
    make_account(person, "codex", label="Codex")
    return person


@pytest.fixture
def as_ada(ada):
    client = Client()
    client.force_login(ada)
    return client


def a_turn(person, state="done", text="Summarise it", unread=False, **fields):
    chat = Conversation.objects.create(
        person=person, account="codex", title=text, created_at=NOW, updated_at=NOW, unread=unread
    )
    given = {"account": "codex", "created_at": NOW, "ended_at": NOW, "answer": "Done." if state == "done" else ""}
    return Turn.objects.create(conversation=chat, text=text, state=state, unattended=True, **(given | fields))


def a_task(person, **how):
    turn = a_turn(person, **how)
    return Task.objects.create(person=person, conversation=turn.conversation, turn=turn, created_at=NOW)


def a_routine(person, **fields):
    given = {"name": "Morning news", "text": "What is new?", "cron": "0 9 * * *", "created_at": NOW} | fields
    return Routine.objects.create(person=person, zone="Europe/Berlin", next_at=utc(2099, 1, 1, 8), **given)


def posted(**fields):
    given = {"name": "Morning news", "text": "What is new?", "account": "codex", "kind": "day", "at": "09:00"}
    return given | {"weekday": "1", "monthday": "1", "cron": ""} | fields


def page(response, status=200):
    assert response.status_code == status
    return response.content.decode()


async def test_a_prompt_is_run_from_the_page_once_and_its_result_is_listed(simulator, tmp_path, transactional_db):
    from tests.tasks.conftest import TasksWorld

    world = await look(lambda: TasksWorld(make_person("ada", is_owner=True), simulator, tmp_path))
    codex = await look(world.account, "codex")
    codex.key.replies("Three things matter.", times=3)
    client = AsyncClient()
    await client.aforce_login(world.person)
    key = re.search(r'name="key" value="(\w+)"', page(await client.get("/settings/tasks")))[1]

    for _ in range(2):
        pressed = await client.post("/settings/tasks/begin", {"text": "Go", "account": "codex", "key": key})
        assert pressed.status_code == 302
    await all_ended()

    html = page(await client.get("/settings/tasks"))
    assert "Three things matter." in html
    assert "1\u00a0result not read yet" in html
    assert await look(Task.objects.count) == 1
    assert len(world.simulator.requests(codex.key.secret)) == 1
    chat = await look(Conversation.objects.get)
    assert f'href="/c/{chat.pk}"' in html

    await client.get(f"/c/{chat.pk}")
    assert "not read yet" not in page(await client.get("/settings/tasks"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"text": " "}, "Write what it is to do."), ({"account": "nope"}, "That account isn’t connected.")],
)
def test_a_prompt_that_cannot_run_is_kept_and_what_is_wrong_is_said(as_ada, wrong, said):
    given = {"text": "Read all of it", "account": "codex", "key": "k"} | wrong

    html = page(as_ada.post("/settings/tasks/begin", given), 422)

    assert said in html
    assert given["text"].strip() in html
    assert not Task.objects.exists()


def test_an_account_that_is_signed_out_is_said_before_anything_runs(as_ada):
    """R36."""
    Account.objects.update(state="signed_out")

    html = page(as_ada.post("/settings/tasks/begin", {"text": "Read all", "account": "codex", "key": "k"}), 422)

    assert "Codex is signed out." in html
    assert "Read all" in html
    assert not Conversation.objects.exists()


def test_a_task_is_stopped_and_taken_off_the_list_while_its_chat_stays(as_ada, ada):
    task = a_task(ada, state="waiting", ended_at=None)

    assert "It still runs. Stop it first." in page(as_ada.post(f"/settings/tasks/{task.pk}/remove", follow=True))
    assert Task.objects.exists()
    as_ada.post(f"/settings/tasks/{task.pk}/stop")
    task.turn.refresh_from_db()
    assert task.turn.state == "stopped"
    assert "You stopped it." in page(as_ada.get("/settings/tasks"))

    as_ada.post(f"/settings/tasks/{task.pk}/remove")
    assert not Task.objects.exists()
    assert Conversation.objects.count() == 1


def test_a_look_again_brings_only_what_changed_and_says_what_ended(as_ada, ada):
    task = a_task(ada, state="running", ended_at=None, started_at=timezone.now())
    html = page(as_ada.get("/settings/tasks"))
    address = re.search(r'hx-get="([^"]+)"', html)[1].replace("&amp;", "&")
    assert "Codex is answering" in html
    assert as_ada.get(address).status_code == 204

    Turn.objects.update(state="done", answer="All read.", ended_at=timezone.now())
    Conversation.objects.update(unread=True)

    parts = page(as_ada.get(address))
    assert "Done: Summarise it" in parts
    assert "All read." in parts
    assert "hx-get" not in parts, "nothing is under way any more"
    assert f'id="task-{task.pk}"' in parts


def test_a_deleted_chat_takes_its_task_off_the_list(as_ada, ada):
    a_task(ada, text="Gone already")
    Conversation.objects.update(deleted_at=NOW)

    assert "Gone already" not in page(as_ada.get("/settings/tasks"))


@pytest.mark.parametrize(
    ("chosen", "cron", "said"),
    [
        ({}, "0 9 * * *", "Every day at 9:00\u00a0AM"),
        ({"kind": "weekdays", "at": "18:30"}, "30 18 * * 1-5", "Every weekday at 6:30\u00a0PM"),
        ({"kind": "week", "weekday": "1"}, "0 9 * * 1", "Every Monday at 9:00\u00a0AM"),
        ({"kind": "month", "monthday": "15"}, "0 9 15 * *", "Day 15 of every month at 9:00\u00a0AM"),
        ({"kind": "month", "monthday": "L"}, "0 9 L * *", "The last day of every month at 9:00\u00a0AM"),
        ({"kind": "cron", "at": "", "cron": " */15  9-17 * * 1-5 "}, "*/15 9-17 * * 1-5", "Every 15th minute"),
    ],
)
def test_a_routine_is_made_in_words_or_as_an_expression_and_says_when_it_runs(as_ada, ada, chosen, cron, said):
    made = as_ada.post("/settings/tasks/routines/new", posted(**chosen), follow=True)

    assert said in page(made)
    assert "Next run" in page(made)
    assert "Times are in your zone, Europe/Berlin." in page(made)
    routine = Routine.objects.get(person=ada)
    assert (routine.cron, routine.active, routine.zone) == (cron, True, "Europe/Berlin")
    assert routine.next_at > timezone.now()
    form = page(as_ada.get(f"/settings/tasks/routines/{routine.pk}"))
    kind = chosen.get("kind", "day")
    assert f'<option value="{kind}" selected>' in form, "changing it begins with what was chosen"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "Give it a name."),
        ({"text": ""}, "Write what it is to do."),
        ({"kind": "cron", "cron": "every day"}, "A cron expression has five fields"),
        ({"kind": "cron", "cron": "61 9 * * *"}, "That isn’t a cron expression: bad minute."),
        ({"kind": "cron", "cron": "0 9 30 2 *"}, "That isn’t a cron expression: bad day-of-month."),
        ({"at": "quarter past"}, "Write a time, such as 09:00."),
        ({"at": ""}, "Choose a time."),
        ({"account": ["gone"], "name": "Late news"}, "That account isn’t connected. Choose who answers."),
    ],
)
def test_a_schedule_that_is_none_is_kept_as_typed_and_said_beside_its_field(as_ada, wrong, said):
    html = page(as_ada.post("/settings/tasks/routines/new", posted(**wrong)), 422)

    assert said in html
    assert all(value in html for value in wrong.values() if isinstance(value, str))
    assert not Routine.objects.exists()


def test_a_changed_routine_is_planned_anew(as_ada, ada):
    routine = a_routine(ada)

    as_ada.post(f"/settings/tasks/routines/{routine.pk}", posted(at="07:15", text="And today?"))

    routine.refresh_from_db()
    assert (routine.cron, routine.text) == ("15 7 * * *", "And today?")
    assert routine.next_at < utc(2099, 1, 1)


def test_a_routine_is_switched_off_and_on_and_deleted_while_its_chats_stay(as_ada, ada):
    routine = a_routine(ada)
    turn = a_turn(ada, state="failed", failure_code="held", failure={"code": "held", "label": "Codex", "until": None})
    RoutineRun.objects.create(routine=routine, turn=turn, planned_at=NOW, started_at=NOW)

    html = page(as_ada.post(f"/settings/tasks/routines/{routine.pk}/switch", {"on": "0"}, follow=True))
    assert "Switch on" in html
    assert "Held: <b><bdi>Codex</bdi></b> is at its limit. The next run is tried as usual." in html
    routine.refresh_from_db()
    assert (routine.active, routine.next_at) == (False, None)

    as_ada.post(f"/settings/tasks/routines/{routine.pk}/switch", {"on": "1"})
    routine.refresh_from_db()
    assert routine.next_at > timezone.now()

    as_ada.get(f"/settings/tasks/routines/{routine.pk}/delete")
    assert Routine.objects.exists(), "looking deletes nothing"
    as_ada.post(f"/settings/tasks/routines/{routine.pk}/delete")
    assert not Routine.objects.exists()
    assert Turn.objects.count() == 1


def test_another_persons_tasks_and_routines_are_not_there(as_ada):
    bob = make_person("bob")
    task, routine = a_task(bob, text="Bob’s task", state="waiting"), a_routine(bob, name="Bob’s routine")

    for path in (f"{task.pk}/stop", f"{task.pk}/remove", f"routines/{routine.pk}/switch"):
        assert as_ada.post(f"/settings/tasks/{path}").status_code == 404
    for path in (f"routines/{routine.pk}", f"routines/{routine.pk}/delete"):
        assert as_ada.get(f"/settings/tasks/{path}").status_code == 404
        assert as_ada.post(f"/settings/tasks/{path}", posted()).status_code == 404
    html = page(as_ada.get("/settings/tasks"))
    assert "Bob’s" not in html
    routine.refresh_from_db()
    assert (routine.active, Turn.objects.get().state) == (True, "waiting")


@pytest.mark.parametrize("path", ["begin", "1/stop", "1/remove", "routines/1/switch"])
def test_looking_at_an_action_does_nothing(as_ada, path):
    assert as_ada.get(f"/settings/tasks/{path}").status_code == 405


@pytest.mark.parametrize("path", ["agents", "tasks", "tasks/now", "tasks/routines/new"])
def test_nobody_unsigned_gets_in(transactional_db, path):
    assert Client().get(f"/settings/{path}").status_code in {302, 401, 403}


def test_queries_do_not_grow_with_routines(as_ada, ada, django_assert_max_num_queries):
    for number in range(8):
        turn = a_turn(ada)
        routine = a_routine(ada, name=f"Routine {number}")
        RoutineRun.objects.create(routine=routine, turn=turn, planned_at=NOW, started_at=NOW)
        a_task(ada, text=f"Task {number}")

    with django_assert_max_num_queries(26):
        html = page(as_ada.get("/settings/tasks"))
    assert "Routine 7" in html
    assert "Task 7" in html


def test_everything_that_is_taken_along_holds_agents_and_routines(as_ada, ada):
    a_routine(ada, agent=Agent.objects.create(person=ada, name="Reviewer", instructions="Be brief.", created_at=NOW))
    a_routine(make_person("bob"), name="Bob’s")

    taken = json.loads(b"".join(as_ada.get("/settings/you/export").streaming_content))

    assert [agent["instructions"] for agent in taken["agents"]] == ["Be brief."]
    assert [(routine["name"], routine["cron"]) for routine in taken["routines"]] == [("Morning news", "0 9 * * *")]
