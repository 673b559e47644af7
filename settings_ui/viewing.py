"""Who looks at a page, and when; and the frame that every settings page has around it."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest as DjangoRequest
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django_htmx.middleware import HtmxDetails

from conch.accounts.zones import preferences_of
from conch.chat.viewer import viewer_of
from conch.copy.clock import Viewer
from conch.models import Person, Preferences


class HttpRequest(DjangoRequest):
    """A request that has been through htmx's middleware."""

    htmx: HtmxDetails


NAV = (
    ("/settings/you", "person", "You"),
    ("/settings/providers", "plug", "Providers"),
    ("/settings/usage", "coins", "Budget and spending"),
    ("/settings/agents", "agent", "Agents"),
    ("/settings/tasks", "tasks", "Tasks"),
    ("/settings/tools", "wrench", "Tools"),
    ("/settings/computer", "chip", "This computer"),
)
STAFF_NAV = ("/admin/", "gear", "Admin")


@dataclass(frozen=True, slots=True)
class Visit:
    """The signed-in person, their preferences, and how they read times."""

    person: Person
    preferences: Preferences
    viewer: Viewer


def visit(request: HttpRequest) -> Visit:
    """What a view needs to know of its request, in at most one query; nobody unsigned gets this far."""
    assert request.user.is_authenticated
    preferences = preferences_of(request.user)
    return Visit(request.user, preferences, viewer_of(preferences, timezone.now()))


def page(
    request: HttpRequest, template: str, context: dict[str, Any], *, current: str, status: int = 200
) -> HttpResponse:
    """One settings page within the frame; `current`: the address in the navigation that it belongs to."""
    items = [*NAV, STAFF_NAV] if getattr(request.user, "is_staff", False) else [*NAV]
    nav = [{"url": url, "icon": icon, "text": text, "current": url == current} for url, icon, text in items]
    return render(request, f"settings_ui/{template}", context | {"settings_nav": nav}, status=status)
