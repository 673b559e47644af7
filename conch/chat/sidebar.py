"""The chats in the sidebar: the latest by day, or those that were looked for."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from conch.chat.finding import found
from conch.copy.clock import MONTHS, Viewer
from conch.models import Conversation

CHATS = 60
Days = list[tuple[str, list[Conversation]]]


def chats_of(person_id: int) -> QuerySet[Conversation]:
    """The person's chats, the latest first; temporary ones aren't listed."""
    mine = Conversation.objects.filter(person_id=person_id, deleted_at=None, temporary=False)
    return mine.order_by("-updated_at", "-pk")


def listed(person_id: int, viewer: Viewer, q: str = "", *, within: int | None = None) -> dict[str, Any]:
    """The newest chats by day; with `q` those that have these words in their title or in what was said instead.

    `within`: the chat that is open; what is new in it is being read.
    """
    chats = chats_of(person_id)
    return {
        "days": [] if q else by_day(chats[:CHATS], viewer),
        "found": found(chats, q) if q else [],
        "q": q,
        "unread": chats.filter(unread=True).exclude(pk=within or 0).count(),
    }


def by_day(chats: Iterable[Conversation], viewer: Viewer) -> Days:
    """Chats under "Today", "Yesterday", "This week", their month."""
    days: Days = []
    today = viewer.now.astimezone(viewer.zone).date()
    for chat in chats:
        day = _day(chat.updated_at, today, viewer)
        if not days or days[-1][0] != day:
            days.append((day, []))
        days[-1][1].append(chat)
    return days


def _day(at: datetime, today: date, viewer: Viewer) -> str:
    day = at.astimezone(viewer.zone).date()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return "This week"
    return MONTHS[day.month - 1] if day.year == today.year else f"{MONTHS[day.month - 1]} {day.year}"
