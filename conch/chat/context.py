"""What every page shows around its own content."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from conch.accounts.zones import preferences_of
from conch.chat.viewer import viewer_of
from conch.models import Person


def shell(request: HttpRequest) -> dict[str, Any]:
    """Template context for the frame of a page (theme, shortcuts, the mark of a demonstration, how times are read)."""
    person = getattr(request, "user", None)
    preferences = preferences_of(person) if isinstance(person, Person) else None
    return {
        "viewer": viewer_of(preferences, timezone.now()),
        "theme": preferences.theme if preferences else "",
        "shortcuts": preferences.shortcuts if preferences else True,
        "simulated": settings.CONCH_SIMULATED,
    }
