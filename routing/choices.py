"""What there is to carry on with: one choice an account, by name, and whether it can take the chat (R1-R3, R9, R10)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from routing.facts import KEY, Model, Needs, Preferences, Refusal, Way, Window
from routing.room import Room, newest

SIGNED_OUT = frozenset({"signed_out", "wrong_key", "disabled"})
# Of what a model reads at once, this much is kept free for its answer; never more than a quarter.
ANSWER_TOKENS = 4096
# Why somebody is passed over, the first that holds is said (R10).
SKIPS = (
    "left_out",
    "signed_out",
    "blocked",
    "at_limit",
    "refused",
    "over_key_limit",
    "over_budget",
    "unpriced",
    "needs_budget",
    "cannot_carry_tools",
    "cannot_carry_images",
    "too_long",
    "paid_off",
)
# What only stops Automatic: a person's own yes for an account goes past these (R13, R33).
AUTOMATIC_ONLY = frozenset({"left_out", "unpriced", "paid_off"})


class Choice:
    """All ways that draw on the same limits, as one; in the order they were connected (R1)."""

    __slots__ = ("id", "number", "refusals", "ways", "windows")

    def __init__(self, number: int, ways: tuple[Way, ...]) -> None:
        first = ways[0]
        self.id = first.slug
        self.number = number
        self.ways = ways
        self.windows: Sequence[Window] = first.windows
        self.refusals: Sequence[Refusal] = first.refusals
        if len(ways) > 1:
            self.windows = newest(window for way in ways for window in way.windows)
            self.refusals = [refusal for way in ways for refusal in way.refusals]

    def has(self, slug: str) -> bool:
        """Whether that account is a way into this choice."""
        return self.id == slug or (len(self.ways) > 1 and any(way.slug == slug for way in self.ways))


def grouped(ways: Sequence[Way]) -> list[Choice]:
    """One choice an account (R1).

    Plans of the same `shares_account` and identity are one. One whose identity isn't known joins the only choice of
    its `shares_account` that is known, and stands alone where there are several or none. A key is one account.
    """
    groups: dict[object, tuple[Way, ...]] = {}
    for way in ways:
        if way.billing == KEY:
            whose: object = way.slug
        else:
            whose = (way.shares_account, way.identity) if way.identity else _joins(way, ways)
        groups[whose] = (*groups[whose], way) if whose in groups else (way,)
    return [Choice(number, members) for number, members in enumerate(groups.values())]


def _joins(way: Way, ways: Sequence[Way]) -> object:
    """Whose a plan is of which nobody knows whose it is."""
    plans = [other for other in ways if other.billing != KEY and other.shares_account == way.shares_account]
    known = {other.identity for other in plans if other.identity}
    return (way.shares_account, *known) if len(known) == 1 else way.slug


def named(choices: Sequence[Choice]) -> dict[str, str]:
    """The name of every choice, by its id (R2): the shortest label, and whose it is where two would read the same."""
    names = {c.id: c.ways[0].label if len(c.ways) == 1 else _shortest(c) for c in choices}
    if len(set(names.values())) == len(names):
        return names
    alike: dict[str, list[Choice]] = {}
    for choice in choices:
        alike.setdefault(names[choice.id], []).append(choice)
    for name, group in alike.items():
        if len(group) > 1:
            names |= _told_apart(name, group)
    return names


def _shortest(choice: Choice) -> str:
    return min((way.label for way in choice.ways), key=len)


def _told_apart(name: str, group: Sequence[Choice]) -> dict[str, str]:
    """Choices of one name with whose they are; still alike, their plan, their organisation, at last their slug."""
    names = {choice.id: name for choice in group}
    for adds in (_whose_words, _plan, _organization, _slug):
        times = Counter(names.values())
        for choice in group:
            said = names[choice.id]
            if times[said] > 1 and (more := adds(choice)):
                names[choice.id] = f"{said} · {more}"
    return names


def _whose_words(choice: Choice) -> str:
    return _person(choice) or choice.ways[0].key_hint


def _person(choice: Choice) -> str:
    if len(choice.ways) == 1:
        return choice.ways[0].whose
    return next((way.whose for way in choice.ways if way.whose), "")


def _plan(choice: Choice) -> str:
    return next((way.plan for way in choice.ways if way.plan), "")


def _organization(choice: Choice) -> str:
    return next((way.organization for way in choice.ways if way.organization), "")


def _slug(choice: Choice) -> str:
    return choice.id


def account_words(choice: Choice) -> str:
    """Whose a choice is, in words (R10): an address, or the end of a key; "" where nothing is known."""
    hint = choice.ways[0].key_hint
    if choice.ways[0].billing == KEY:
        return f"key ending {hint}" if hint else _person(choice)
    return _person(choice) or _organization(choice)


def model_that_answers(models: Iterable[Model], *, last: str, default: str) -> Model | None:
    """The model that an account answers with (R12): the one it last answered with in this chat, else the account's
    default, else the first that its engine lists. None where nothing at all is known.
    """  # noqa: D205  the rule is one sentence
    listed = list(models)
    wanted = last or default
    if not wanted:
        return listed[0] if listed else None
    return next((model for model in listed if model.id == wanted), None) or Model(wanted, wanted)


def most_input(model: Model) -> int | None:
    """How many tokens of a chat a model takes, with room left for its answer; None where that isn't known."""
    if model.most_input is not None or model.context is None:
        return model.most_input
    return model.context - min(ANSWER_TOKENS, model.context // 4)


class Carries(NamedTuple):
    """Whether a model takes the chat (R9): `whole`, or with the oldest left out; `codes`: why not at all."""

    whole: bool
    codes: tuple[str, ...]


WHOLE = Carries(whole=True, codes=())


def carries(model: Model, needs: Needs) -> Carries:
    """Whether that model takes what the chat needs; what isn't known of a model is taken as able."""
    most = model.most_input
    if most is None and (context := model.context) is not None:
        # As most_input, without a call: this runs for every account of every decision.
        most = context - min(ANSWER_TOKENS, context // 4)
    whole = most is None or needs.tokens <= most
    if whole and not needs.tools and not needs.images:
        return WHOLE
    codes: tuple[str, ...] = ()
    if needs.tools and model.tools is False:
        codes += ("cannot_carry_tools",)
    if needs.images and model.images is False:
        codes += ("cannot_carry_images",)
    if most is not None and needs.newest_tokens > most:
        codes += ("too_long",)
    return Carries(whole, codes)


class Terms(NamedTuple):
    """What Automatic may do in this run: money and being looked at, the same for every way."""

    paid: bool  # limit_paid is on
    bounded: bool  # a month's budget or the chat's own cap is set, so a key must be priced (R33, R18)
    needs_budget: bool  # nobody is looking and no month's budget is set (R25)


def terms(preferences: Preferences, *, budget_set: bool, cap_set: bool, away: bool) -> Terms:
    """The terms of a run (R13, R18, R25, R33). `away`: nobody is looking."""
    return Terms(preferences.limit_paid, budget_set or cap_set, away and not budget_set)


def skips(way: Way, room: Room, carried: Carries, allowed: Terms, *, priced: bool) -> tuple[str, ...]:
    """Every reason why Automatic passes a way over now, in the order of R10; () where it may answer."""
    key = way.billing == KEY
    if not key and way.carries_on and not room.codes and not carried.codes and way.state not in SIGNED_OUT:
        return ()
    codes: list[str] = []
    if not way.carries_on:
        codes.append("left_out")
    if way.state in SIGNED_OUT:
        codes.append("signed_out")
    codes.extend(room.codes)
    if key and allowed.bounded and not priced:
        codes.append("unpriced")
    if key and allowed.needs_budget:
        codes.append("needs_budget")
    codes.extend(carried.codes)
    if key and not allowed.paid:
        codes.append("paid_off")
    return tuple(codes)
