"""Somebody answers: what is said of it, what is held for it, and the request itself."""

from dataclasses import replace
from typing import Any

from conch.accounts.access import access_for
from conch.accounts.seal import CantUnseal
from conch.engines.base import Access, Billing, Request
from conch.models import Account, Attempt, Conversation, Line
from conch.turns import handoff, statements
from conch.turns.gathering import Asking, Gathered, RunSoFar, Telling
from conch.turns.holding import OUTPUT_CAP, Paid, TooDear, hold
from conch.turns.record import Tried
from conch.turns.resting import say_stay_ended
from routing.choices import most_input
from routing.facts import Way
from routing.outcome import Decision

LOCAL = "local"


def answer(telling: Telling, gathered: Gathered, decision: Decision, so_far: RunSoFar) -> Asking | None:
    """Prepare the attempt that the decision chose; None where the money that it needs has gone meanwhile."""
    slug, model = decision.answers, decision.model
    assert slug is not None
    assert model is not None
    account = _account(telling.chat.person_id, slug)
    way = next((way for way in gathered.question.ways if way.slug == slug), None)
    model_id = model.id
    if slug in so_far.default_model and decision.default_model is not None:
        model_id = decision.default_model.id
        decision = replace(decision, model=decision.default_model, routed=_with_model(decision), say=True)
    handed = _handed(telling, gathered, decision, way, so_far)
    attempt_id = statements.insert_attempt(
        telling.turn.pk, telling.turn.run, slug, model_id, decision.consent, telling.now
    )
    cap, entry = None, None
    if decision.billing == Billing.KEY:
        most = so_far.affordable.get(slug, OUTPUT_CAP)
        paid = Paid(telling.turn, attempt_id, slug, model_id, decision.consent, handed.tokens + gathered.beside, most)
        try:
            cap, entry = hold(gathered.question, paid, telling.now)
        except TooDear:
            Attempt.objects.filter(pk=attempt_id).delete()
            return None
    _say(telling, decision, handed, slug)
    _move(telling, decision, slug, model_id)
    telling.tell("attempt", {"account": slug, "model": model_id})
    statements.now_answers(telling.turn.pk, telling.turn.run, slug, model_id, telling.position)
    telling.keep()
    tried = Tried(
        turn_id=telling.turn.pk,
        run=telling.turn.run,
        attempt_id=attempt_id,
        account=slug,
        account_id=account.pk if account is not None else None,
        model=model_id,
        entry_id=entry,
        started_at=telling.now,
        **_known(account, way, gathered, handed),
    )
    return Asking(
        engine=account.engine if account is not None else LOCAL,
        access=_access(account) if account is not None else Access(LOCAL, model=model_id),
        request=Request(
            model=model_id,
            messages=handed.messages,
            instructions=telling.chat.instructions,
            max_output_tokens=cap,
            tools=gathered.tools,
            conversation=str(telling.chat.pk),
        ),
        tried=tried,
        label=decision.label,
        billing=decision.billing,
        own=slug == (telling.chat.account if decision.unstay is None else decision.unstay.account),
        default_model=decision.default_model.id if decision.default_model is not None else "",
        consent=decision.consent,
        reads=most_input(way.model if way is not None else gathered.question.local.model),
    )


def _known(account: Account | None, way: Way | None, gathered: Gathered, handed: handoff.Handed) -> dict[str, Any]:
    """What an attempt is known by beforehand: how its account stood, and what is sent to it."""
    return {
        "passed_over": way is None or bool(way.refusals),
        "unwell": account is not None and account.state != Account.State.OK,
        "counted": handed.tokens + gathered.beside,
        "ratio": way.ratio if way is not None else 1.0,
        "plain": not gathered.tools and not any(message.images for message in handed.messages),
    }


def _account(person_id: int, slug: str) -> Account | None:
    if slug == LOCAL:
        return None
    return statements.account(person_id, slug)


def _access(account: Account) -> Access:
    """What the engine needs. A key that can't be unsealed any more is as good as none: the engine says signed out."""
    try:
        return access_for(account)
    except CantUnseal:
        return Access(account.slug, base_url=account.base_url, model=account.model)


def _with_model(decision: Decision) -> Any:
    """The routed line's facts with the default model in the place of one that is gone (R17)."""
    if decision.routed is None or decision.default_model is None:
        return decision.routed
    model = decision.default_model
    return replace(decision.routed, to_model=model.id, to_model_label=model.label)


def _handed(
    telling: Telling, gathered: Gathered, decision: Decision, way: Way | None, so_far: RunSoFar
) -> handoff.Handed:
    """The chat for who answers, shortened where it doesn't fit (R31)."""
    slug = decision.answers or ""
    model = way.model if way is not None else gathered.question.local.model
    fits = most_input(model) if decision.shortened else None
    if slug in so_far.fits:
        fits = min(fits or so_far.fits[slug], so_far.fits[slug])
    fits = None if fits is None else fits - gathered.beside
    sees = not decision.drop_images and slug not in so_far.blind
    return handoff.handed(gathered.said, slug, fits=fits, instructions=telling.chat.instructions, sees=sees)


def _say(telling: Telling, decision: Decision, handed: handoff.Handed, slug: str) -> None:
    """The lines before the first word: out of a wait, a stay that ended, who carries on, what was left out."""
    _say_sent(telling, decision)
    if decision.unstay is not None:
        say_stay_ended(telling, decision.unstay)
    if decision.offline:
        line = telling.say("offline.routed", {"label": decision.label})
        telling.tell("offline", {"text": telling.words(line.kind, line.data)})
    elif decision.routed is not None and decision.say:
        _say_routed(telling, decision)
    if decision.returned:
        own = {"account": slug, "label": decision.label}
        telling.tell_line(telling.say("limit.returned", own))
    _say_left_out(telling, decision, handed, slug)


def _say_sent(telling: Telling, decision: Decision) -> None:
    """A message that goes out after a wait says so; one that somebody else answers by a press has its routed line."""
    waiting = telling.line_of("limit.waiting", "limit.capped")
    if waiting is None:
        return
    turn = telling.turn
    pressed = decision.routed is not None and decision.routed.by in {"once", "carry_on"}
    if pressed and decision.say:
        return  # rewritten as the routed line
    if pressed or waiting.kind == "limit.capped":
        waiting.delete()
        return
    planned = turn.until
    late = planned is not None and (telling.now - planned).total_seconds() > 120
    data = {
        "at": f"{telling.now:%Y-%m-%dT%H:%M:%SZ}",
        "planned_at": f"{planned:%Y-%m-%dT%H:%M:%SZ}" if planned is not None else None,
        "late": late,
    }
    telling.tell_line(telling.say("limit.sent", data, instead_of=waiting))


def _say_routed(telling: Telling, decision: Decision) -> None:
    """The one routed line of the turn: a second move rewrites it (R22). Only the chat's latest offers Switch back."""
    assert decision.routed is not None
    data = decision.routed.data()
    line = telling.line_of("limit.routed", "limit.waiting", "limit.capped")
    line = telling.say("limit.routed", data, instead_of=line)
    told = {key: data[key] for key in ("from", "to", "until", "from_model", "to_model", "stayed")}
    telling.tell("routed", told | {"text": telling.words(line.kind, data)})


def _say_left_out(telling: Telling, decision: Decision, handed: handoff.Handed, slug: str) -> None:
    facts: dict[str, Any] = {"account": slug, "label": decision.label}
    if handed.left_out and not _said_before(telling, "handoff.shortened", slug):
        facts["messages"] = len(handed.messages)
        telling.tell_line(telling.say("handoff.shortened", facts))
    if handed.images_left_out and not _said_before(telling, "handoff.images", slug):
        telling.tell_line(telling.say("handoff.images", {"account": slug, "label": decision.label}))


def _said_before(telling: Telling, kind: str, slug: str) -> bool:
    """Whether the chat's latest line of that kind speaks of the same account."""
    said = (
        Line.objects.filter(conversation_id=telling.chat.pk, kind=kind).order_by("-pk").values_list("data", flat=True)
    )
    latest = said.first()
    return latest is not None and latest.get("account") == slug


def _move(telling: Telling, decision: Decision, slug: str, model_id: str) -> None:
    """Who answers this chat from now on, where that changes (R21)."""
    if decision.stay is not None:
        Conversation.objects.filter(pk=telling.chat.pk).update(
            account=decision.stay.account,
            model=decision.stay.model,
            stayed_from=telling.chat.stayed_from or telling.chat.account,
            stayed_from_model=telling.chat.stayed_from_model or telling.chat.model,
            stayed_consent=decision.stay.consent,
        )
    elif decision.unstay is None and slug == telling.chat.account and not telling.chat.model:
        statements.chat_has_model(telling.chat.pk, model_id)
