"""The FallbackPicker as a page shows it: the plan (routing.plan) put into the words of copy.md 4.1."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.http import Http404

from conch.accounts.defaults import LOCAL, connected, start_of
from conch.copy import choices as words
from conch.copy.clock import Viewer
from conch.models import Account
from routing.facts import AUTO, KEY, WAIT, Question
from routing.known import UnknownAccount, question_for_settings
from routing.plan import Plan, PlanChoice, plan
from settings_ui import picker_words
from settings_ui.viewing import Visit

# With more than this, the radios of "always the same one" are folded (copy.md 8.5).
MOST_UNFOLDED = 6
ICONS = {
    "blocked": "clock",
    "at_limit": "clock",
    "refused": "clock",
    "over_budget": "coins",
    "over_key_limit": "coins",
    "needs_budget": "coins",
    "paid_off": "skip",
    "left_out": "skip",
    "unpriced": "skip",
}
STATUS = {
    "blocked": "bad",
    "at_limit": "bad",
    "over_budget": "bad",
    "over_key_limit": "bad",
    "refused": "warn",
    "signed_out": "warn",
    "cannot_carry_tools": "warn",
    "cannot_carry_images": "warn",
    "too_long": "warn",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One choice: among the radios and in the order. `left`: percent for the meter, None for no meter."""

    id: str
    engine: str
    label: str
    tag: str
    tag_kind: str
    level: str
    facts: tuple[str, ...]
    reason: str
    reason_icon: str
    act: str
    act_text: str
    act_url: str
    left: int | None
    status: str
    status_kind: str
    picked: bool
    answers_now: bool

    @property
    def name(self) -> str:
        """What it is called, without whose it is."""
        return self.label.partition(words.JOINED_BY)[0]

    @property
    def who(self) -> str:
        """Whose it is, where two would read the same."""
        return self.label.partition(words.JOINED_BY)[2]

    @property
    def said(self) -> str:
        """The name as it is spoken."""
        return spoken(self.label)


@dataclass(frozen=True, slots=True)
class Switch:
    """One of the three switches. `link`: what the sentence ends on; `asks`: a budget may be asked for beside it."""

    name: str
    label: str
    on: bool
    said: str
    link: str = ""
    asks: bool = False
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A pick that is no choice of this page: the account at its limit itself, or one that is gone."""

    value: str
    label: str
    said: str


@dataclass(frozen=True, slots=True)
class Seen:
    """An account from which the page can be seen."""

    slug: str
    label: str
    current: bool


@dataclass(frozen=True, slots=True)
class Picker:
    """All of it."""

    engine: str
    label: str
    pick: str
    chosen: picker_words.Pick
    note: picker_words.Note | None
    order_words: str
    auto_now: str
    waiting: str
    rows: tuple[Row, ...]
    kept: Kept | None
    seen: tuple[Seen, ...]
    switches: tuple[Switch, ...]
    local_last: bool
    local_label: str

    @property
    def many(self) -> bool:
        """So many that the radios of single accounts are folded."""
        return len(self.rows) > MOST_UNFOLDED

    @property
    def named(self) -> bool:
        """Whether one of the accounts is the pick."""
        return any(row.picked for row in self.rows)

    def spoken_move(self, slug: str, way: str, *, went: bool) -> str:
        """What is said after a move, or after one that went no further."""
        for place, row in enumerate(self.rows):
            if row.id == slug:
                if went:
                    return picker_words.spoken_move(row.said, place + 1, len(self.rows), spoken(self.auto_now))
                return picker_words.at_the_end(row.said, first=way == "up")
        return ""


def spoken(text: str) -> str:
    """A name as it is spoken: an address follows after a comma."""
    return text.replace(words.JOINED_BY, ", ")


def picker_of(here: Visit, engine: str) -> Picker | None:
    """The picker for that account at its limit ("": the default one); None where no account is connected.

    Raises Http404 for an account that isn't this person's.
    """
    accounts = connected(here.person.pk)
    if not accounts:
        return None
    slug = engine or default_engine(here, accounts)
    try:
        question = question_for_settings(here.person.pk, slug, None, here.viewer.now)
    except UnknownAccount as error:
        raise Http404 from error
    return shown(question, plan(question, here.viewer.now), accounts, here.viewer)


def default_engine(here: Visit, accounts: Sequence[Account]) -> str:
    """The account that new chats start with; where that is the model on this computer, the first connected one."""
    slug = start_of(here.preferences, accounts).account
    return accounts[0].slug if slug == LOCAL else slug


def shown(question: Question, found: Plan, accounts: Sequence[Account], viewer: Viewer) -> Picker:
    """The plan in words."""
    limit = picker_words.Limit(found.label, found.limit.at, found.until, found.limit.window or "")
    chosen = pick_of(found, accounts)
    able = next((choice for choice in found.choices if choice.skip is None), None)
    rows = tuple(row(choice, found, viewer, picked=chosen.value, able=able) for choice in found.choices)
    return Picker(
        engine=found.engine,
        label=found.label,
        pick=chosen.value,
        chosen=chosen,
        note=picker_words.note(limit, chosen, answering(found), viewer),
        order_words=picker_words.in_order([choice.label for choice in automatic(found)]),
        auto_now=picker_words.automatic_now(now_of(found, able), viewer),
        waiting=picker_words.waiting(limit, viewer),
        rows=rows,
        kept=kept(chosen, found),
        seen=seen(found, accounts),
        switches=switches(question, found, chosen),
        local_last=found.local.present and found.local.allowed,
        local_label=found.local.model.label,
    )


def pick_of(found: Plan, accounts: Sequence[Account]) -> picker_words.Pick:
    """What is chosen; a slug counts as the choice that it is a way into (R14)."""
    value = found.preference
    if value in {AUTO, WAIT}:
        return picker_words.Pick(value)
    for choice in found.choices:
        if value in choice.ways:
            return picker_words.Pick(choice.id, spoken(choice.label))
    label = next((account.label for account in accounts if account.slug == value), "")
    return picker_words.Pick(value, label or value, itself=bool(label), gone=not label)


def kept(chosen: picker_words.Pick, found: Plan) -> Kept | None:
    """The pick as a row of its own, where it is no choice of this page (R14)."""
    if chosen.itself:
        said = f"It is the account at its limit itself: then chats wait until {found.label} resets."
        return Kept(chosen.value, chosen.label, said)
    if chosen.gone:
        return Kept(chosen.value, chosen.label, "It isn’t connected any more: chats wait. Choose another.")
    return None


def answering(found: Plan) -> str:
    """Who answers now, by name; "" for nobody."""
    if found.answers == LOCAL:
        return found.local.model.label
    return next((choice.label for choice in found.choices if choice.id == found.answers), "")


def automatic(found: Plan) -> list[PlanChoice]:
    """The choices that Automatic asks, at their limits or not: no key while keys are off, nobody who is left out."""
    return [
        choice
        for choice in found.choices
        if (choice.kind != KEY or found.limit_paid) and (choice.skip is None or choice.skip.code != "left_out")
    ]


def now_of(found: Plan, able: PlanChoice | None) -> picker_words.Now:
    """What Automatic would do now."""
    if able is not None:
        asked = automatic(found)
        addressed = words.JOINED_BY in able.label
        return picker_words.Now(able.label, addressed=addressed, first=bool(asked) and asked[0].id == able.id)
    local = found.local.present and found.local.allowed and found.local.skip is None
    back = sorted((at, place) for place, choice in enumerate(automatic(found)) if (at := back_at(choice)) is not None)
    if not back:
        return picker_words.Now(local=local, others=bool(found.choices))
    at, place = back[0]
    return picker_words.Now(next=automatic(found)[place].label, next_at=at, local=local)


def back_at(choice: PlanChoice) -> datetime | None:
    """When a choice has room again, or is tried again; None where that isn't known."""
    return (choice.skip.until or choice.skip.retry_at) if choice.skip is not None else None


def row(choice: PlanChoice, found: Plan, viewer: Viewer, *, picked: str, able: PlanChoice | None) -> Row:
    """One choice in words."""
    tag, reason = words.tag(choice), words.reason(choice, found, viewer)
    code = choice.skip.code if choice.skip is not None else ""
    text, url = act(reason.act if reason is not None else "", choice)
    return Row(
        id=choice.id,
        engine=choice.engine,
        label=choice.label,
        tag=tag.text if tag is not None else "",
        tag_kind=tag.kind if tag is not None else "",
        level=choice.room.state if choice.room.state in {"low", "none"} else "",
        facts=words.facts(choice, found, viewer),
        reason=reason.text if reason is not None else "",
        reason_icon=ICONS.get(code, "warn"),
        act=reason.act if reason is not None else "",
        act_text=text,
        act_url=url,
        left=choice.room.percent_left if choice.kind != KEY and choice.room.percent_left else None,
        status=words.in_the_order(choice, viewer),
        status_kind=STATUS.get(code, "warn" if not code and choice.room.state == "low" else ""),
        picked=choice.id == picked,
        answers_now=able is not None and able.id == choice.id,
    )


def act(name: str, choice: PlanChoice) -> tuple[str, str]:
    """What can be done about it, and where."""
    return {
        words.BUDGET: ("Set a budget", "#budget"),
        words.CHANGE_BUDGET: ("Change the budget", "#budget"),
        words.SIGN_IN: ("Sign in", f"/settings/providers/{choice.answers_by}/reconnect"),
    }.get(name, ("", ""))


def seen(found: Plan, accounts: Sequence[Account]) -> tuple[Seen, ...]:
    """The accounts from which the page can be seen, where there are several."""
    others = {slug: choice for choice in found.choices for slug in choice.ways}
    entries = [
        Seen(
            account.slug,
            others[account.slug].label if account.slug in others else found.label,
            account.slug not in others,
        )
        for account in accounts
        if account.slug == found.engine or (account.slug in others and others[account.slug].id == account.slug)
    ]
    return tuple(entries) if len(entries) > 1 else ()


def switches(question: Question, found: Plan, chosen: picker_words.Pick) -> tuple[Switch, ...]:
    """The switches: keys only where there is one."""
    budget = picker_words.Budget(found.budget.amount, found.month_left or Decimal(0))
    key = next((choice for choice in found.choices if choice.kind == KEY and choice.id == chosen.value), None)
    paid = picker_words.paid(
        on=found.limit_paid,
        budget=budget,
        pick=spoken(key.label) if key is not None else "",
        per_reply=key.per_reply if key is not None else None,
    )
    local = picker_words.local(found.local.model.label, present=found.local.present)
    back = picker_words.coming_back(on=question.preferences.limit_return)
    entries = [
        Switch(
            "local", "The model on this computer, last", found.local.allowed, local, missing=not found.local.present
        ),
        Switch("return", f"Back to {found.label} once it resets", question.preferences.limit_return, back),
    ]
    if any(way.billing == KEY for way in question.ways):
        link = "Set a budget" if budget.amount is None and key is None else ""
        entries.insert(0, Switch("paid", "Pay-per-use keys too", found.limit_paid, paid, link=link, asks=True))
    return tuple(entries)
