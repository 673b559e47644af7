"""The page of components, each in every state: what the screenshots and the accessibility checks run over."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from conch.chat import nacre_chat
from conch.chat.answers import person_of, viewer
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


@require_GET
def nacre(request: HttpRequest) -> HttpResponse:
    """Every component; for staff, and where Conch is being worked on."""
    if not (settings.DEBUG or person_of(request).is_staff):
        raise Http404
    sections = [
        (name, [_shown(said, f"{name}-{place}") for place, said in enumerate(lines)]) for name, lines in _lines(request)
    ]
    say, state = _Say(request), request.GET.get("box", "idle")
    given = {"sections": sections, "rooms": nacre_chat.ROOMS, "steps": STEPS, "boxes": nacre_chat.BOXES, "state": state}
    shown = {"turns": list(nacre_chat.turns(_of_messages(say))), "edited": nacre_chat.edited()}
    return render(request, "nacre/every.html", given | shown | nacre_chat.listed() | nacre_chat.box(state))


def _of_messages(say: "_Say") -> dict[str, Said]:
    """The lines that the messages of the page stand with."""
    return {
        "carried": say.routed(),
        "extra": say.other("limit.extra", label="Claude Code", cost="0.12"),
        "waits": say.waiting("chosen", could=PLAN_OFFER),
        "cut": say.failed("cut"),
        "held": say.failed("held", until=say.at[0]),
    }


def _shown(said: Said, name: str) -> ShownLine:
    slug = name.lower().replace(" ", "-").replace(",", "")
    return ShownLine(slug, said, tuple(Press(button.label, "/nacre", link=True) for button in said.buttons))


class _Say:
    """Lines of every kind, as read now by whoever looks."""

    def __init__(self, request: HttpRequest) -> None:
        self.reader = viewer(request)
        self.at = [(timezone.now() + timedelta(hours=hours)).isoformat() for hours in (2, 1, 20, 60)]
        self.codex = {"label": "Codex", "until": self.at[1], "retry_at": self.at[1], "slug": "two"}

    def routed(self, **more: Any) -> Said:
        facts: dict[str, Any] = {"until": self.at[0], "window": None, "reason": "window", "passed": []}
        return line_said("limit.routed", A | B | facts | {"switch_back": True} | more, self.reader)

    def passed(self, code: str) -> Said:
        return self.routed(to_label="Gemini", passed=[self.codex | {"code": code}])

    def waiting(self, why: str, **more: Any) -> Said:
        return line_said("limit.waiting", {"why": why, "until": self.at[0], "budget": "10"} | A | more, self.reader)

    def other(self, kind: str, **data: Any) -> Said:
        return line_said(kind, data, self.reader)

    def failed(self, code: str, **data: Any) -> Said:
        return failure_said({"code": code, "label": "Claude Code", "model": "Opus 4.8"} | data, self.reader)


def _lines(request: HttpRequest) -> list[tuple[str, list[Said]]]:
    say = _Say(request)
    return [
        ("Carried on", _carried_on(say)),
        ("Switched back, stayed, came back", _quiet(say)),
        ("Waiting", _waiting(say)),
        ("Stopped", _stopped(say)),
    ]


def _carried_on(say: _Say) -> list[Said]:
    return [
        say.routed(),
        say.routed(window="weekly", until=say.at[3]),
        say.routed(to_label="Codex · ada@work.example"),
        say.routed(until=None),
        say.routed(**KEY, until=say.at[2]),
        say.routed(**KEY | {"per_reply": None, "unpriced": True}),
        say.routed(**LOCAL),
        say.passed("at_limit"),
        say.passed("refused"),
        say.passed("signed_out"),
    ]


def _quiet(say: _Say) -> list[Said]:
    return [
        say.routed(folded={"until": say.at[0]}),
        say.routed(stayed=True),
        say.other("limit.returned", label="Claude Code"),
        say.other("limit.unstayed", key_label="OpenRouter", label="Claude Code"),
        say.other("handoff.shortened", label="Codex", messages=38),
        say.other("handoff.images", label="Codex"),
        say.other("limit.sent", at=say.at[0], late=True),
        say.other("offline.routed", label="SmolLM2 135M"),
        say.other("limit.extra", label="Claude Code", cost="0.12"),
    ]


def _waiting(say: _Say) -> list[Said]:
    gemini = PLAN_OFFER | {"label": "Gemini"}
    return [
        say.waiting("chosen", could=PLAN_OFFER),
        say.waiting("room", next=say.codex, local={"label": "SmolLM2 135M"}),
        say.waiting("only_keys", could=KEY_OFFER),
        say.waiting("no_reset", until=None, tries_at=say.at[1]),
        say.waiting("tools", could=PLAN_OFFER),
        say.waiting("budget"),
        say.waiting("holds"),
        say.waiting("needs_budget", could=KEY_OFFER),
        say.waiting("pick_is_limit", could=PLAN_OFFER),
        say.waiting("pick_gone", could=PLAN_OFFER, pick=gemini),
        say.waiting("pick_no_room", could=KEY_OFFER, pick=gemini),
        say.waiting("signed_out", next=say.codex),
        say.waiting("offline"),
    ]


def _stopped(say: _Say) -> list[Said]:
    here = {"slug": "local", "label": "SmolLM2 135M", "billing": "local"}
    return [
        say.other("limit.capped", cap="2", raise_to="4", spent="1.98"),
        say.failed("no_room", reason="budget", budget="10", offers=[]),
        say.failed("no_room", until=say.at[3], offers=[here]),
        say.failed("signed_out", offers=[KEY_OFFER]),
        say.failed("no_account", offers=[PLAN_OFFER]),
        say.failed("unreachable", offers=[PLAN_OFFER]),
        say.failed("offline"),
        say.failed("interrupted", charged=True),
        say.failed("cut"),
        say.failed("cut", arrived=False, charged=True),
        say.failed("held", until=say.at[0]),
        say.failed("provider_error", said="The server had an error while processing your request"),
        say.failed("cannot_carry_images", offers=[PLAN_OFFER]),
        say.failed("too_long", offers=[PLAN_OFFER]),
    ]
