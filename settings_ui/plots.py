"""Plots as plain SVG: sizes worked out here, colours by class in the sheet, the same figures in a table behind.

Pure. Lengths are units of the SVG's own view box.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from conch.money import shown

WIDTH, HEIGHT = 680, 200
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 10, 24
COLOURS = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One piece of a column; `series` chooses its colour."""

    x: float
    y: float
    width: float
    height: float
    series: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A grid line or a day, with what stands beside it."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Stacked columns, one a day."""

    bars: tuple[Bar, ...]
    levels: tuple[Tick, ...]
    days: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    base: int = HEIGHT - BOTTOM


def stacked(days: Sequence[date], series: Sequence[str], amounts: Mapping[tuple[date, str], Decimal]) -> Plot:
    """Columns of money, one a day, stacked by series in the order given."""
    sums = [sum((amounts.get((day, name), Decimal(0)) for name in series), Decimal(0)) for day in days]
    top = round_top(max(sums, default=Decimal(0)))
    room, slot = HEIGHT - TOP - BOTTOM, (WIDTH - LEFT - RIGHT) / max(1, len(days))
    bars: list[Bar] = []
    for place, day in enumerate(days):
        base = float(HEIGHT - BOTTOM)
        for colour, name in enumerate(series):
            amount = amounts.get((day, name), Decimal(0))
            if amount <= 0:
                continue
            height = max(1.0, float(amount / top) * room)
            base -= height
            left = LEFT + place * slot + slot * 0.15
            bars.append(Bar(round(left, 1), round(base, 1), round(slot * 0.7, 1), round(height, 1), colour % COLOURS))
    return Plot(tuple(bars), _levels(top, room), _days(days, slot))


def round_top(highest: Decimal) -> Decimal:
    """The least of 1, 2 or 5 times a power of ten that is not below it; a cent where there is nothing."""
    if highest <= 0:
        return Decimal("0.01")
    power = Decimal(1).scaleb(highest.adjusted())
    return next(power * step for step in (1, 2, 5, 10) if power * step >= highest)


def _levels(top: Decimal, room: int) -> tuple[Tick, ...]:
    parts = (Decimal(0), Decimal("0.5"), Decimal(1))
    return tuple(Tick(round(HEIGHT - BOTTOM - float(part) * room, 1), shown(top * part)) for part in parts)


def _days(days: Sequence[date], slot: float) -> tuple[Tick, ...]:
    every = max(1, len(days) // 8)
    return tuple(
        Tick(round(LEFT + place * slot + slot / 2, 1), str(day.day))
        for place, day in enumerate(days)
        if place % every == 0
    )


TRACE_WIDTH, TRACE_HEIGHT = 600, 48


def trace(figures: Sequence[tuple[datetime, float]], since: datetime, now: datetime) -> str:
    """What a window read over time, as the points of an SVG line; "" for fewer than two figures.

    A figure holds until the next one; what is past its limit stands at the top.
    """
    if len(figures) < 2 or now <= since:
        return ""
    points: list[str] = []
    y = ""
    for at, used in figures:
        x = f"{max(0.0, (at - since) / (now - since)) * TRACE_WIDTH:.1f}"
        if y:
            points.append(f"{x},{y}")
        y = f"{TRACE_HEIGHT - min(100.0, max(0.0, used)) / 100 * TRACE_HEIGHT:.1f}"
        points.append(f"{x},{y}")
    return " ".join([*points, f"{TRACE_WIDTH},{y}"])
