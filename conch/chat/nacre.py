"""The page of components, each in every state: what the screenshots and the accessibility checks run over."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from conch.chat.answers import person_of, viewer
from conch.chat.composing import RoomLeft
from conch.chat.pressing import Press
from conch.chat.shown import ShownLine
from conch.copy.failures import failure_said
from conch.copy.lines import line_said
from conch.copy.sentences import Said

A = {"from": "one", "from_label": "Claude Code", "from_model": "opus", "from_model_label": "Opus 4.8"}
B = {"to": "two", "to_label": "Codex", "to_model": "gpt-5.5", "to_model_label": "GPT-5.5", "to_billing": "plan"}
KEY = {"to": "key", "to_label": "OpenRouter", "to_billing": "key", "per_reply": "0.021", "month_left": "6.9"}
LOCAL = {"to": "local", "to_label": "SmolLM2 135M", "to_model_label": "SmolLM2 135M", "to_billing": "local"}
PLAN_OFFER = {"slug": "two", "label": "Codex", "billing": "plan", "per_reply": None}
KEY_OFFER = {"slug": "key", "label": "OpenRouter", "billing": "key", "per_reply": "0.021"}
STEPS = ("Searched the project for “created_at”, 14 files", "Read models/order.py", "Ran EXPLAIN on the slow query")
ROOMS = (
    RoomLeft("Claude Code", "until 6:00 PM", 0, "none"),
    RoomLeft("Codex", "72%", 72, ""),
    RoomLeft("Codex · ada@home.example", "6%", 6, "low"),
    RoomLeft("Reset since", "resets now", None, ""),
)


@require_GET
def nacre(request: HttpRequest) -> HttpResponse:
    """Every component; for staff, and where Conch is being worked on."""
    if not (settings.DEBUG or person_of(request).is_staff):
        raise Http404
    sections = [
        (name, [_shown(said, f"{name}-{place}") for place, said in enumerate(lines)]) for name, lines in _lines(request)
    ]
    return render(request, "nacre/every.html", {"sections": sections, "rooms": ROOMS, "steps": STEPS})


def _shown(said: Said, name: str) -> ShownLine:
    slug = name.lower().replace(" ", "-").replace(",", "")
    return ShownLine(slug, said, tuple(Press(button.label, "/nacre", link=True) for button in said.buttons))


def _lines(request: HttpRequest) -> list[tuple[str, list[Said]]]:
    now = timezone.now()
    reader = viewer(request)
    at = [(now + timedelta(hours=hours)).isoformat() for hours in (2, 1, 20, 60)]

    def routed(**more: Any) -> Said:
        facts: dict[str, Any] = {"until": at[0], "window": None, "reason": "window", "passed": [], "switch_back": True}
        return line_said("limit.routed", A | B | facts | more, reader)

    def waiting(why: str, **more: Any) -> Said:
        return line_said("limit.waiting", {"why": why, "until": at[0], "budget": "10"} | A | more, reader)

    def other(kind: str, **data: Any) -> Said:
        return line_said(kind, data, reader)

    def failed(code: str, **data: Any) -> Said:
        return failure_said({"code": code, "label": "Claude Code", "model": "Opus 4.8"} | data, reader)

    codex = {"label": "Codex", "until": at[1], "retry_at": at[1], "slug": "two"}
    return [
        (
            "Carried on",
            [
                routed(),
                routed(window="weekly", until=at[3]),
                routed(to_label="Codex · ada@work.example"),
                routed(until=None),
                routed(**KEY, until=at[2]),
                routed(**KEY | {"per_reply": None, "unpriced": True}),
                routed(**LOCAL),
                routed(to_label="Gemini", passed=[codex | {"code": "at_limit"}]),
                routed(to_label="Gemini", passed=[codex | {"code": "refused"}]),
                routed(to_label="Gemini", passed=[codex | {"code": "signed_out"}]),
            ],
        ),
        (
            "Switched back, stayed, came back",
            [
                routed(folded={"until": at[0]}),
                routed(stayed=True),
                other("limit.returned", label="Claude Code"),
                other("limit.unstayed", key_label="OpenRouter", label="Claude Code"),
                other("handoff.shortened", label="Codex", messages=38),
                other("handoff.images", label="Codex"),
                other("limit.sent", at=at[0], late=True),
                other("offline.routed", label="SmolLM2 135M"),
                other("limit.extra", label="Claude Code", cost="0.12"),
            ],
        ),
        (
            "Waiting",
            [
                waiting("chosen", could=PLAN_OFFER),
                waiting("room", next=codex, local={"label": "SmolLM2 135M"}),
                waiting("only_keys", could=KEY_OFFER),
                waiting("no_reset", until=None, tries_at=at[1]),
                waiting("tools", could=PLAN_OFFER),
                waiting("budget"),
                waiting("holds"),
                waiting("needs_budget", could=KEY_OFFER),
                waiting("pick_is_limit", could=PLAN_OFFER),
                waiting("pick_gone", could=PLAN_OFFER, pick=PLAN_OFFER | {"label": "Gemini"}),
                waiting("pick_no_room", could=KEY_OFFER, pick=PLAN_OFFER | {"label": "Gemini"}),
                waiting("signed_out", next=codex),
                waiting("offline"),
            ],
        ),
        (
            "Stopped",
            [
                other("limit.capped", cap="2", raise_to="4", spent="1.98"),
                failed("no_room", reason="budget", budget=str(Decimal(10)), offers=[]),
                failed("no_room", until=at[3], offers=[{"slug": "local", "label": "SmolLM2 135M", "billing": "local"}]),
                failed("signed_out", offers=[KEY_OFFER]),
                failed("no_account", offers=[PLAN_OFFER]),
                failed("unreachable", offers=[PLAN_OFFER]),
                failed("offline"),
                failed("interrupted", charged=True),
                failed("cut"),
                failed("provider_error", said="The server had an error while processing your request"),
                failed("cannot_carry_images", offers=[PLAN_OFFER]),
                failed("too_long", offers=[PLAN_OFFER]),
            ],
        ),
    ]
