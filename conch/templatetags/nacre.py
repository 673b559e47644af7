"""Small parts of a page as tags: icons, room meters, engines' badges, times in the reader's zone."""

import zlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from conch.copy.clock import Viewer, full, moment
from conch.engines.base import Billing
from conch.engines.registry import UnknownEngine, engine

register = template.Library()

# Tints of the badges of plans; which one an engine has follows from its id, so that no list of engines is kept here.
TINTS = 5


@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, size: int = 18, extra: str = "") -> SafeString:
    """An icon of the sprite, hidden from screen readers: its button carries the name."""
    return format_html(
        '<svg class="{}" width="{}" height="{}" aria-hidden="true"><use href="{}#{}"/></svg>',
        extra or "i",
        size,
        size,
        static("conch/icons.svg"),
        name,
    )


@register.simple_tag
def meter(percent_left: float | None) -> SafeString:
    """A bar of what is left, 0–100; nothing where it isn't known. Its figure is said in text beside it."""
    if percent_left is None:
        return mark_safe("")
    width = max(0, min(100, round(percent_left)))
    return format_html(
        '<svg class="meter" viewBox="0 0 100 5" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="t" width="100" height="5"/><rect class="f" width="{}" height="5"/></svg>',
        width,
    )


@register.simple_tag
def mark(engine_id: str) -> SafeString:
    """The two-letter badge of an engine; a chip for the model on this computer."""
    try:
        known = engine(engine_id)
    except (UnknownEngine, ImportError, AttributeError):
        return format_html('<span class="mark" aria-hidden="true">{}</span>', engine_id[:2].title())
    if known.billing is Billing.LOCAL:
        return format_html('<span class="mark t-local" aria-hidden="true">{}</span>', icon("chip", 14))
    tint = f" t-{zlib.crc32(engine_id.encode()) % TINTS}" if known.billing is Billing.PLAN else ""
    return format_html('<span class="mark{}" aria-hidden="true">{}</span>', tint, known.monogram)


@register.simple_tag(takes_context=True)
def when(context: dict[str, Any], at: datetime | None) -> SafeString:
    """A time as said in a sentence, machine-readable, with the whole of it as a title."""
    if at is None:
        return mark_safe("")
    viewer = context.get("viewer") or Viewer(now=datetime.now(UTC))
    return timed(at, viewer)


def timed(at: datetime, viewer: Viewer) -> SafeString:
    """The same as HTML for code that has a viewer at hand."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        full(at, viewer),
        moment(at, viewer),
    )
