"""Steps for what a person presses: stop, retry, answer with, Switch back, Carry on, another account, another cap."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from conch.models import Account, Attempt, Conversation, Line, Turn, TurnEvent
from conch.money import to_nano
from conch.turns import calls
from conch.turns.accept import again, next_queued, turn_of
from conch.turns.errors import NotHere, NotNow
from conch.turns.waiting import AT_REST
from routing.outcome import Decision

LOCAL = "local"
UNKNOWN_RESET = timedelta(hours=5)  # R23


def chat_of(person_id: int, conversation_id: int) -> Conversation:
    """The person's chat. Raises NotHere."""
    chat = Conversation.objects.filter(pk=conversation_id, person_id=person_id, deleted_at=None).first()
    if chat is None:
        raise NotHere
    return chat


def stop(person_id: int, turn_id: int, now: datetime) -> int | None:
    """Stop a turn: one that runs is asked to, one that rests or is queued ends here. The chat's next queued turn."""
    turn_of(person_id, turn_id)
    # As it stands: another process may be claiming it, or putting it to rest, at this moment.
    turn = Turn.objects.select_for_update().only("state", "run", "position", "conversation_id").get(pk=turn_id)
    row = Turn.objects.filter(pk=turn_id)
    if turn.state == Turn.State.RUNNING:
        row.update(stop_asked=True)
    if turn.state not in {Turn.State.QUEUED, *AT_REST}:
        return None
    position = turn.position + 1
    row.update(state=Turn.State.STOPPED, ended_at=now, position=position, wake_at=None, until=None, waits_for="")
    calls.close(turn_id, now)
    TurnEvent.objects.create(turn_id=turn_id, run=turn.run, position=position, kind="stopped", data={})
    Line.objects.filter(turn_id=turn_id, kind__in=["limit.waiting", "limit.capped"]).delete()
    return next_queued(turn.conversation_id)


def retry(person_id: int, turn_id: int, now: datetime) -> bool:
    """Queue an ended turn again; True where it waits or is held, and only its route is asked again."""
    turn = turn_of(person_id, turn_id)
    if turn.state in AT_REST:
        return True
    if turn.state in Turn.ENDS:
        _check_latest(turn)
        if again(turn, now):
            calls.forget(turn.pk, now)
    return False


def _check_latest(turn: Turn) -> None:
    """An answer that others were built on isn't replaced, nor one that an edit replaced. Raises NotNow."""
    if turn.replaced_by_id is not None:
        raise NotNow("edited", "This message was edited. Try the version that stands again.")
    later = Turn.objects.filter(conversation_id=turn.conversation_id, pk__gt=turn.pk, replaced_by=None)
    if later.exclude(answer="").exists():
        raise NotNow("answered_later", "A later message has an answer. Use Edit and resend to begin anew from here.")


def answer_with(person_id: int, turn_id: int, account: str, now: datetime) -> bool:
    """Queue the turn for that account alone; False where a run of it is under way already.

    Raises NotNow, with what would help, where that one is at its limit, signed out, or past the money it may use.
    """
    from conch.turns.begin import would_answer

    turn = turn_of(person_id, turn_id)
    if turn.state in {Turn.State.QUEUED, Turn.State.RUNNING}:
        return False
    if turn.state in Turn.ENDS:
        _check_latest(turn)
    if account != LOCAL and not Account.objects.filter(person_id=person_id, slug=account, removed_at=None).exists():
        raise NotHere
    decision, label = would_answer(turn, account, now)
    if decision.kind != "answer" or decision.answers != account:
        raise NotNow(
            "cannot_answer", _what_would_help(decision, account, label, own=account == turn.conversation.account)
        )
    begun = again(turn, now, once=account)
    if begun:
        # What tools gave stays: only Try again runs them again (R17). What asks is asked by who answers now.
        calls.leave(turn.pk, now)
        calls.ask_no_more(turn.pk)
    return begun


def _what_would_help(decision: Decision, account: str, label: str, *, own: bool) -> str:
    code = next((why.skip.code for why in decision.why if why.id == account and why.skip is not None), "")
    if own and decision.limit.at:
        code = "at_limit"
    if decision.kind == "capped":
        return "This chat reached the amount you set for it. Raise it, then try again."
    helps = {
        "blocked": f"{label} is at its limit. Choose another one, or wait until it resets.",
        "at_limit": f"{label} is at its limit. Choose another one, or wait until it resets.",
        "refused": f"{label} refused for a limit. Choose another one, or try it later.",
        "signed_out": f"{label} is signed out. Sign in again under Settings, Providers.",
        "over_budget": "This month’s budget is spent. Change the budget, or choose a plan.",
        "over_key_limit": f"The limit of {label} is reached. Raise it, or choose another one.",
        "cannot_carry_images": f"{label} can’t see images. Choose another one.",
        "cannot_carry_tools": f"{label} can’t run the tools this chat uses. Choose another one.",
        "too_long": f"This message is too long for {label}. Choose another one.",
    }
    return helps.get(code, f"{label} can’t answer now. Choose another one.")


def before(person_id: int, turn_id: int) -> list[int]:
    """The unfinished turns that go before this one in its chat, the latest first (R35)."""
    turn = turn_of(person_id, turn_id)
    earlier = Turn.objects.filter(conversation_id=turn.conversation_id, pk__lt=turn_id)
    return list(earlier.exclude(state__in=Turn.ENDS).order_by("-pk").values_list("pk", flat=True))


def latest_routed(conversation_id: int) -> Line | None:
    """The chat's latest routed line: the only one that Switch back acts on."""
    standing = Line.objects.filter(conversation_id=conversation_id, kind="limit.routed", turn__replaced_by=None)
    return standing.order_by("-pk").first()


def switch_back(person_id: int, conversation_id: int, now: datetime) -> dict[str, Any]:
    """Give the chat back to its own account, which it waits for (R23). Pressed twice, the first stands."""
    chat = chat_of(person_id, conversation_id)
    line = latest_routed(conversation_id)
    if line is None or not line.data.get("switch_back"):
        raise NotNow("nothing_to_switch_back", "There is nothing to switch back from.")
    own = {"account": line.data["from"], "model": line.data["from_model"]}
    if line.data.get("folded"):
        return own | {"until": line.data["folded"]["until"]}
    stayed = chat.account != line.data["from"]
    until = datetime.fromisoformat(line.data["until"]) if line.data["until"] else now + UNKNOWN_RESET
    if until <= now and not stayed:
        raise NotNow("nothing_to_switch_back", f"{line.data['from_label']} has reset already: it answers next.")
    waits_until = until if until > now else None
    iso = f"{waits_until:%Y-%m-%dT%H:%M:%SZ}" if waits_until is not None else None
    Conversation.objects.filter(pk=chat.pk).update(
        account=own["account"],
        model=own["model"],
        waits_until=waits_until,
        **_stay(chat, line),
    )
    Line.objects.filter(pk=line.pk).update(data=line.data | {"folded": {"until": iso}})
    Line.objects.create(
        conversation_id=chat.pk,
        turn_id=line.turn_id,
        kind="limit.back",
        data={
            "engine": line.data["from"],
            "engine_label": line.data["from_label"],
            "until": iso,
            "to": line.data["to"],
            "to_label": line.data["to_label"],
        },
        at=now,
    )
    return own | {"until": iso}


def _stay(chat: Conversation, line: Line) -> dict[str, str]:
    """How the chat stands once it is back: with a key that it only stayed with, it stays still, by the same yes (R21).

    Raises NotNow where the person has chosen another account since: that key was never the chat's own.
    """
    own = line.data["from"]
    asked = Attempt.objects.filter(turn__conversation_id=chat.pk, account=own).exclude(consent="once").order_by("-pk")
    consent = asked.values_list("consent", flat=True).first() or ""
    if consent not in {"paid_on", "named"} or chat.stayed_from == own:
        return {"stayed_from": "", "stayed_from_model": "", "stayed_consent": ""}
    if chat.account != own and not chat.stayed_from:
        raise NotNow("nothing_to_switch_back", "There is nothing to switch back from: you chose another account since.")
    return {"stayed_consent": consent}


def carry_on(person_id: int, conversation_id: int) -> tuple[int | None, str]:
    """End Switch back (R23): the waiting turn to ask again, if there is one, and who is to be asked first."""
    chat = chat_of(person_id, conversation_id)
    line = latest_routed(conversation_id)
    Conversation.objects.filter(pk=chat.pk).update(waits_until=None)
    first = ""
    if line is not None:
        first = line.data["to"]
        if line.data.get("folded"):
            Line.objects.filter(pk=line.pk).update(data=line.data | {"folded": None})
            Line.objects.filter(conversation_id=chat.pk, kind="limit.back", turn=line.turn).delete()
    waiting = Turn.objects.filter(conversation_id=chat.pk, state=Turn.State.WAITING).order_by("pk")
    return waiting.values_list("pk", flat=True).first(), first


def choose(person_id: int, conversation_id: int, account: str, model: str, now: datetime) -> list[int]:
    """The chat's account and model from now on; ends Switch back and a stay. The turns whose route asks again."""
    chat = chat_of(person_id, conversation_id)
    known = Account.objects.filter(person_id=person_id, slug=account, removed_at=None)
    if account != LOCAL and not known.exists():
        raise NotHere
    Conversation.objects.filter(pk=chat.pk).update(
        account=account,
        model=model,
        waits_until=None,
        stayed_from="",
        stayed_from_model="",
        stayed_consent="",
        updated_at=now,
    )
    return at_rest(chat.pk)


def set_cap(person_id: int, conversation_id: int, cap: Decimal | None) -> list[int]:
    """The chat's own cap (R18). The turns whose route asks again."""
    chat = chat_of(person_id, conversation_id)
    nano = None if cap is None else to_nano(cap)
    Conversation.objects.filter(pk=chat.pk).update(spend_cap_nano=nano)
    return at_rest(chat.pk)


def at_rest(conversation_id: int) -> list[int]:
    """The chat's turns that wait or are held."""
    rows = Turn.objects.filter(conversation_id=conversation_id, state__in=AT_REST).order_by("pk")
    return list(rows.values_list("pk", flat=True))
