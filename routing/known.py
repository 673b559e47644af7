"""Rows → facts, in a fixed number of queries, however many accounts, windows, turns or ledger rows there are.

Synchronous: called inside a step, a view or a command. No provider is asked (R10), and the ledger's running totals are
read, never its entries (R28). What hot paths read is read as plain values.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce, Length

from conch.engines import local_models
from conch.engines.base import Billing
from conch.engines.registry import UnknownEngine, engine
from conch.ledger import prices
from conch.ledger.months import month_end, month_of
from conch.models import Account, Turn
from conch.money import NANO
from conch.tools import offered
from routing import facts
from routing.choices import model_that_answers, most_input
from routing.facts import Budget, Chat, Local, Model, Needs, Question, Run, Way
from routing.rows import (
    UNTOLD,
    AbilityRow,
    AccountRow,
    ChatRow,
    abilities_of,
    accounts_of,
    answered_in,
    chat_of,
    chat_of_turn,
    last_route_of,
    preferences_of,
    refusals_of,
    strings,
    totals_of,
    windows_of,
)

TYPICAL_ANSWER = prices.TYPICAL_REPLY[1]
LOCAL_KEPT_SECONDS = 2.0
# Tokens are counted as OpenAI's models split text (conch/turns/tokens.py). Of any other model, until its own count is
# known from a reply, one is taken for so many: more than models in use need for most of what people write.
INEXACT = 1.4
NONE = Decimal(0)


class UnknownAccount(LookupError):
    """The person has no account, or no conversation, of that name."""


def question_for_turn(turn_id: int, run: Run, now: datetime, chat: ChatRow | None = None) -> Question:
    """All that the route of that turn is decided from, save what its chat needs: `measured` adds that.

    `chat`: the turn's conversation, where it was just read. Raises UnknownAccount where there is no such turn.
    """
    chat = chat or chat_of_turn(turn_id)
    if chat is None:
        raise UnknownAccount(f"there is no turn {turn_id}")
    return _question(chat.person_id, chat.account, chat, run, now, before=turn_id)


def question_for_settings(person_id: int, engine_slug: str, conversation_id: int | None, now: datetime) -> Question:
    """The same for a person's account, in one of their chats or none. Raises UnknownAccount for what isn't theirs.

    An account that is gone is known only as that chat's own. In a chat the prices are for its length (R5).
    """
    if conversation_id is None:
        question = _question(person_id, engine_slug, None, Run(), now)
    else:
        chat = chat_of(person_id, conversation_id)
        if chat is None:
            raise UnknownAccount(f"there is no conversation {conversation_id}")
        question = _question(person_id, engine_slug, chat, Run(), now)
        question = measured(question, _needs(chat))
    connected = engine_slug == facts.LOCAL or any(way.slug == engine_slug for way in question.ways)
    if not connected and (question.chat is None or question.chat.account != engine_slug):
        raise UnknownAccount(f"there is no account {engine_slug!r}")
    return question


def measured(question: Question, needs: Needs) -> Question:
    """The question with what its chat needs, and what each key asks for a chat of that length (R5, R7)."""
    ways = tuple(_priced(way, needs.tokens) if way.billing == facts.KEY else way for way in question.ways)
    return replace(question, ways=ways, needs=needs)


def _priced(way: Way, tokens: int) -> Way:
    model, tokens = way.model.id, int(tokens * way.ratio)
    per_reply = prices.price_of(way.engine, model, tokens, 0, TYPICAL_ANSWER, way.listed)
    smallest = prices.most(way.engine, model, tokens, prices.SMALLEST_OUTPUT, way.listed)
    return replace(way, per_reply=per_reply, smallest=smallest)


def _needs(chat: ChatRow) -> Needs:
    """What a chat needs as it stands; what wasn't counted is taken by its characters: enough for a price to show."""
    text, answer = Coalesce("text_tokens", Length("text") / 3), Coalesce("answer_tokens", Length("answer") / 3)
    turns = Turn.objects.filter(conversation_id=chat.pk, replaced_by=None)
    said = turns.aggregate(tokens=Sum(text + answer), turns=Count("pk"))
    # A server that is gone, or whose tools are never to run, asks nothing of a model.
    tools = bool(chat.tools) and bool(offered(chat.person_id, chat.tools))
    return Needs(tools=tools, tokens=(said["tokens"] or 0) + 12 * said["turns"])


def _question(
    person_id: int, slug: str, chat: ChatRow | None, run: Run, now: datetime, *, before: int | None = None
) -> Question:
    preferences = preferences_of(person_id)
    rows = accounts_of(person_id, slug)
    windows, refusals, abilities = windows_of(person_id), refusals_of(person_id, now), abilities_of(person_id)
    totals = totals_of(person_id, month_of(preferences, now))
    answered = answered_in(chat.pk, before) if chat is not None else []
    last = _last_models(chat, answered)
    local = _local()
    ways = tuple(
        _way(row, windows.get(row.pk, ()), refusals.get(row.pk, ()), totals.get(row.slug, (0, 0)), last, abilities)
        for row in rows
        if row.removed_at is None
    )
    spent, held = totals.get("", (0, 0))
    budget = Budget(_usd(preferences.month_budget_nano), _sum(spent), _sum(held), month_end(preferences, now))
    gone = next((row.label for row in rows if row.slug == slug and row.removed_at is not None), "")
    return Question(
        engine=slug,
        ways=ways,
        preferences=facts.Preferences(
            limit_fallback=preferences.limit_fallback,
            limit_order=strings(preferences.limit_order),
            limit_return=preferences.limit_return,
            limit_paid=preferences.limit_paid,
            offline_fallback=local.own if preferences.offline_fallback is None else preferences.offline_fallback,
        ),
        budget=budget,
        local=local.facts,
        chat=None if chat is None else _chat(chat, answered, gone),
        run=run,
    )


def _last_models(chat: ChatRow | None, answered: Sequence[tuple[str, str]]) -> dict[str, str]:
    """R12: the model that each account answers with in this chat, where it has one."""
    if chat is None:
        return {}
    last = dict(reversed(answered))
    if chat.stayed_from and chat.stayed_from_model:
        last[chat.stayed_from] = chat.stayed_from_model
    if chat.model:
        last[chat.account] = chat.model
    return last


def _chat(row: ChatRow, answered: Sequence[tuple[str, str]], gone: str) -> Chat:
    return Chat(
        account=row.account,
        account_label=gone,
        waits_until=row.waits_until,
        stayed_from=row.stayed_from,
        stayed_consent=row.stayed_consent,
        cap=_usd(row.spend_cap_nano),
        spent=_sum(row.spent_nano),
        held=_sum(row.held_nano),
        last_route=last_route_of(row.pk),
        last_answered_by=answered[0][0] if answered else "",
    )


def _way(
    row: AccountRow,
    windows: tuple[facts.Window, ...],
    refusals: tuple[facts.Refusal, ...],
    total: tuple[int, int],
    last: Mapping[str, str],
    abilities: Mapping[tuple[int, str], AbilityRow],
) -> Way:
    kind = _engine(row.engine)
    listed = _listed(row.listed)
    default = _model(listed, row.model)
    model = _model(listed, last.get(row.slug, "") or row.model)
    told = abilities.get((row.pk, model.id), UNTOLD)
    told_of_default = abilities.get((row.pk, default.id), UNTOLD)
    typical = prices.typical_reply(row.engine, default.id, listed.raw) if kind.billing == facts.KEY else None
    return Way(
        slug=row.slug,
        engine=row.engine,
        label=row.label,
        billing=kind.billing,
        shares_account=kind.shares_account,
        model=_able(model, row.engine, told),
        default_model=_able(default, row.engine, told_of_default),
        identity=row.identity,
        whose=row.whose,
        plan=row.plan,
        organization=row.organization,
        key_hint=row.key_hint,
        state=row.state if kind.there else Account.State.DISABLED.value,
        carries_on=row.carries_on,
        metered=kind.meters,
        windows=windows,
        refusals=refusals,
        attempt_allowed_at=row.attempt_allowed_at,
        typical=typical,
        per_reply=typical,
        smallest=typical,
        spent=_sum(total[0]),
        held=_sum(total[1]),
        own_limit=_usd(row.own_limit_nano),
        cap=_usd(row.key_cap_nano),
        cap_left=_usd(row.key_left_nano),
        cap_resets_at=row.key_resets_at,
        ratio=told.ratio or kind.ratio,
        listed=listed.raw,
    )


class _Kind(NamedTuple):
    """What an account's engine says of it."""

    billing: str
    shares_account: str
    meters: bool
    there: bool = True
    ratio: float = INEXACT


@lru_cache(maxsize=256)
def _engine(engine_id: str) -> _Kind:
    try:
        known = engine(engine_id)
    except (UnknownEngine, ImportError, AttributeError):
        # An engine that isn't installed any more answers nothing; taken as a key, since it may have cost money.
        return _Kind(facts.KEY, engine_id, meters=False, there=False)
    billing = facts.KEY if known.billing is Billing.KEY else facts.PLAN
    ratio = 1.0 if getattr(known, "counted_exactly", False) else INEXACT
    return _Kind(billing, known.shares_account or engine_id, known.meters, ratio=ratio)


@dataclass(frozen=True, slots=True)
class _Listed:
    """An engine's own list of models, read once for as long as it stays the same."""

    raw: tuple[Mapping[str, Any], ...]
    models: Mapping[str, Model]


@lru_cache(maxsize=512)
def _listed(text: str | None) -> _Listed:
    try:
        said = json.loads(text or "[]")
    except ValueError:
        said = []
    raw = tuple(one for one in said if isinstance(one, dict) and one.get("id")) if isinstance(said, list) else ()
    return _Listed(raw, {str(one["id"]): _from_list(one) for one in raw})


def _from_list(one: Mapping[str, Any]) -> Model:
    tools, images, context = one.get("tools"), one.get("images"), one.get("context")
    return Model(
        str(one["id"]),
        str(one.get("label") or one["id"]),
        tools if isinstance(tools, bool) else None,
        images if isinstance(images, bool) else None,
        context if isinstance(context, int) and context > 0 else None,
    )


@lru_cache(maxsize=4096)
def _able(model: Model, engine_id: str, told: AbilityRow) -> Model:
    """The model with what it takes, by the first who says (R9): its person, its provider, the bundled list.

    Of its provider's word what it answered goes before what it listed. Where nobody says, it is taken as able.
    """
    able = replace(
        model,
        tools=_first(told.tools_set, told.tools, model.tools),
        images=_first(told.images_set, told.images, model.images),
        context=_first(told.context_set, model.context, prices.context_of(engine_id, model.id)),
    )
    takes = [most_input(able)]
    if told.fits is not None and told.context_set is None:
        takes.append(told.fits)
    most = min((one for one in takes if one is not None), default=None)
    ratio = told.ratio or _engine(engine_id).ratio
    if most is None or (len(takes) == 1 and ratio == 1.0):
        return able
    return replace(able, most_input=int(most / ratio))


def _first(*said: Any) -> Any:
    """The first that isn't None."""
    return next((one for one in said if one is not None), None)


def _model(listed: _Listed, wanted: str) -> Model:
    known = listed.models.get(wanted)
    return known or model_that_answers(listed.models.values(), last=wanted, default="") or Model("", "")


@dataclass(frozen=True, slots=True)
class _LocalKnown:
    facts: Local
    own: bool


_kept_local: tuple[float, _LocalKnown] | None = None


def _local() -> _LocalKnown:
    """The model on this computer; its file is looked for at most every two seconds."""
    global _kept_local
    if _kept_local is None or time.monotonic() - _kept_local[0] > LOCAL_KEPT_SECONDS:
        known = local_models.facts(local_models.setup())
        most = None if known.context is None else int(known.context / INEXACT)
        model = Model(known.model_id, known.label, known.tools, known.images, known.context, most_input=most)
        _kept_local = (time.monotonic(), _LocalKnown(Local(known.present, model, known.tiny), known.own))
    return _kept_local[1]


def forget_local() -> None:
    """Look for the model on this computer anew: another one was chosen. Other processes find it within two seconds."""
    global _kept_local
    _kept_local = None


def _usd(nano: int | None) -> Decimal | None:
    return None if nano is None else Decimal(nano) / NANO


def _sum(nano: int) -> Decimal:
    return Decimal(nano) / NANO if nano else NONE
