"""The sentences in which Claude Code and Codex say that a limit is reached: the last resort, after every typed signal.

Only a reply that as a whole is such a sentence, and that was not billed, is a limit (R30); the caller knows whether it
was. Wording changes every few weeks (RST-09): how a known sentence begins decides, its time is read where it can be,
and where it can't the reset is unknown. Pure.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from conch.engines import resets

LONGEST_SENTENCE = 400  # characters; a longer text is an answer
_SAME = str.maketrans({"’": "'", "‘": "'", "∙": "·", "•": "·", "\xa0": " ", "\u202f": " "})  # noqa: RUF001
_LIMIT = re.compile(
    r"(?:claude(?: ai)? |opus |sonnet |haiku |fable )*(?:5-hour |weekly |session |usage |daily |monthly )+limit reached"
    r"|you'?ve (?:hit|reached) your (?:[\w-]+ ){0,4}limit"
    r"|you(?:'re| are) out of extra usage"
    r"|your org(?:anization)? is out of (?:extra )?usage",
    re.IGNORECASE,
)
_MODEL = re.compile(r"\b(opus|sonnet|haiku|fable)\b(?: [\w-]+)? limit", re.IGNORECASE)
_EPOCH = re.compile(r"\|(\d{10,13})\b")
_CLOCK = re.compile(
    r"(?:resets?(?: at)?|try again at) "
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?,? "
    r"(?:(?P<year>\d{4}),? )?(?:at )?)?(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>am|pm)\b"
    r"(?: \((?P<zone>[\w/+-]{2,40})\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class LimitSentence:
    """A limit in words: its reset where one could be read, and the family of models that it names ("" all)."""

    until: datetime | None = None
    model: str = ""


def limit_sentence(text: str, now: datetime, zone: tzinfo = UTC) -> LimitSentence | None:
    """The limit that the whole of this text states, else None. `zone`: the program's own, for a time without one."""
    sentence = " ".join(text.translate(_SAME).split())
    if len(sentence) > LONGEST_SENTENCE or not _LIMIT.match(sentence):
        return None
    family = _MODEL.search(sentence)
    return LimitSentence(_until(sentence, now, zone), family[1].lower() if family else "")


def _until(sentence: str, now: datetime, zone: tzinfo) -> datetime | None:
    epoch = _EPOCH.search(sentence)
    if epoch:
        return resets.bounded(resets.instant(epoch[1]), now)
    clock = _CLOCK.search(sentence)
    if not clock:
        return None
    named = _zone(clock["zone"]) if clock["zone"] else zone
    hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
    if named is None or not 1 <= hour <= 12 or minute > 59:
        return None
    hour = hour % 12 + (12 if clock["half"].lower() == "pm" else 0)
    if clock["month"]:
        return resets.bounded(_on_that_day(clock, hour, minute, now, named), now)
    return resets.bounded(_next(hour, minute, now, named), now)


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return None


def _next(hour: int, minute: int, now: datetime, zone: tzinfo) -> datetime | None:
    """The next moment at which clocks there show that time (RST-07, RST-11)."""
    today = now.astimezone(zone).date()
    found = [at for days in range(3) for at in _moments(today + timedelta(days=days), hour, minute, zone)]
    return min((at for at in found if at > now), default=None)


def _on_that_day(clock: re.Match[str], hour: int, minute: int, now: datetime, zone: tzinfo) -> datetime | None:
    """The next moment on the day that the sentence names, this year unless it says which or it is past."""
    month, this = _MONTHS.index(clock["month"].lower()) + 1, now.astimezone(zone).year
    for year in [int(clock["year"])] if clock["year"] else [this, this + 1]:
        try:
            day = date(year, month, int(clock["day"]))
        except ValueError:
            continue
        for at in _moments(day, hour, minute, zone):
            if at > now:
                return at
    return None


def _moments(day: date, hour: int, minute: int, zone: tzinfo) -> list[datetime]:
    """The instants at which clocks there show it: one, two when they are set back, when skipped the first after."""
    shown = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    first, second = (shown.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    if first <= second:
        return sorted({first, second})
    # Clocks never show it: they jump over it at some moment between the two.
    jump = second
    while jump.astimezone(zone).utcoffset() == second.astimezone(zone).utcoffset() and jump < first:
        jump += timedelta(minutes=1)
    return [jump]
