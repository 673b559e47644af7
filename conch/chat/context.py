"""What every page shows around its own content."""

from typing import Any

from django.http import HttpRequest


def shell(request: HttpRequest) -> dict[str, Any]:
    """Template context for the frame of a page (sidebar, room left, theme)."""
    return {}
