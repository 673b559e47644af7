"""Routines: made, changed, switched on and off, deleted; with their next run and the last (R25)."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from conch.accounts.zones import zone_of_name
from conch.chat.shown import names_of
from conch.copy import tasks as copy
from conch.models import Routine
from conch.tasks import agents, background, routines, schedule
from conch.turns.errors import NotHere
from settings_ui.task_forms import RoutineForm, account_names
from settings_ui.viewing import HttpRequest, Visit, page, visit

PAGE = "/settings/tasks"


def routine_rows(here: Visit) -> list[dict[str, Any]]:
    """The person's routines for the list, each with its last run; a fixed number of queries."""
    found = Routine.objects.filter(person=here.person).select_related("agent").order_by("name", "pk")
    last = routines.last_runs(here.person.pk)
    there = {key: run for key, run in last.items() if run.turn.conversation.deleted_at is None}
    unread = {run.turn.conversation_id: run.turn.conversation.unread for run in there.values()}
    turns = [run.turn for run in there.values()]
    shown = background.present(turns, unread, names_of(here.person.pk), here.viewer)
    runs = dict(zip(there, shown, strict=True))
    names = dict(account_names(agents.accounts_of(here.person.pk)))
    return [_row(routine, runs.get(routine.pk), names, here) for routine in found]


def _row(routine: Routine, last: background.Shown | None, names: dict[str, str], here: Visit) -> dict[str, Any]:
    plan = schedule.plan_of(routine.cron)
    explained = schedule.explained(routine.cron) if plan.kind == schedule.CRON else ""
    slug = routine.account or (routine.agent.account if routine.agent else "")
    return {
        "routine": routine,
        "schedule": copy.schedule(plan.kind, plan.at, plan.weekday, plan.monthday, explained, here.viewer),
        "next": copy.next_run(routine.next_at, here.viewer, active=routine.active),
        "who": names.get(slug, f"{slug} (not connected any more)"),
        "last": last,
    }


@require_http_methods(["GET", "HEAD", "POST"])
def new_routine(request: HttpRequest) -> HttpResponse:
    """Make one."""
    here = visit(request)
    form = routine_form(here, request, {"kind": schedule.DAY, "at": "09:00"})
    if request.method == "POST" and form.is_valid():
        routine = Routine(person=here.person, created_at=here.viewer.now, **columns(form))
        for name, value in routines.plan(routine, here.viewer.now).items():
            setattr(routine, name, value)
        routine.save()
        messages.success(request, f"Saved. {copy.next_run(routine.next_at, here.viewer, active=True)}.")
        return redirect("/settings/tasks#routines")
    return show(request, here, None, form)


@require_http_methods(["GET", "HEAD", "POST"])
def routine_page(request: HttpRequest, routine_id: int) -> HttpResponse:
    """Change one; it is planned anew from now on."""
    here = visit(request)
    routine = own(here, routine_id)
    plan = schedule.plan_of(routine.cron)
    kept = {"name": routine.name, "text": routine.text, "agent": routine.agent_id, "account": routine.account}
    form = routine_form(here, request, kept | plan._asdict())
    if request.method == "POST" and form.is_valid():
        given = columns(form)
        routine.cron = given["cron"]
        planned = routines.plan(routine, here.viewer.now)
        Routine.objects.filter(pk=routine.pk).update(**given, **planned)
        messages.success(request, "Saved.")
        return redirect("/settings/tasks#routines")
    return show(request, here, routine, form)


def routine_form(here: Visit, request: HttpRequest, initial: dict[str, Any]) -> RoutineForm:
    """The form as it was sent, or with what is kept."""
    return RoutineForm(
        request.POST or None,
        initial=initial,
        accounts=agents.accounts_of(here.person.pk),
        agents=agents.agents_of(here.person.pk),
        person_id=here.person.pk,
        now=here.viewer.now,
        zone=zone_of_name(here.preferences.time_zone),
    )


def columns(form: RoutineForm) -> dict[str, Any]:
    """What of a valid form is kept."""
    given = form.cleaned_data
    return {name: given.get(name) for name in ("name", "text", "agent", "account", "cron")}


def show(request: HttpRequest, here: Visit, routine: Routine | None, form: RoutineForm) -> HttpResponse:
    """The form, with what was typed and what is wrong beside the field."""
    context = {"routine": routine, "form": form, "in_zone": copy.in_zone(here.preferences.time_zone)}
    return page(request, "tasks_routine.html", context, current=PAGE, status=422 if form.errors else 200)


@require_POST
def switch_routine(request: HttpRequest, routine_id: int) -> HttpResponse:
    """Switch it on or off, as the button said."""
    here = visit(request)
    routine = own(here, routine_id)
    on = request.POST.get("on") == "1"
    routines.switch(routine, here.viewer.now, on=on)
    messages.success(request, f"{routine.name} is switched {'on' if on else 'off'}.")
    return redirect("/settings/tasks#routines")


@require_http_methods(["GET", "HEAD", "POST"])
def delete_routine(request: HttpRequest, routine_id: int) -> HttpResponse:
    """Say what deleting it means; on a press, do it."""
    here = visit(request)
    routine = own(here, routine_id)
    if request.method == "POST":
        routine.delete()
        messages.success(request, f"{routine.name} is deleted.")
        return redirect("/settings/tasks#routines")
    context = {
        "name": routine.name,
        "said": ["It doesn’t run any more. The chats of its runs stay."],
        "back": "settings-tasks",
        "back_name": "Tasks",
        "keep": ("settings-routine", routine.pk),
    }
    return page(request, "tasks_sure.html", context, current=PAGE)


def own(here: Visit, routine_id: int) -> Routine:
    """The person's routine, or 404."""
    try:
        return routines.own(here.person.pk, routine_id)
    except NotHere as error:
        raise Http404 from error
