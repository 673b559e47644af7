"""Where a person is signed in: their sessions, with the browser that each began in, and a link for another device.

A session's key signs in whoever has it, so pages name a session by a digest of its key.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import segno
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from conch.models import Person

BEGAN, BROWSER = "began_at", "browser"
# Sessions are looked through, since Django's table doesn't say whose they are; a Conch has some dozens.
MOST_SESSIONS = 5000


@dataclass(frozen=True, slots=True)
class Device:
    """One session: the browser it began in, as that calls itself, when, and whether it is this one."""

    name: str
    browser: str
    began_at: datetime | None
    here: bool


def remember_browser(sender: object, request: HttpRequest, user: object, **_kwargs: object) -> None:  # noqa: ARG001  a signal's receiver
    """Keep with a session that begins which browser it is in, and when (Django's signal `user_logged_in`)."""
    request.session[BROWSER] = request.headers.get("User-Agent", "")[:300]
    request.session[BEGAN] = timezone.now().isoformat()


def devices(person: Person, session_key: str | None, now: datetime) -> list[Device]:
    """The person's sessions that still hold, this one first. One query."""
    found = [
        Device(
            name=named(key),
            browser=browser(str(data.get(BROWSER, ""))),
            began_at=datetime.fromisoformat(data[BEGAN]) if BEGAN in data else None,
            here=key == session_key,
        )
        for key, data in _of(person, now)
    ]
    return sorted(found, key=lambda device: (not device.here, -(device.began_at or now).timestamp()))


def end(person: Person, name: str, now: datetime) -> bool:
    """End the person's session of that name; False where there is none."""
    keys = [key for key, _ in _of(person, now) if named(key) == name]
    return bool(keys) and Session.objects.filter(session_key__in=keys).delete()[0] > 0


def end_others(person: Person, session_key: str | None, now: datetime) -> int:
    """End all of the person's sessions but this one; how many."""
    keys = [key for key, _ in _of(person, now) if key != session_key]
    return Session.objects.filter(session_key__in=keys).delete()[0]


def named(session_key: str) -> str:
    """What a page calls a session."""
    return sha256(session_key.encode()).hexdigest()[:20]


def _of(person: Person, now: datetime) -> Iterator[tuple[str, dict[str, Any]]]:
    for session in Session.objects.filter(expire_date__gt=now).order_by("-expire_date")[:MOST_SESSIONS]:
        data = session.get_decoded()
        if data.get(SESSION_KEY) == str(person.pk):
            yield session.session_key, data


def browser(agent: str) -> str:
    """The browser and the system in a user agent's words, as far as they are known."""
    browsers = (
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    )
    systems = (
        *(("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows")),
        *(("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux")),
    )
    which = next((name for mark, name in browsers if mark in agent), "")
    where = next((name for mark, name in systems if mark in agent), "")
    return " on ".join(part for part in (which, where) if part) or "A browser"


def qr(link: str) -> str:
    """The link as a QR code: an SVG without styles, black on white."""
    code: str = segno.make(link, error="m").svg_inline(scale=5, border=2, dark="#000", light="#fff", svgclass="qr")
    return code
