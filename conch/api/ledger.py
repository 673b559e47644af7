"""GET /api/ledger: what was or may be paid for, a month at a time."""

import re
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from ninja.params.functions import Query

from conch import ids
from conch.api.caller import answer, person_id
from conch.api.presented import time, usd
from conch.api.problems import Problem
from conch.db import look
from conch.ledger import month_of
from conch.models import Entry, MonthTotal, Preferences

ENTRIES_A_PAGE = 500

router = Router(tags=["ledger"])


@router.get("/ledger", summary="A month's entries and sums")
async def read_ledger(
    request: HttpRequest,
    month: str | None = Query(None, description="YYYY-MM; the present one by default"),
    account: str | None = Query(None, description="Entries of this account only; the sums stay those of the month"),
    cursor: int | None = Query(None, ge=1, le=ids.LARGEST, description="`next` of the page before"),
) -> HttpResponse:
    """The entries, newest first, with the sums of the whole month. Plans enter it only by extra usage."""
    if month is not None and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise Problem(422, "month is a calendar month, YYYY-MM.")
    return answer(await look(_ledger, person_id(request), month, account, cursor, timezone.now()))


def _ledger(caller: int, month: str | None, account: str | None, cursor: int | None, now: datetime) -> dict[str, Any]:
    month = month or month_of(Preferences.objects.get(pk=caller), now)
    entries = Entry.objects.filter(person_id=caller, month=month).order_by("-pk")
    if account is not None:
        entries = entries.filter(account=account)
    if cursor is not None:
        entries = entries.filter(pk__lt=cursor)
    page = list(entries[: ENTRIES_A_PAGE + 1])
    more = page[ENTRIES_A_PAGE - 1].pk if len(page) > ENTRIES_A_PAGE else None
    totals = {total.account: total for total in MonthTotal.objects.filter(person_id=caller, month=month)}
    whole = totals.pop("", MonthTotal())
    booked = Entry.objects.filter(person_id=caller, month=month)
    empty = [slug for slug, total in totals.items() if not (total.spent_nano or total.held_nano or total.unpriced)]
    for slug in empty:
        if not booked.filter(account=slug).exists():  # held once, and then it surely cost nothing (R26)
            del totals[slug]
    return {
        "entries": [_entry(entry) for entry in page[:ENTRIES_A_PAGE]],
        "next": more,
        "sums": {slug: usd(total.spent_nano) for slug, total in sorted(totals.items())},
        "total": usd(whole.spent_nano),
        "held": usd(whole.held_nano),
        "unpriced": whole.unpriced,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "account": entry.account,
        "model": entry.model,
        "conversation": entry.conversation,
        "turn": entry.turn,
        "state": entry.state,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cost": usd(entry.cost_nano),
        "priced_by": entry.priced_by,
        "estimated": entry.estimated,
        "consent": entry.consent or None,
        "at": time(entry.at),
    }
