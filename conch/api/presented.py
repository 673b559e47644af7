"""Rows as the API shows them (doors.md): times ISO 8601 in UTC, money as decimal strings, never a secret."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from conch.accounts.defaults import billing_of, start_of
from conch.accounts.zones import UTC as UTC_ZONE
from conch.accounts.zones import zone_of_name
from conch.copy import lines as copy_lines
from conch.copy.clock import Viewer
from conch.engines import local_models
from conch.engines.base import Billing
from conch.models import Account, Attempt, Conversation, Line, Preferences, ToolCall, Turn
from conch.money import from_nano, plain
from conch.turns.calls import facts_of

LOCAL = "local"
FREE = (Billing.PLAN, Billing.LOCAL)


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: how they see times, and how each of their accounts is paid, those that are gone too."""

    viewer: Viewer
    billing: Mapping[str, Billing] = field(default_factory=dict)


def reader_of(person_id: int, now: datetime) -> Reader:
    """That person as a reader; two queries."""
    row = Preferences.objects.filter(pk=person_id).values_list("time_zone", "hour_cycle").first()
    zone, cycle = row or ("", "")
    engines = Account.objects.filter(person_id=person_id).values_list("slug", "engine")
    billing = {slug: billing_of(engine) for slug, engine in engines} | {LOCAL: Billing.LOCAL}
    return Reader(Viewer(now, zone_of_name(zone) if zone else UTC_ZONE, cycle), billing)


def time(at: datetime | None) -> str | None:
    """An instant: "2026-10-09T16:00:00Z", with its fraction of a second where it has one."""
    if at is None:
        return None
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def usd(nano: int | None) -> str | None:
    """Nanodollars as a decimal string; unknown stays null."""
    return None if nano is None else plain(from_nano(nano))


def cost(nano: int | None, account: str, reader: Reader) -> str | None:
    """What a turn or attempt cost: "0" for plans and the model on this computer, null where it isn't known."""
    if nano is None and reader.billing.get(account) in FREE:
        return "0"
    return usd(nano)


def conversation_json(conversation: Conversation) -> dict[str, Any]:
    """A chat without its turns and lines."""
    return {
        "id": conversation.pk,
        "title": conversation.title,
        "account": conversation.account,
        "model": conversation.model,
        "agent": conversation.agent,
        "tools": conversation.tools,
        "spend_cap": usd(conversation.spend_cap_nano),
        "spent": usd(conversation.spent_nano),
        "waits_until": time(conversation.waits_until),
        "created_at": time(conversation.created_at),
        "updated_at": time(conversation.updated_at),
    }


def turn_json(
    turn: Turn, attempts: Iterable[Attempt], reader: Reader, *, calls: Iterable[ToolCall] = ()
) -> dict[str, Any]:
    """A turn with every attempt made and every call of a tool. `answer` is what has arrived so far."""
    failed = {"code": turn.failure_code, "text": copy_lines.failure_text(turn.failure, reader.viewer)}
    return {
        "id": turn.pk,
        "state": turn.state,
        "text": turn.text,
        "answer": turn.answer,
        "account": turn.account or None,
        "model": turn.model or None,
        "input_tokens": turn.input_tokens,
        "output_tokens": turn.output_tokens,
        "cost": cost(turn.cost_nano, turn.account, reader),
        "created_at": time(turn.created_at),
        "ended_at": time(turn.ended_at),
        "until": time(turn.until),
        "failure": failed if turn.failure_code else None,
        "replaced_by": turn.replaced_by_id,
        "attempts": [_attempt(attempt, reader) for attempt in attempts],
        "calls": [facts_of(call) for call in calls],
    }


def _attempt(attempt: Attempt, reader: Reader) -> dict[str, Any]:
    refusal = {"kind": attempt.refusal_kind, "until": time(attempt.refusal_until)} if attempt.refusal_kind else None
    return {
        "account": attempt.account,
        "model": attempt.model,
        "state": attempt.state,
        "refusal": refusal,
        "partial": attempt.partial,
        "cost": cost(attempt.cost_nano, attempt.account, reader),
        "consent": attempt.consent or None,
    }


def line_json(line: Line, viewer: Viewer) -> dict[str, Any]:
    """A line, in words for that reader, with its facts."""
    return {
        "id": line.pk,
        "turn": line.turn_id,
        "kind": line.kind,
        "text": copy_lines.text(line.kind, line.data, viewer),
        "data": line.data,
        "at": time(line.at),
    }


def preferences_json(preferences: Preferences, accounts: Sequence[Account]) -> dict[str, Any]:
    """The preferences by their names; what the person never set is shown as what holds."""
    start = start_of(preferences, accounts)
    offline = preferences.offline_fallback
    if offline is None:
        offline = local_models.facts(local_models.setup()).own
    return {
        "default_account": preferences.default_account or start.account,
        "default_model": preferences.default_model or (start.model if not preferences.default_account else ""),
        "limit_fallback": preferences.limit_fallback,
        "limit_order": preferences.limit_order,
        "limit_return": preferences.limit_return,
        "limit_paid": preferences.limit_paid,
        "offline_fallback": offline,
        "month_budget": usd(preferences.month_budget_nano),
        "time_zone": preferences.time_zone or "UTC",
        "hour_cycle": preferences.hour_cycle or None,
    }


def amount(value: Decimal | None) -> str | None:
    """USD as a decimal string."""
    return None if value is None else plain(value)
