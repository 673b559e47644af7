"""Accounts as the API shows them, with what is known of their room."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from conch.accounts.defaults import LOCAL, billing_of, connected
from conch.api.presented import time, usd
from conch.engines import local_models
from conch.engines.registry import UnknownEngine, engine
from conch.models import Account, Refusal, Window
from conch.turns.errors import NotHere
from routing.facts import Question, Way
from routing.known import question_for_settings
from routing.room import room_of

NO_ROOM_KNOWN = {"state": "unknown", "percent_left": None, "resets_at": None, "window": None}


def accounts_json(person_id: int, now: datetime) -> list[dict[str, Any]]:
    """Every account in the order it was connected, then `local`; a fixed number of queries."""
    accounts = connected(person_id)
    question = question_for_settings(person_id, LOCAL, None, now)
    ways = {way.slug: way for way in question.ways}
    windows = _by_account(Window.objects.filter(account__in=accounts).order_by("pk"))
    refusals = _by_account(Refusal.objects.filter(account__in=accounts, retry_at__gt=now))
    shown = [
        _account(
            account,
            _room(ways.get(account.slug), question, now),
            windows.get(account.pk, ()),
            refusals.get(account.pk, ()),
        )
        for account in accounts
    ]
    return [*shown, _local(question)]


def account_json(person_id: int, slug: str, now: datetime) -> dict[str, Any]:
    """One of them. Raises NotHere."""
    for account in accounts_json(person_id, now):
        if account["slug"] == slug:
            return account
    raise NotHere


def _by_account(rows: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.account_id, []).append(row)
    return found


def _room(way: Way | None, question: Question, now: datetime) -> Mapping[str, Any]:
    """The room of one way, with the refusals of its twins left to the picker."""
    if way is None:
        return NO_ROOM_KNOWN
    room = room_of(way, way.windows, way.refusals, question.budget, now=now, smallest=way.smallest)
    return {
        "state": room.state,
        "percent_left": room.percent_left,
        "resets_at": time(room.resets_at),
        "window": room.window,
    }


def _account(
    account: Account, room: Mapping[str, Any], windows: Sequence[Window], refusals: Sequence[Refusal]
) -> dict[str, Any]:
    return {
        "slug": account.slug,
        "engine": account.engine,
        "label": account.label,
        "identity": account.whose or account.identity or None,
        "kind": billing_of(account.engine),
        "model": account.model,
        "state": account.state,
        "carries_on": account.carries_on,
        "own_limit": usd(account.own_limit_nano),
        "room": dict(room),
        "windows": [
            {
                "name": window.name,
                "used_percent": window.used_percent,
                "resets_at": time(window.resets_at),
                "models": window.covers,
                "read_at": time(window.read_at),
            }
            for window in windows
        ],
        "blocked_until": _passed_over_until(refusals, Refusal.Kind.BLOCKED),
        "refused_until": _passed_over_until(refusals, Refusal.Kind.REFUSED),
        "shares_account": _shares(account.engine),
    }


def _passed_over_until(refusals: Sequence[Refusal], kind: str) -> str | None:
    """When the whole account is asked again: the provider's reset, else when Conch tries it."""
    whole = [refusal for refusal in refusals if refusal.kind == kind and not refusal.model]
    return time(max((refusal.until or refusal.retry_at for refusal in whole), default=None))


def _shares(engine_id: str) -> str:
    try:
        return engine(engine_id).shares_account
    except (UnknownEngine, ImportError, AttributeError):
        return engine_id


def _local(question: Question) -> dict[str, Any]:
    known = local_models.facts(local_models.setup())
    state = "ok" if question.local.present else "unreachable"
    return {
        "slug": LOCAL,
        "engine": LOCAL,
        "label": question.local.model.label or known.label or "The model on this computer",
        "identity": None,
        "kind": LOCAL,
        "model": question.local.model.id or known.model_id,
        "state": state,
        "carries_on": question.preferences.offline_fallback,
        "own_limit": None,
        "room": dict(NO_ROOM_KNOWN) | {"state": "ok" if question.local.present else "none"},
        "windows": [],
        "blocked_until": None,
        "refused_until": None,
        "shares_account": LOCAL,
    }
