"""Plots made on the server, and the pace of a window."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from settings_ui.pace import pace
from settings_ui.plots import HEIGHT, LEFT, RIGHT, TOP, WIDTH, round_top, stacked

DAYS = [date(2026, 10, day) for day in range(1, 32)]
NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("highest", "top"),
    [
        ("0", "0.01"),
        ("0.01", "0.01"),
        ("0.012", "0.02"),
        ("3", "5"),
        ("5", "5"),
        ("5.01", "10"),
        ("0.00003", "0.00005"),
    ],
)
def test_the_axis_ends_at_the_next_round_sum(highest, top):
    assert round_top(Decimal(highest)) == Decimal(top)


def test_bars_of_a_day_stand_on_each_other_and_stay_inside():
    amounts = {(DAYS[0], "a"): Decimal(3), (DAYS[0], "b"): Decimal(2), (DAYS[30], "b"): Decimal("0.001")}

    plot = stacked(DAYS, ["a", "b"], amounts)

    first, second, last = plot.bars
    assert first.x == second.x
    assert second.y + second.height == pytest.approx(first.y, abs=0.2)
    assert all(bar.x >= LEFT and bar.x + bar.width <= WIDTH - RIGHT and bar.y >= TOP for bar in plot.bars)
    assert last.height >= 1, "what was spent is never invisible"
    assert plot.base < HEIGHT


def test_nothing_spent_is_an_empty_plot():
    assert stacked(DAYS, [], {}).bars == ()


def test_a_window_that_fills_faster_than_it_runs_says_when_it_is_full():
    found = pace(50, NOW + timedelta(hours=3), 300, NOW)

    assert found.full_at == NOW + timedelta(hours=2)


def test_a_window_that_lasts_says_so_and_an_unknown_one_says_nothing():
    """R6: a percentage that is missing says nothing."""
    assert pace(10, NOW + timedelta(hours=1), 300, NOW).full_at is None
    assert pace(None, NOW + timedelta(hours=1), 300, NOW) is None
    assert pace(50, None, 300, NOW) is None
    assert pace(50, NOW + timedelta(hours=1), None, NOW) is None
    assert pace(1, NOW + timedelta(minutes=299), 300, NOW) is None, "too soon to say"
    assert pace(50, NOW - timedelta(minutes=1), 300, NOW) is None
