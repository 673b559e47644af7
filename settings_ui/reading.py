"""Figures that are over a minute old are read again while the page is looked at (R29); it never waits for that."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from conch.accounts import meters
from settings_ui.access import own_accounts
from settings_ui.changes import ask_again
from settings_ui.picker import picker_of
from settings_ui.providers import row
from settings_ui.viewing import HttpRequest, visit

# A provider that takes longer is read by the worker, sooner or later.
WAITS = 15.0  # seconds


@require_POST
def read_now(request: HttpRequest) -> HttpResponse:
    """Read what is due of this person's accounts; what follows from it, or nothing (204) where nothing was due."""
    here = visit(request)
    due = meters.due_on_a_page(here.person.pk, here.viewer.now)
    if not due:
        return HttpResponse(status=204)
    if any(async_to_sync(read_all)(due, here.viewer.now)):
        ask_again(here.person)
    picker = picker_of(here, request.POST.get("engine", ""))
    accounts = [row(account, here.viewer) for account in own_accounts(here.person)]
    return render(request, "settings_ui/_read.html", {"picker": picker, "accounts": accounts})


async def read_all(accounts: Sequence[int], now: datetime) -> list[bool]:
    """Read those accounts side by side; whether each may be able to answer now who couldn't before."""
    reading = [asyncio.create_task(meters.read(account, now)) for account in accounts]
    done, late = await asyncio.wait(reading, timeout=WAITS)
    for task in late:
        task.cancel()
    return [task.result() for task in done]
