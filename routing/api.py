"""The FallbackPlan of doors.md: what GET /api/fallback answers with."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from conch.copy import choices as words
from conch.copy.clock import UTC, Viewer
from conch.models import Person, Preferences
from conch.money import plain
from routing.known import question_for_settings
from routing.outcome import Limit, ModelRef
from routing.plan import Plan, PlanChoice, PlanLocal, plan

NO_MODEL_YET = "The model on this computer"  # asked for a chat of it before there is one to name


def fallback_plan(person: Person, engine: str, conversation_id: int | None, now: datetime) -> dict[str, Any]:
    """What happens when that account reaches its limit, as JSON: times ISO 8601 UTC, money decimal strings.

    `engine` is an account's slug, or "local". Raises LookupError where the person has no such account or conversation.
    """
    known = plan(question_for_settings(person.pk, engine, conversation_id, now), now)
    return as_json(known, _viewer(person.pk, now))


def _viewer(person_id: int, now: datetime) -> Viewer:
    row = Preferences.objects.filter(pk=person_id).values_list("time_zone", "hour_cycle").first()
    zone, cycle = row or ("", "")
    try:
        return Viewer(now, ZoneInfo(zone) if zone else UTC, cycle)
    except (ZoneInfoNotFoundError, ValueError):
        return Viewer(now, UTC, cycle)


def as_json(known: Plan, viewer: Viewer) -> dict[str, Any]:
    """A plan with its sentences, for that viewer."""
    return {
        "engine": known.engine,
        "label": known.label or NO_MODEL_YET,
        "limit": _limit(known.limit),
        "preference": known.preference,
        "answers": known.answers,
        "choices": [_choice(choice, known, viewer) for choice in known.choices],
        "local": _local(known.local),
        "wait": {"until": _iso(known.until)},
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {"at": limit.at, "until": _iso(limit.until), "reason": limit.reason}


def _choice(choice: PlanChoice, known: Plan, viewer: Viewer) -> dict[str, Any]:
    skip = choice.skip
    return {
        "id": choice.id,
        "label": choice.label,
        "kind": choice.kind,
        "ways": list(choice.ways),
        "account": choice.account,
        "answers_by": choice.answers_by,
        "model": _model(choice.model),
        "room": {
            "state": choice.room.state,
            "percent_left": choice.room.percent_left,
            "resets_at": _iso(choice.room.resets_at),
            "window": choice.room.window,
        },
        "per_reply": None if choice.per_reply is None else plain(choice.per_reply),
        "skip": None if skip is None else {"code": skip.code, "text": words.in_the_order(choice, viewer)},
        "facts": words.facts_text(choice, known, viewer),
    }


def _local(local: PlanLocal) -> dict[str, Any]:
    skip = None if local.skip is None else {"code": local.skip.code, "text": words.local_skip_text(local)}
    return {"account": "local", "model": _model(local.model), "allowed": local.allowed, "skip": skip}


def _model(model: ModelRef) -> dict[str, str]:
    return {"id": model.id, "label": model.label}


def _iso(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"
