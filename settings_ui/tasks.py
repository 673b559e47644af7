"""Background tasks and routines: what runs without a page, what came of it, and when the next is due (R25)."""

from hashlib import sha256
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from conch.accounts import lists
from conch.chat.page import new_key
from conch.copy import tasks as copy
from conch.db import step
from conch.models import Task
from conch.tasks import agents, background
from conch.tasks.agents import Beginning
from conch.turns import doors
from conch.turns.errors import NotHere
from conch.turns.run import start
from settings_ui.routines import routine_rows
from settings_ui.task_forms import TaskForm
from settings_ui.viewing import HttpRequest, Visit, page, visit

PAGE = "/settings/tasks"


@require_safe
def tasks_page(request: HttpRequest) -> HttpResponse:
    """The page."""
    return show(request, visit(request))


def show(request: HttpRequest, here: Visit, form: TaskForm | None = None) -> HttpResponse:
    """The page, with the form as given or a new one."""
    form = form or task_form(here, initial={"key": new_key()})
    context = listed(here) | {"form": form, "routines": routine_rows(here), "zone": here.preferences.time_zone}
    context["in_zone"] = copy.in_zone(here.preferences.time_zone)
    return page(request, "tasks.html", context, current=PAGE, status=422 if form.errors else 200)


def task_form(here: Visit, *given: Any, **more: Any) -> TaskForm:
    """The form for a prompt of this person's."""
    lists.shown_to(here.person.pk)
    known = agents.agents_of(here.person.pk)
    accounts = agents.accounts_of(here.person.pk)
    return TaskForm(*given, accounts=accounts, agents=known, person_id=here.person.pk, **more)


def listed(here: Visit) -> dict[str, Any]:
    """The tasks for the list, and what a look at it again compares."""
    found = background.listed(here.person.pk, here.viewer)
    unread = sum(shown.unread for _, shown in found)
    facts = [(task.pk, shown.tag, shown.now, shown.said, shown.unread) for task, shown in found]
    return {
        "tasks": [{"id": task.pk, "run": shown} for task, shown in found],
        "unread": copy.unread(unread) if unread else "",
        "open": ",".join(str(task.pk) for task, shown in found if shown.stops),
        "stamp": sha256(repr(facts).encode()).hexdigest()[:16],
    }


@require_safe
def tasks_now(request: HttpRequest) -> HttpResponse:
    """The list alone, where it isn't as it was shown (`v`); `open`: those whose end is to be spoken."""
    context = listed(visit(request))
    if request.GET.get("v") == context["stamp"]:
        return HttpResponse(status=204)
    was_open = request.GET.get("open", "").split(",")
    ended = [row["run"] for row in context["tasks"] if str(row["id"]) in was_open and not row["run"].stops]
    context["say"] = " ".join(f"{run.tag}: {run.asked}" for run in ended)
    return render(request, "settings_ui/tasks_list.html", context)


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Run a prompt in the background."""
    here = visit(request)
    form = task_form(here, request.POST)
    if not form.is_valid():
        return show(request, here, form)
    given = form.cleaned_data
    how = agents.beginning(form.accounts, given.get("agent"), given["account"])
    if how.trouble:
        form.add_error("account", how.trouble)
        return show(request, here, form)
    async_to_sync(_begin)(here, how, given["text"], given["key"])
    messages.success(request, "It runs. You can close this page.")
    return redirect("/settings/tasks#running")


async def _begin(here: Visit, how: Beginning, text: str, key: str) -> None:
    turn_id = await step(background.begin, here.person.pk, how, text, key, here.viewer.now)
    start(turn_id)


@require_POST
def stop(request: HttpRequest, task_id: int) -> HttpResponse:
    """Stop a task; what had arrived is kept."""
    here = visit(request)
    task = own(here, task_id)
    async_to_sync(doors.stop)(here.person.pk, task.turn_id)
    messages.success(request, "Stopped.")
    return redirect("/settings/tasks#running")


@require_POST
def remove(request: HttpRequest, task_id: int) -> HttpResponse:
    """Take an ended task off the list; its chat stays."""
    here = visit(request)
    task = own(here, task_id)
    if task.turn.state in background.UNFINISHED:
        messages.error(request, "It still runs. Stop it first.")
    else:
        task.delete()
        messages.success(request, "Off the list. Its chat stays.")
    return redirect("/settings/tasks#running")


def own(here: Visit, task_id: int) -> Task:
    """The person's task, or 404."""
    try:
        return background.own(here.person.pk, task_id)
    except NotHere as error:
        raise Http404 from error
