"""When a routine is due: cron expressions of five fields, read in the person's zone. Pure; cronsim knows cron.

Days of changed clocks are as Debian's cron has them: a time that is skipped runs once, at the next moment that there
is; one that comes twice runs once. An expression that starts with a star in minutes or hours follows the clock's own
course: every 15 minutes is every 15 minutes.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

DAY, WEEKDAYS, WEEK, MONTH, CRON = "day", "weekdays", "week", "month", "cron"
LAST_DAY = "L"
_SIMPLE = re.compile(r"(\d{1,2}) (\d{1,2}) (\S+) \* (\S+)")
# How far back the latest due moment is looked for, nearest first.
_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=40), timedelta(days=400))


class Plan(NamedTuple):
    """A schedule as people choose it. `kind`: day, weekdays, week, month or cron; `at`: "09:00".

    `weekday`: "0" Sunday to "6"; `monthday`: "1" to "31", or "L" for the last; `cron`: the expression itself.
    """

    kind: str
    at: str = "09:00"
    weekday: str = "1"
    monthday: str = "1"
    cron: str = ""


def cron_of(plan: Plan) -> str:
    """The expression of that plan."""
    if plan.kind == CRON:
        return " ".join(plan.cron.split())
    hour, _, minute = plan.at.partition(":")
    days = {WEEKDAYS: "* * 1-5", WEEK: f"* * {plan.weekday}", MONTH: f"{plan.monthday} * *"}
    return f"{int(minute)} {int(hour)} {days.get(plan.kind, '* * *')}"


def plan_of(cron: str) -> Plan:
    """The plan that an expression came from; one that no plan makes is itself."""
    found = _SIMPLE.fullmatch(cron)
    if found is None:
        return Plan(CRON, cron=cron)
    at, (monthday, weekday) = f"{int(found[2]):02}:{int(found[1]):02}", found.group(3, 4)
    if weekday == "*":
        if monthday == "*":
            return Plan(DAY, at)
        if monthday.isdigit() or monthday == LAST_DAY:
            return Plan(MONTH, at, monthday=monthday)
    elif monthday == "*" and weekday == "1-5":
        return Plan(WEEKDAYS, at)
    elif monthday == "*" and weekday in {*"0123456"}:
        return Plan(WEEK, at, weekday=weekday)
    return Plan(CRON, cron=cron)


def trouble(cron: str, now: datetime, zone: ZoneInfo) -> str:
    """What is wrong with an expression, as a sentence; "" where it is one and something comes of it."""
    if len(cron.split()) != 5:
        return "A cron expression has five fields: minute, hour, day of the month, month, day of the week."
    try:
        never = following(cron, now, zone) is None
    except CronSimError as error:
        return f"That isn’t a cron expression: {str(error)[0].lower()}{str(error)[1:]}."
    return "That day never comes." if never else ""


def explained(cron: str) -> str:
    """A valid expression in words: "At 09:00 on Monday through Friday"."""
    return CronSim(cron, datetime(2000, 1, 1, tzinfo=UTC)).explain()


def _due(cron: str, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The moments (UTC) at which it is due, in order, after that one."""
    last = after
    for local in CronSim(cron, after.astimezone(zone)):
        at = local.astimezone(UTC)
        # Within an hour that comes twice, cronsim may begin with what was before; and a skipped time is the next's too.
        if at > last:
            last = at
            yield at


def following(cron: str, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The next moment (UTC) at which it is due, after that one; None where there is none. Raises CronSimError."""
    return next(_due(cron, after, zone), None)


def latest(cron: str, first: datetime, now: datetime, zone: ZoneInfo) -> datetime:
    """The last moment at which it was due up to now, where `first` was one: a long sleep misses many, and runs one."""
    for back in _BACK:
        if now - back <= first:
            break
        due = list(takewhile(lambda at: at <= now, _due(cron, now - back, zone)))
        if due:
            return due[-1]
    return max(takewhile(lambda at: at <= now, _due(cron, first, zone)), default=first)
