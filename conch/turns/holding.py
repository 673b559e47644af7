"""The most that one request to a key can cost, held before it is sent; each round of a tool loop is one (R26, R34)."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from conch import ledger
from conch.ledger import prices
from conch.models import Account, Preferences, Turn
from conch.money import to_nano
from routing.facts import Question, Way

OUTPUT_CAP = 8_192  # tokens (R34)
LEAST_OUTPUT = 256


class TooDear(Exception):
    """The request doesn't fit. `capped`: only the chat's own cap is in its way (R18); else a budget or key's limit."""

    def __init__(self, *, capped: bool) -> None:
        super().__init__()
        self.capped = capped


@dataclass(frozen=True, slots=True)
class Paid:
    """One request to a key: whose, by which yes, with how many tokens sent, as counted here; `most_output` is what it
    can pay for.
    """  # noqa: D205  one sentence

    turn: Turn
    attempt_id: int
    account: str
    model: str
    consent: str
    tokens: int
    most_output: int = OUTPUT_CAP


def hold(question: Question, paid: Paid, now: datetime) -> tuple[int, int]:
    """Hold the most that it can cost: the cap on its output tokens, and the entry. Raises TooDear."""
    person_id = paid.turn.conversation.person_id
    way = next(way for way in question.ways if way.slug == paid.account)
    account = Account.objects.get(person_id=person_id, slug=way.slug)
    preferences = Preferences.objects.get(pk=person_id)
    paid = replace(paid, tokens=int(paid.tokens * way.ratio))
    cap = _output(question, way, paid, account)
    try:
        entry = ledger.hold(
            person_id=person_id,
            account=way.slug,
            engine=way.engine,
            model=paid.model,
            conversation_id=paid.turn.conversation_id,
            turn_id=paid.turn.pk,
            attempt_id=paid.attempt_id,
            consent=paid.consent,
            most=prices.most(way.engine, paid.model, paid.tokens, cap, account.known_models),
            month=ledger.month_of(preferences, paid.turn.started_at or now),
            now=now,
            budget_nano=preferences.month_budget_nano,
            key_limit_nano=ledger.key_limit(
                own_limit_nano=account.own_limit_nano,
                key_cap_nano=account.key_cap_nano,
                key_left_nano=account.key_left_nano,
                key_resets_at=account.key_resets_at,
                spent_nano=to_nano(way.spent),
                now=now,
            ),
            input_tokens=paid.tokens,
        )
    except ledger.NoRoom as error:
        raise TooDear(capped=False) from error
    return cap, entry


def _output(question: Question, way: Way, paid: Paid, account: Account) -> int:
    """The output tokens that what is left pays for: of the month and the key, and of the chat's own cap."""
    cap = min(OUTPUT_CAP, paid.most_output)
    if way.model.context is not None:
        # What a model reads and what it writes share its context: some servers refuse a cap beyond what is left.
        cap = min(cap, max(LEAST_OUTPUT, way.model.context - paid.tokens))
    for capped, left in ((False, _left(question, way)), (True, _left_of_cap(question))):
        if left is not None:
            within = prices.output_within(left, way.engine, paid.model, paid.tokens, account.known_models)
            cap = cap if within is None else min(cap, within)
        if cap < LEAST_OUTPUT:
            raise TooDear(capped=capped)
    return cap


def _left(question: Question, way: Way) -> Decimal | None:
    """What this request may cost at most, in USD: the tightest of the month's budget and the key's limits."""
    bounds = []
    if question.budget.amount is not None:
        bounds.append(question.budget.amount - question.budget.spent - question.budget.held)
    if way.own_limit is not None:
        bounds.append(way.own_limit - way.spent - way.held)
    if way.cap_left is not None:
        bounds.append(way.cap_left - way.held)
    return min(bounds) if bounds else None


def _left_of_cap(question: Question) -> Decimal | None:
    chat = question.chat
    return None if chat is None or chat.cap is None else chat.cap - chat.spent - chat.held
