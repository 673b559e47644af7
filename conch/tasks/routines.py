"""Routines: prompts on a schedule (R25). A run is claimed in one step, once, in any process; it never carries on.

A moment that was slept through, or passed while Conch was not running, gives one late run, which says so.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from conch.accounts.zones import zone_of_name
from conch.db import look, step
from conch.models import Line, Preferences, Routine, RoutineRun, Turn
from conch.tasks import schedule
from conch.tasks.agents import accounts_of, beginning
from conch.tasks.chats import begun
from conch.turns.clock import SYSTEM, Clock
from conch.turns.errors import NotHere
from conch.turns.run import start

MOST_AT_ONCE = 50
# As for a message that went out after a wait.
LATE = timedelta(minutes=2)


async def look_round(clock: Clock = SYSTEM) -> None:
    """One look of the worker: claim the routines that are due, and run each."""
    for routine_id in await look(due, clock.now()):
        turn_id = await step(claim, routine_id, clock.now())
        if turn_id is not None:
            start(turn_id, clock=clock)


def due(now: datetime) -> list[int]:
    """The routines whose moment has come, or that were planned in another zone than their person's is now."""
    moved = ~Q(zone=F("person__preferences__time_zone"))
    rows = Routine.objects.filter(Q(next_at__lte=now) | moved, active=True, person__is_active=True)
    rows = rows.filter(~Exists(_under_way()))
    return list(rows.order_by("next_at", "pk").values_list("pk", flat=True)[:MOST_AT_ONCE])


def _under_way() -> QuerySet[RoutineRun]:
    """For a filter on routines: a run of it that hasn't ended; the next goes after it, they never pile up."""
    states = [Turn.State.QUEUED, Turn.State.RUNNING]
    return RoutineRun.objects.filter(routine=OuterRef("pk"), turn__routine=True, turn__state__in=states)


def claim(routine_id: int, now: datetime) -> int | None:
    """A step: take the routine's due run, plan the next, and queue its turn, all or nothing; the turn's id.

    None where somebody else has taken it, or it only had to be planned anew for another zone.
    """
    routine = Routine.objects.select_related("agent").filter(pk=routine_id, active=True).first()
    if routine is None:
        return None
    name = zone_name_of(routine.person_id)
    zone = zone_of_name(name)
    planned = routine.next_at
    columns = {"next_at": schedule.following(routine.cron, now, zone), "zone": name}
    taken = Routine.objects.filter(pk=routine.pk, active=True, next_at=planned, zone=routine.zone).update(**columns)
    if not taken or planned is None or planned > now:
        return None
    return _run(routine, planned, now, zone_of_name(routine.zone))


def _run(routine: Routine, planned: datetime, now: datetime, zone: ZoneInfo) -> int | None:
    at = schedule.latest(routine.cron, planned, now, zone)
    if RoutineRun.objects.filter(routine=routine, planned_at=at).exists():
        return None  # our clock was set back: this moment has had its run
    how = beginning(accounts_of(routine.person_id), routine.agent, routine.account)
    turn = begun(routine.person_id, how, routine.text, now, title=routine.name, routine=True)
    late = now - planned > LATE
    behind = RoutineRun.objects.filter(routine=routine, turn__ended_at__gt=planned).exists()
    RoutineRun.objects.create(routine=routine, turn=turn, planned_at=at, started_at=now, late=late)
    if late and not behind:
        said = {"at": _iso(now), "planned_at": _iso(planned), "late": True}
        Line.objects.create(conversation_id=turn.conversation_id, turn=turn, kind="limit.sent", data=said, at=now)
    return turn.pk


def _iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def zone_name_of(person_id: int) -> str:
    """The name of the person's zone; "" where it is unset."""
    return Preferences.objects.values_list("time_zone", flat=True).get(pk=person_id)


def plan(routine: Routine, now: datetime) -> dict[str, object]:
    """The columns that a routine's schedule comes to from now on: when it is due next, and in which zone."""
    name = zone_name_of(routine.person_id)
    due_at = schedule.following(routine.cron, now, zone_of_name(name)) if routine.active else None
    return {"next_at": due_at, "zone": name}


def own(person_id: int, routine_id: int) -> Routine:
    """The person's routine. Raises NotHere."""
    routine = Routine.objects.filter(pk=routine_id, person_id=person_id).first()
    if routine is None:
        raise NotHere
    return routine


def switch(routine: Routine, now: datetime, *, on: bool) -> None:
    """Switch a routine on, from its next moment, or off; what it missed meanwhile isn't made up for."""
    routine.active = on
    Routine.objects.filter(pk=routine.pk).update(active=on, **plan(routine, now))


def last_runs(person_id: int) -> dict[int, RoutineRun]:
    """The latest run of each of the person's routines, with its turn and chat."""
    newer = RoutineRun.objects.filter(routine=OuterRef("routine"), pk__gt=OuterRef("pk"))
    runs = RoutineRun.objects.filter(~Exists(newer), routine__person_id=person_id)
    return {run.routine_id: run for run in runs.select_related("turn__conversation")}
