"""All choices as they stand now, for one question: what the decision, the waiting and the plan read (R3, R8, R10)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from routing.choices import AUTOMATIC_ONLY, SKIPS, Carries, Choice, carries, grouped, named, skips, terms
from routing.facts import AUTO, KEY, LOCAL, WAIT, Chat, Model, Question, Tried, Way
from routing.outcome import Limit, ModelRef, Offer, Skip, Why
from routing.ranking import ranked
from routing.room import REASONS, TIMED, Room, amount, room_of

# A turn that waited longer than this and goes out by itself goes out with nobody looking (R25).
AWAY_AFTER = timedelta(minutes=10)
BY_NAME = AUTOMATIC_ONLY
# A yes for this one message stands also while nobody is looking (R25).
BY_ONCE = AUTOMATIC_ONLY | {"needs_budget"}
NOTHING: frozenset[str] = frozenset()
UNTRIED: dict[str, Tried] = {}


class Standing(NamedTuple):
    """One way now: its room, whether it takes the chat, and every code that holds (R10), () where it may answer."""

    way: Way
    room: Room
    carries: Carries
    codes: tuple[str, ...]

    def beyond(self, yes: frozenset[str]) -> tuple[str, ...]:
        """The codes that still hold where the person's yes goes past some."""
        return tuple(code for code in self.codes if code not in yes) if yes and self.codes else self.codes

    def skip(self, code: str) -> Skip:
        """That code with its times, as told to people."""
        if code in {"blocked", "refused"}:
            return Skip(code, self.room.free_at, self.room.retry_at, self.room.refused_at)
        return Skip(code, self.room.free_at) if code in TIMED else Skip(code)


class Seen(NamedTuple):
    """One choice by its name, with how each of its ways stands; `foremost`: the best of them where nobody said yes."""

    choice: Choice
    label: str
    standings: tuple[Standing, ...]
    foremost: Standing

    def best(self, yes: frozenset[str] = NOTHING) -> Standing:
        """The first way that can answer for the choice (R9), else the one that is nearest to it."""
        return best_of(self.standings, yes) if yes else self.foremost

    def why(self) -> Why:
        """Whether Automatic passes it over now, and why."""
        best = self.foremost
        return Why(self.choice.id, best.skip(best.codes[0]) if best.codes else None)

    def offer(self, yes: frozenset[str] = NOTHING) -> Offer:
        """It as somebody who could answer."""
        way = self.best(yes).way
        return Offer(way.slug, self.label, way.billing, way.per_reply if way.billing == KEY else None)


def best_of(standings: tuple[Standing, ...], yes: frozenset[str]) -> Standing:
    """The first of some ways that can answer (R9), else the one that is nearest to it."""
    if len(standings) == 1:
        return standings[0]
    able = [standing for standing in standings if not standing.beyond(yes)]
    if able:
        return next((standing for standing in able if standing.carries.whole), able[0])
    return max(standings, key=lambda standing: _nearness(standing.beyond(yes)[0]))


def _nearness(code: str) -> int:
    return SKIPS.index(code) if code in SKIPS else -1


class Survey:
    """The ground of one decision, all of it worked out at once.

    `own`: the chat's account, None where it is gone or the model on this computer. `own_label`: the name of its choice,
    or as it was called before it was gone. `limited`: it is at its limit, or refused for one (R11); `limit`: that as
    data. `switched_back`: Switch back holds this chat's route at waiting (R23). `mode`: who is asked at a limit in this
    chat now: auto, wait, or a slug. `others`: the other choices in order, as they stand. `local`: whether the model on
    this computer could take the chat, None where it can't at all.
    """

    def __init__(self, question: Question, now: datetime) -> None:
        self.question = question
        self.now = now
        self.chat = chat = question.chat or Chat(question.engine)
        self.tried = {tried.slug: tried for tried in question.run.tried} if question.run.tried else UNTRIED
        budget_set = question.budget.amount is not None
        self.terms = terms(question.preferences, budget_set=budget_set, cap_set=chat.cap is not None, away=self._away())
        self.switched_back = chat.waits_until is not None and now < chat.waits_until
        self.mode = WAIT if self.switched_back else question.preferences.limit_fallback
        # Where no chat is known (Settings), the typical reply stands for the smallest hold (R7).
        self._in_chat = question.chat is not None
        choices = grouped(question.ways)
        self.names = named(choices)
        self.own: Standing | None = None
        self.own_choice: Choice | None = None
        engine = question.engine
        for choice in choices:
            if choice.has(engine):
                self.own_choice = choice
                way = next(way for way in choice.ways if way.slug == engine)
                self.own = self._standing(choice, way)
                choices.remove(choice)
                break
        self.others = [self._seen(choice) for choice in ranked(choices, question.preferences.limit_order)]
        own = self.own
        self.limited = own is not None and (bool(own.room.codes) or "refused" in own.codes)
        self.limit = self._limit()
        self.local = self._local()
        if self.own_choice is not None:
            self.own_label = self.names[self.own_choice.id]
        else:
            self.own_label = chat.account_label or engine

    def _away(self) -> bool:
        run = self.question.run
        if run.unattended:
            return True
        return run.waiting and run.waiting_since is not None and self.now - run.waiting_since > AWAY_AFTER

    def _seen(self, choice: Choice) -> Seen:
        label, ways = self.names[choice.id], choice.ways
        if len(ways) == 1:
            only = self._standing(choice, ways[0])
            return Seen(choice, label, (only,), only)
        standings = tuple([self._standing(choice, way) for way in ways])
        return Seen(choice, label, standings, best_of(standings, NOTHING))

    def _standing(self, choice: Choice, way: Way) -> Standing:
        question = self.question
        smallest = way.smallest if self._in_chat else way.typical
        room = room_of(way, choice.windows, choice.refusals, question.budget, now=self.now, smallest=smallest)
        carried = carries(way.model, question.needs)
        codes = skips(way, room, carried, self.terms, priced=smallest is not None)
        if self.tried:
            codes = self._after_trying(choice, way, codes)
        return Standing(way, room, carried, codes)

    def _after_trying(self, choice: Choice, way: Way, codes: tuple[str, ...]) -> tuple[str, ...]:
        """An account is tried once a run (R17): a refusal counts for its twins, being unable for that way alone."""
        own = self.tried.get(way.slug)
        if own is not None and own.code != "refused":
            return (own.code, *(code for code in codes if code != own.code))
        refused = any(tried.code == "refused" and choice.has(tried.slug) for tried in self.tried.values())
        return codes if not refused or TIMED.intersection(codes) else ("refused", *codes)

    def _limit(self) -> Limit:
        if self.own is None:
            return Limit(at=False)
        room = self.own.room
        if not self.limited:
            return Limit(at=False, until=room.resets_at)
        code = room.codes[0] if room.codes else "refused"
        window = room.window if room.longer and "at_limit" in room.codes else None
        return Limit(True, room.free_at, REASONS[code], window, room.retry_at)

    def _local(self) -> Carries | None:
        if not self.question.local.present:
            return None
        carried = carries(self.question.local.model, self.question.needs)
        return None if carried.codes else carried

    @property
    def pick(self) -> Seen | None:
        """The choice that the person's pick is a way into; None under auto and wait, or where it is gone or own."""
        return None if self.mode in {AUTO, WAIT} else self.seen(self.mode)

    def seen(self, slug: str) -> Seen | None:
        """The other choice that this account is a way into."""
        return next((seen for seen in self.others if seen.choice.has(slug)), None)

    def why(self) -> tuple[Why, ...]:
        """Every other choice, in order, and why it is passed over."""
        return tuple(map(Seen.why, self.others))

    def able(self, yes: frozenset[str]) -> Iterator[Seen]:
        """The other choices that could answer if the person said so, in order."""
        return (seen for seen in self.others if not seen.best(yes).beyond(yes))

    def offers(self) -> tuple[Offer, ...]:
        """Who could answer at the person's word: another way into the same account first, where it isn't at a limit."""
        twins: list[Offer] = []
        if self.own_choice is not None and not self.limited:
            for way in self.own_choice.ways:
                standing = self._standing(self.own_choice, way)
                if way.slug != self.question.engine and not standing.beyond(BY_ONCE):
                    twins.append(Offer(way.slug, way.label, way.billing))
        return (*twins, *(seen.offer(BY_ONCE) for seen in self.able(BY_ONCE)))

    def local_skip(self) -> Skip | None:
        """Why the model on this computer can't answer; None where it can."""
        if self.local is not None:
            return None
        codes = carries(self.question.local.model, self.question.needs).codes
        return Skip(codes[0] if self.question.local.present else "no_model")

    def local_offer(self) -> Offer | None:
        """The model on this computer, as somebody who could answer."""
        return None if self.local is None else Offer(LOCAL, self.question.local.model.label, LOCAL)

    def one_way(self, slug: str) -> tuple[Standing, str] | None:
        """How that very account stands, and its name; None where it isn't connected."""
        if self.own is not None and slug == self.question.engine:
            return self.own, self.own_label
        for choice in [seen.choice for seen in self.others] + ([self.own_choice] if self.own_choice else []):
            for way in choice.ways:
                if way.slug == slug:
                    return self._standing(choice, way), self.names[choice.id]
        return None

    def month_left(self) -> Decimal | None:
        """What is left of the month's budget, never below zero; None without one."""
        budget = self.question.budget
        if budget.amount is None:
            return None
        return amount(amount(budget.amount) - budget.spent - budget.held)


def ref(model: Model) -> ModelRef:
    """A model by its id and name."""
    return ModelRef(model.id, model.label or model.id)
