"""The message box's surroundings: who answers next, who pays, what happens then; the account picker; room left.

All of it follows from the facts that a route is decided from, read once (R10): no provider is asked for a page.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from conch.accounts.defaults import LOCAL
from conch.copy import composer
from conch.copy.clock import Viewer, moment
from conch.engines import local_models
from conch.engines.registry import UnknownEngine, engine
from routing.decision import Decision, decide
from routing.facts import KEY, PLAN, Way
from routing.known import UnknownAccount, question_for_settings
from routing.survey import Standing, Survey

OUT = {
    "signed_out": "Signed out",
    "wrong_key": "Its key isn’t accepted",
    "no_credit": "No credit left",
    "disabled": "Switched off",
}


@dataclass(frozen=True, slots=True)
class Answering:
    """Who answers the next message of a chat. `pays` and `then` are sentences; `costs`: a reply is paid for."""

    slug: str
    engine: str
    label: str
    model: str
    pays: str
    then: str = ""
    costs: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One account in the picker: what it has left in words, the models to choose from, whether it is the chat's."""

    slug: str
    engine: str
    label: str
    says: str
    current: bool = False
    answers: bool = False
    model: str = ""
    models: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RoomLeft:
    """One plan in the sidebar: `left` in words, percent for its meter, level low or none."""

    label: str
    left: str
    percent: int | None
    level: str


@dataclass(frozen=True, slots=True)
class Composer:
    """What is around the message box."""

    answering: Answering
    plans: tuple[Row, ...]
    keys: tuple[Row, ...]
    here: Row
    rooms: tuple[RoomLeft, ...]
    first_run: bool


def composer_for(
    person_id: int, account: str, conversation_id: int | None, viewer: Viewer, *, model: str = ""
) -> Composer:
    """The surroundings of the box in that chat, or of a new one that would start with that account and model."""
    now = viewer.now
    try:
        question = question_for_settings(person_id, account, conversation_id, now)
    except UnknownAccount:
        question = question_for_settings(person_id, LOCAL, None, now)
        question = replace(question, engine=account)
    if conversation_id is None and model:
        ways = tuple(_with_model(way, model) if way.slug == account else way for way in question.ways)
        question = replace(question, ways=ways)
    survey, decision = Survey(question, now), decide(question, now)
    answers = decision.answers if decision.kind == "answer" and decision.answers != question.engine else None
    rows = tuple(_rows(survey, viewer, answers))
    local = local_models.facts(local_models.setup())
    return Composer(
        answering=_answering(survey, decision, local, viewer),
        plans=tuple(row for row, way in rows if way.billing == PLAN),
        keys=tuple(row for row, way in rows if way.billing == KEY),
        here=Row(
            LOCAL,
            LOCAL,
            local.label or "The model on this computer",
            composer.local_row(local.note if local.tiny else "", present=local.present),
            current=question.engine == LOCAL,
            answers=answers == LOCAL,
        ),
        rooms=tuple(_rooms(survey, viewer)),
        first_run=not question.ways,
    )


def _with_model(way: Way, model: str) -> Way:
    known = next((one for one in way.listed if str(one["id"]) == model), None)
    label = str(known.get("label") or model) if known else model
    return replace(way, model=replace(way.model, id=model, label=label))


def _answering(survey: Survey, decision: Decision, local: local_models.LocalFacts, viewer: Viewer) -> Answering:
    slug = decision.answers if decision.kind == "answer" and decision.answers else survey.question.engine
    if slug == LOCAL:
        pays, model = composer.here(local.note if local.tiny else ""), local.label
        if not local.present:
            pays = "There’s no model on this computer yet. Connect an account, or get one under This computer."
        label = local.label or "The model on this computer"
        return Answering(LOCAL, LOCAL, label, "", pays, _then(survey, decision, viewer))
    way = next((way for way in survey.question.ways if way.slug == slug), None)
    if way is None:
        return Answering(
            slug, "", survey.own_label, "", "This chat’s account isn’t connected any more. Choose another."
        )
    model = decision.model.label if decision.model and decision.answers == slug else way.model.label or way.model.id
    label = decision.label if decision.answers == slug and decision.label else survey.own_label
    return Answering(
        slug, way.engine, label, model, _pays(way, survey), _then(survey, decision, viewer), costs=way.billing == KEY
    )


def _pays(way: Way, survey: Survey) -> str:
    if way.billing == KEY:
        return composer.by_key(way.per_reply, survey.month_left(), capped=survey.chat.cap is not None)
    try:
        return composer.in_plan(engine(way.engine).plan_name)
    except UnknownEngine:
        return composer.in_plan("")


def _then(survey: Survey, decision: Decision, viewer: Viewer) -> str:
    """What happens next: who comes back and when, or that a message would wait or not be sent."""
    if decision.routed is not None and decision.kind == "answer":
        returns = survey.question.preferences.limit_return or decision.answers == LOCAL
        if not returns or decision.routed.stayed:
            return ""
        return composer.back_to(decision.routed.from_label, decision.routed.until, viewer)
    if decision.wait is not None:
        following = decision.wait.next
        if decision.wait.why == "room" and following is not None:
            return composer.no_room(following.label, following.until, viewer)
        return composer.waits_for(survey.own_label, decision.limit.until or survey.chat.waits_until, viewer)
    if decision.failure is not None and decision.failure.code == "signed_out":
        return f"{survey.own_label} is signed out."
    return "This chat reached the amount you set for it." if decision.capped is not None else ""


def _standings(survey: Survey) -> Iterator[Standing]:
    """Every account as it stands, in the order they were connected."""
    found = [survey.one_way(way.slug) for way in survey.question.ways]
    return (standing for standing, _ in filter(None, found))


def _rows(survey: Survey, viewer: Viewer, answers: str | None) -> Iterator[tuple[Row, Way]]:
    labels = [way.label for way in survey.question.ways]
    for standing in _standings(survey):
        way = standing.way
        whose = way.whose or way.key_hint
        label = f"{way.label} · {whose}" if whose and labels.count(way.label) > 1 else way.label
        current = way.slug == survey.question.engine
        says = _says(standing, survey, viewer)
        row = Row(way.slug, way.engine, label, says, current=current, model=way.model.id, models=_models(way))
        yield replace(row, answers=way.slug == answers), way


def _models(way: Way) -> tuple[tuple[str, str], ...]:
    """What to choose from: what the account lists, and what is picked though it isn't listed any more."""
    listed = tuple((str(one["id"]), str(one.get("label") or one["id"])) for one in way.listed)
    if not listed or not way.model.id or way.model.id in dict(listed):
        return listed
    return ((way.model.id, composer.not_listed(way.model.label or way.model.id)), *listed)


def _says(standing: Standing, survey: Survey, viewer: Viewer) -> str:
    way, room = standing.way, standing.room
    if way.state in OUT:
        return f"{OUT[way.state]}."
    if room.codes:
        window = room.window or "" if room.longer else ""
        return composer.stands_as(room.codes[0], window, room.free_at, room.retry_at, viewer)
    model = way.model.label or way.model.id
    if way.billing == KEY:
        return composer.key_row(way.per_reply, survey.month_left(), model)
    return composer.plan_row(
        percent=room.percent_left, resets_at=room.resets_at, resets_now=room.resets_now, model=model, viewer=viewer
    )


def _rooms(survey: Survey, viewer: Viewer) -> Iterator[RoomLeft]:
    """Room left of the plans that say so, one a choice; what isn't known is not drawn (R6)."""
    seen: set[str] = set()
    choices = [survey.own_choice] if survey.own_choice else []
    for choice in sorted([*choices, *(one.choice for one in survey.others)], key=lambda one: one.number):
        found = survey.one_way(choice.ways[0].slug)
        if found is None or choice.id in seen or choice.ways[0].billing != PLAN:
            continue
        seen.add(choice.id)
        room = found[0].room
        if room.codes[:1] == ("refused",):  # its meter, if it has one, says that there is room
            yield RoomLeft(found[1], _until(room.free_at, viewer, "refused"), None, "none")
        elif room.codes:
            yield RoomLeft(found[1], _until(room.free_at, viewer), 0, "none")
        elif room.resets_now:
            yield RoomLeft(found[1], "resets now", None, "")
        elif room.percent_left is not None:
            yield RoomLeft(found[1], f"{room.percent_left}%", room.percent_left, "low" if room.state == "low" else "")


def _until(at: datetime | None, viewer: Viewer, otherwise: str = "none left") -> str:
    return f"until {moment(at, viewer)}" if at else otherwise
