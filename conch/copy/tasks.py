"""What is said of agents, background tasks and routines: states, schedules, what is in the way of a start. Pure."""

from datetime import datetime, timedelta

from conch.copy.clock import NB, UTC, Viewer, hour, moment, span

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ASKED_CHARACTERS = 140
ANSWER_CHARACTERS = 280
_SHORT = timedelta(seconds=20)

_TAGS = {
    "queued": ("Starting", "plain"),
    "running": ("Running", "ok"),
    "waiting": ("Waiting", "warn"),
    "capped": ("Held", "warn"),
    "done": ("Done", "plain"),
    "failed": ("Failed", "bad"),
    "stopped": ("Stopped", "plain"),
    "interrupted": ("Interrupted", "bad"),
}


def tag(state: str, failure_code: str) -> tuple[str, str]:
    """The state of a run in a word, and how it is coloured. A routine's run at a limit is held, not failed (R25)."""
    return ("Held", "warn") if failure_code == "held" else _TAGS[state]


def doing(state: str, label: str, step: str, answer: str, started_at: datetime | None, viewer: Viewer) -> str:
    """What a run does now, or what came of it, in a sentence; the answer's beginning where there is one."""
    if state == "queued":
        return "It is about to start."
    if state == "running":
        who = f"{label} is answering" if label else "Asking who answers"
        since = f", for {span(viewer.now - started_at)}" if started_at and viewer.now - started_at > _SHORT else ""
        return f"{who}{since}.{f' {step}' if step else ''}"
    if state == "stopped" and not answer:
        return "You stopped it. There is no answer."
    return beginning_of(answer, ANSWER_CHARACTERS)


def beginning_of(text: str, most: int = ASKED_CHARACTERS) -> str:
    """The first words of a text, on one line."""
    words = " ".join(text[: most * 4].split())
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0][:most] + "…"


def account_gone(label: str, agent: str) -> str:
    """R36: an account that isn't there any more is said before the chat is made."""
    return f"{_whose(agent, label)} isn’t connected any more. Choose who answers."


def account_signed_out(label: str, agent: str) -> str:
    """R36: so is one that is signed out."""
    return f"{_whose(agent, label)} is signed out. Sign in again, or choose who answers."


def _whose(agent: str, label: str) -> str:
    return f"The account of the agent {agent}, {label}," if agent else label


def schedule(kind: str, at: str, weekday: str, monthday: str, explained: str, viewer: Viewer) -> str:
    """A schedule in words: "Every day at 9:00 AM", "Every Monday at 9:00 AM"; a cron expression as `explained`."""
    if kind == "cron":
        return explained
    hours, _, minutes = at.partition(":")
    clock = hour(viewer.now.astimezone(UTC).replace(hour=int(hours), minute=int(minutes)), _in_utc(viewer))
    last = "The last day of every month"
    days = {
        "weekdays": "Every weekday",
        "week": f"Every {WEEKDAYS[int(weekday)]}",
        "month": last if monthday == "L" else f"Day {monthday} of every month",
    }
    return f"{days.get(kind, 'Every day')} at {clock}"


def _in_utc(viewer: Viewer) -> Viewer:
    return Viewer(viewer.now, UTC, viewer.hour_cycle)


def next_run(next_at: datetime | None, viewer: Viewer, *, active: bool) -> str:
    """When a routine runs next."""
    if not active:
        return "Switched off"
    return f"Next run {moment(next_at, viewer)}" if next_at else "It doesn’t run again"


def in_zone(zone: str) -> str:
    """Which clock a schedule goes by."""
    return f"Times are in your zone, {(zone or 'UTC').replace('_', ' ')}."


def deleting(routines: int, chats: int) -> list[str]:
    """What deleting an agent means, said before it happens."""
    said = []
    if chats:
        said.append(f"{_counted(chats, 'chat')} that started with it {'goes' if chats == 1 else 'go'} on as before.")
    else:
        said.append("No chat was started with it.")
    if routines:
        use, are = ("uses", "is") if routines == 1 else ("use", "are")
        said.append(f"{_counted(routines, 'routine')} that {use} it {are} switched off.")
    return said


def _counted(number: int, word: str) -> str:
    return f"{number}{NB}{word}{'' if number == 1 else 's'}"


def unread(number: int) -> str:
    """How many results nobody has looked at."""
    return f"{_counted(number, 'result')} not read yet"


def answered_by(label: str, billing: str) -> str:
    """Who answers what runs by itself, and who pays: "Codex, in your plan"."""
    pays = {"plan": "in your plan", "key": "pay per use", "local": "free"}[billing]
    return f"{label}, {pays}"
