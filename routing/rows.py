"""What the route reads, as plain values: one query each, bounded by what one person has (R10, R28)."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from conch.models import Ability, Account, Conversation, Line, MonthTotal, Preferences, Refusal, Turn, Window
from routing import facts
from routing.facts import LastRoute
from routing.prepared import MOMENT, NUMBER, OTHER_NUMBER, WORD, Prepared

# As many of a chat's latest answers are looked at for the model that each account last answered with (R12).
LATEST_ANSWERS = 200
# Beyond every id.
LAST = 2**62
ROUTED, RETURNED = "limit.routed", "limit.returned"

CHAT = (
    "pk",
    "person_id",
    "account",
    "model",
    "waits_until",
    "stayed_from",
    "stayed_from_model",
    "stayed_consent",
    "spend_cap_nano",
    "spent_nano",
    "held_nano",
    "tools",
)
ACCOUNT = (
    "pk",
    "slug",
    "engine",
    "label",
    "identity",
    "whose",
    "plan",
    "organization",
    "key_hint",
    "model",
    "state",
    "carries_on",
    "own_limit_nano",
    "key_cap_nano",
    "key_left_nano",
    "key_resets_at",
    "attempt_allowed_at",
    "removed_at",
)
PREFERENCES = (
    "limit_fallback",
    "limit_order",
    "limit_return",
    "limit_paid",
    "offline_fallback",
    "month_budget_nano",
    "time_zone",
    "budget_zone",
    "budget_month",
)


class ChatRow(NamedTuple):
    """A conversation, by the columns of CHAT."""

    pk: int
    person_id: int
    account: str
    model: str
    waits_until: datetime | None
    stayed_from: str
    stayed_from_model: str
    stayed_consent: str
    spend_cap_nano: int | None
    spent_nano: int
    held_nano: int
    tools: list[str]


class AccountRow(NamedTuple):
    """An account, by the columns of ACCOUNT; `listed` is its list of models as JSON text."""

    pk: int
    slug: str
    engine: str
    label: str
    identity: str
    whose: str
    plan: str
    organization: str
    key_hint: str
    model: str
    state: str
    carries_on: bool
    own_limit_nano: int | None
    key_cap_nano: int | None
    key_left_nano: int | None
    key_resets_at: datetime | None
    attempt_allowed_at: datetime | None
    removed_at: datetime | None
    listed: str


class AbilityRow(NamedTuple):
    """What was learned of a model of an account, or set for it by the person; None: nothing (R9)."""

    tools: bool | None = None
    images: bool | None = None
    fits: int | None = None
    tools_set: bool | None = None
    images_set: bool | None = None
    context_set: int | None = None
    ratio: float | None = None


UNTOLD = AbilityRow()


class PreferencesRow(NamedTuple):
    """A person's preferences, by the columns of PREFERENCES."""

    limit_fallback: str
    limit_order: Any
    limit_return: bool
    limit_paid: bool
    offline_fallback: bool | None
    month_budget_nano: int | None
    time_zone: str
    budget_zone: str
    budget_month: str


UNSET = PreferencesRow(facts.AUTO, [], True, False, None, None, "", "", "")


_turns_chat = Prepared(
    lambda turn: Turn.objects.filter(pk=turn).values_list(*[f"conversation__{name}" for name in CHAT]), NUMBER
)
_chat = Prepared(
    lambda person, chat: Conversation.objects.filter(pk=chat, person_id=person, deleted_at=None).values_list(*CHAT),
    NUMBER,
    OTHER_NUMBER,
)
_preferences = Prepared(lambda person: Preferences.objects.filter(pk=person).values_list(*PREFERENCES), NUMBER)
_accounts = Prepared(
    lambda person, own: (
        Account.objects.filter(Q(removed_at=None) | Q(slug=own), person_id=person)
        .annotate(listed=Cast("known_models", TextField()))
        .order_by("connected_at", "pk")
        .values_list(*ACCOUNT, "listed")
    ),
    NUMBER,
    WORD,
)
_abilities = Prepared(
    lambda person: Ability.objects.filter(account__person_id=person, account__removed_at=None).values_list(
        "account_id", "model", *AbilityRow._fields
    ),
    NUMBER,
)
_windows = Prepared(
    lambda person: (
        Window.objects.filter(account__person_id=person, account__removed_at=None)
        .order_by("pk")
        .values_list("account_id", "name", "used_percent", "resets_at", "covers", "length_minutes", "read_at")
    ),
    NUMBER,
)
_refusals = Prepared(
    lambda person, now: (
        Refusal.objects.filter(account__person_id=person, account__removed_at=None, retry_at__gt=now)
        .order_by("pk")
        .values_list("account_id", "kind", "at", "retry_at", "until", "model", "reason", "before")
    ),
    NUMBER,
    MOMENT,
)
_totals = Prepared(
    lambda person, month: MonthTotal.objects.filter(person_id=person, month=month).values_list(
        "account", "spent_nano", "held_nano"
    ),
    NUMBER,
    WORD,
)
_answered = Prepared(
    lambda chat, before: (
        Turn.objects.filter(conversation_id=chat, pk__lt=before, state=Turn.State.DONE, replaced_by=None)
        .order_by("-pk")
        .values_list("account", "model")[:LATEST_ANSWERS]
    ),
    NUMBER,
    OTHER_NUMBER,
)
_last_line = Prepared(
    lambda chat: (
        Line.objects.filter(conversation_id=chat, kind__in=[ROUTED, RETURNED], turn__replaced_by=None)
        .order_by("-pk")
        .values_list("kind", "data")[:1]
    ),
    NUMBER,
)


def chat_of_turn(turn_id: int) -> ChatRow | None:
    """The conversation of a turn."""
    row = _turns_chat.row(turn_id)
    return None if row is None else ChatRow(*row)


def chat_as_read(conversation: Conversation) -> ChatRow:
    """A conversation that is at hand."""
    return ChatRow(*[getattr(conversation, name) for name in CHAT])


def chat_of(person_id: int, conversation_id: int) -> ChatRow | None:
    """A conversation of that person's."""
    row = _chat.row(person_id, conversation_id)
    return None if row is None else ChatRow(*row)


def preferences_of(person_id: int) -> PreferencesRow:
    """The person's preferences; what holds where nothing was ever set."""
    row = _preferences.row(person_id)
    return UNSET if row is None else PreferencesRow(*row)


def strings(order: Any) -> tuple[str, ...]:
    """The strings of a JSON list; what isn't one says nothing."""
    return tuple(slug for slug in order if isinstance(slug, str)) if isinstance(order, list) else ()


def accounts_of(person_id: int, own: str) -> list[AccountRow]:
    """The connected accounts in the order they were connected, and the one asked for also where it is gone."""
    return [AccountRow(*row) for row in _accounts.rows(person_id, own)]


def abilities_of(person_id: int) -> dict[tuple[int, str], AbilityRow]:
    """Account id and model → what was learned of it or set for it."""
    return {(account, model): AbilityRow(*row) for account, model, *row in _abilities.rows(person_id)}


def windows_of(person_id: int) -> dict[int, tuple[facts.Window, ...]]:
    """Account id → its windows, as last read."""
    found: dict[int, tuple[facts.Window, ...]] = {}
    for account, name, used, resets_at, covers, length, read_at in _windows.rows(person_id):
        window = facts.Window(name, used, resets_at, strings(covers), length, read_at)
        found[account] = (*found.get(account, ()), window)
    return found


def refusals_of(person_id: int, now: datetime) -> dict[int, tuple[facts.Refusal, ...]]:
    """Account id → the refusals that still pass it over (R8)."""
    found: dict[int, tuple[facts.Refusal, ...]] = {}
    for account, kind, at, retry_at, until, model, reason, before in _refusals.rows(person_id, now):
        refusal = facts.Refusal(kind, at, retry_at, until, model, reason, tuple(_before(before)))
        found[account] = (*found.get(account, ()), refusal)
    return found


def _before(readings: Any) -> Iterable[facts.Window]:
    """The windows as they were read before a refusal, as the refusal keeps them."""
    for reading in readings if isinstance(readings, list) else ():
        if isinstance(reading, dict) and isinstance(reading.get("name"), str):
            resets_at = instant(reading.get("resets_at"))
            yield facts.Window(reading["name"], reading.get("used_percent"), resets_at)


def instant(said: Any) -> datetime | None:
    """A time as kept in JSON (without a zone: UTC); None where it is none."""
    try:
        at = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def totals_of(person_id: int, month: str) -> dict[str, tuple[int, int]]:
    """Account slug ("" for all) → what the month has spent and holds, in nanodollars."""
    return {slug: (spent, held) for slug, spent, held in _totals.rows(person_id, month)}


def answered_in(conversation_id: int, before: int | None) -> list[tuple[str, str]]:
    """(account, model) of the chat's latest answers, newest first."""
    return [(account, model) for account, model in _answered.rows(conversation_id, before or LAST)]


def last_route_of(conversation_id: int) -> LastRoute | None:
    """The chat's latest routed line, unless its account came back since (R20, R22)."""
    row = _last_line.row(conversation_id)
    if row is None or row[0] != ROUTED:
        return None
    data: Mapping[str, Any] = row[1]
    folded, once = data.get("folded") is not None, data.get("by") == "once"
    return LastRoute(str(data.get("from", "")), str(data.get("to", "")), instant(data.get("until")), folded, once)
