"""Budget and spending: each account's windows now, what a month cost by day and by account, what carrying on saved."""

import csv
import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from conch.accounts.samples import samples_of
from conch.copy.clock import MONTHS, Viewer, at_moment, moment, span
from conch.ledger import month_end, month_of
from conch.models import Account, Window
from conch.money import from_nano, shown
from settings_ui import plots, spending
from settings_ui.account_words import key_facts
from settings_ui.pace import pace
from settings_ui.viewing import HttpRequest, Visit, page, visit

LOOKS_BACK = timedelta(days=7)
MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


@require_safe
def usage(request: HttpRequest) -> HttpResponse:
    """The page of one month, the present one by default."""
    here = visit(request)
    present = month_of(here.preferences, here.viewer.now)
    month = asked_month(request, present)
    labels = spending.labels(here.person)
    days = spending.by_day(here.person, month, here.viewer.zone)
    context = {
        "month": month,
        "month_name": month_name(month),
        "months": [(value, month_name(value)) for value in spending.months(here.person, present)],
        "accounts": windows(here),
        "money": money(here, month, labels, present=month == present),
        "plot": plots.stacked(days_of(month), series(days), {(row.day, row.account): row.cost for row in days}),
        "series": [(place % plots.COLOURS, labels.get(slug, slug)) for place, slug in enumerate(series(days))],
        "days": [day_row(row, labels) for row in days],
        "carried": [carried_row(row) for row in spending.carried_on(here.person, start_of(month, here))],
    }
    return page(request, "usage.html", context, current="/settings/usage")


@require_safe
def usage_csv(request: HttpRequest) -> StreamingHttpResponse:
    """The month's entries as a file."""
    here = visit(request)
    month = asked_month(request, month_of(here.preferences, here.viewer.now))
    writer = csv.writer(_Echo())
    rows: Iterable[str] = (writer.writerow(row) for row in spending.rows_for_csv(here.person, month))
    headers = {"Content-Disposition": f'attachment; filename="conch-{month}.csv"'}
    return StreamingHttpResponse(rows, content_type="text/csv; charset=utf-8", headers=headers)


class _Echo:
    """A file that hands back what is written to it, for the csv module."""

    def write(self, row: str) -> str:
        return row


def asked_month(request: HttpRequest, present: str) -> str:
    """The month of the address, where it is one."""
    asked = request.GET.get("month", "")
    return asked if MONTH.fullmatch(asked) else present


def month_name(month: str) -> str:
    """The month in words: "Oct 2026" for "2026-10"."""
    return f"{MONTHS[int(month[5:]) - 1]} {month[:4]}"


def days_of(month: str) -> list[date]:
    """Each day of the month."""
    year, number = int(month[:4]), int(month[5:])
    return [date(year, number, day) for day in range(1, monthrange(year, number)[1] + 1)]


def start_of(month: str, here: Visit) -> datetime:
    """When the month began in the person's zone."""
    return datetime(int(month[:4]), int(month[5:]), 1, tzinfo=here.viewer.zone).astimezone(UTC)


def series(days: Sequence[spending.DaySpend]) -> list[str]:
    """The accounts of a plot, the dearest at the bottom."""
    sums: dict[str, Decimal] = {}
    for row in days:
        sums[row.account] = sums.get(row.account, Decimal(0)) + row.cost
    return sorted((slug for slug, cost in sums.items() if cost), key=lambda slug: (-sums[slug], slug))


def day_row(row: spending.DaySpend, labels: dict[str, str]) -> dict[str, Any]:
    """One row of the table behind the plot."""
    unknown = f"price unknown ({counted(row.unpriced, 'reply', 'replies')})" if row.unpriced else ""
    cost = shown(row.cost) if row.cost or not unknown else ""
    return {
        "day": f"{MONTHS[row.day.month - 1]} {row.day.day}",
        "account": labels.get(row.account, row.account),
        "cost": ", ".join(part for part in (cost, unknown) if part),
        "replies": row.replies,
    }


def counted(number: int, one: str, more: str) -> str:
    """A number with its noun: "1 reply", "3 replies"."""
    return f"{number} {one if number == 1 else more}"


def money(here: Visit, month: str, labels: dict[str, str], *, present: bool) -> dict[str, Any]:
    """What the month comes to, and of the present month what is left of the budget (R33)."""
    spent = spending.of_month(here.person, month)
    budget = here.preferences.month_budget_nano
    left = None
    if present and budget is not None:
        left = shown(max(Decimal(0), from_nano(budget) - spent.spent - spent.held))
    return {
        "spent": shown(spent.spent),
        "held": shown(spent.held) if spent.held else "",
        "left": left,
        "budget": None if budget is None else shown(from_nano(budget)),
        "unpriced": f"price unknown ({counted(spent.unpriced, 'reply', 'replies')})" if spent.unpriced else "",
        "ends": moment(month_end(here.preferences, here.viewer.now), here.viewer) if present else "",
        "accounts": [
            {"label": labels.get(slug, slug), "cost": shown(cost), "unpriced": unpriced}
            for slug, cost, unpriced in spent.accounts
        ],
    }


def windows(here: Visit) -> list[dict[str, Any]]:
    """Each connected account with its windows as last read, and over the last week; three queries."""
    since = here.viewer.now - LOOKS_BACK
    samples = samples_of(here.person, since)
    accounts = Account.objects.filter(person=here.person, removed_at=None).order_by("connected_at", "pk")
    return [
        {
            "label": account.label,
            "whose": account.whose,
            "engine": account.engine,
            "slug": account.slug,
            "key": key_facts(account),
            "windows": [
                window_row(window, here.viewer) | past(samples.get((account.pk, window.name), []), since, here.viewer)
                for window in account.windows.all()
            ],
        }
        for account in accounts.prefetch_related("windows")
    ]


def window_row(window: Window, viewer: Viewer) -> dict[str, Any]:
    """One window in words; a reset that has passed says "resets now", without a percentage (R6)."""
    over = window.resets_at is not None and window.resets_at <= viewer.now
    left = None if window.used_percent is None or over else max(0.0, 100 - window.used_percent)
    return {
        "name": window.name,
        "left": left,
        "level": "" if left is None else "none" if left <= 0 else "low" if left <= 10 else "",
        "said": "Resets now" if over else "Doesn’t say how much is left" if left is None else f"{left:.0f}% left",
        "resets": "" if over or window.resets_at is None else f"resets {moment(window.resets_at, viewer)}",
        "pace": "" if over else pace_said(window, viewer),
        "age": f"read {span(viewer.now - window.read_at)} ago",
    }


def past(figures: Sequence[tuple[datetime, float]], since: datetime, viewer: Viewer) -> dict[str, Any]:
    """What a window read over the last week: a line, and behind it the highest figure of each day."""
    highest: dict[date, float] = {}
    for at, used in figures:
        day = at.astimezone(viewer.zone).date()
        highest[day] = max(used, highest.get(day, 0.0))
    days = [(f"{MONTHS[day.month - 1]} {day.day}", f"{used:.0f}% used") for day, used in highest.items()]
    return {"trace": plots.trace(figures, since, viewer.now), "past": days}


def pace_said(window: Window, viewer: Viewer) -> str:
    """At which pace the window fills; "" where that can't be said."""
    found = pace(window.used_percent, window.resets_at, window.length_minutes, window.read_at)
    if found is None:
        return ""
    if found.full_at is None:
        return "At this pace, not full before it resets"
    return f"At this pace, full {at_moment(found.full_at, viewer)}" if found.full_at > viewer.now else ""


def carried_row(row: spending.CarriedOn) -> dict[str, Any]:
    """One turn that was carried on: what it cost and which waiting it saved."""
    cost = "price unknown" if row.cost is None else shown(row.cost)
    free = {"plan": "in your plan", "local": "free"}
    return {
        "at": row.at,
        "conversation": row.conversation,
        "from": row.from_label,
        "to": row.to_label,
        "cost": free.get(row.billing, cost),
        "saved": span(row.saved) + " of waiting" if row.saved else "",
    }
