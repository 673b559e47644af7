"""What every page shows around its own content."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from conch.chat.viewer import viewer_of
from conch.models import Preferences


def preferences_of(request: HttpRequest) -> Preferences | None:
    """The reader's preferences, read once a request; None for somebody who isn't signed in."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    return Preferences.objects.get_or_create(person=user)[0]


def shell(request: HttpRequest) -> dict[str, Any]:
    """Template context for the frame of a page (theme, shortcuts, the mark of a demonstration, how times are read)."""
    preferences = preferences_of(request)
    return {
        "viewer": viewer_of(preferences, timezone.now()),
        "theme": preferences.theme if preferences else "",
        "shortcuts": preferences.shortcuts if preferences else True,
        "simulated": settings.CONCH_SIMULATED,
    }
