"""Conversations: a new one, a page of them, one with its turns and lines, changes, Switch back."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from ninja.params.functions import Query

from conch import ids
from conch.accounts.defaults import LOCAL, local_model, starting
from conch.api.accounts import model_of
from conch.api.caller import answer, person_id
from conch.api.presented import conversation_json, line_json, reader_of, turn_json
from conch.api.problems import Problem
from conch.api.schemas import ConversationChange, ConversationStart
from conch.db import look, step
from conch.models import Account, Agent, Attempt, Conversation, Line, ToolCall, Turn
from conch.money import to_nano
from conch.tasks.agents import Beginning, accounts_of, beginning
from conch.tasks.agents import own as own_agent
from conch.tools import known
from conch.turns import doors
from conch.turns.errors import NotHere

CONVERSATIONS_A_PAGE = 50
MOST_A_PAGE = 200
MOST_TURNS = 1000

router = Router(tags=["conversations"])


@router.post("/conversations", summary="A new conversation")
async def start_conversation(request: HttpRequest, given: ConversationStart) -> HttpResponse:
    """A new chat; what isn't said is as the caller's defaults."""
    return answer(await step(_start, person_id(request), given.said(), timezone.now()), 201)


@router.get("/conversations", summary="A page of conversations")
async def list_conversations(
    request: HttpRequest,
    cursor: str | None = Query(None, description="`next` of the page before"),
    limit: int = Query(CONVERSATIONS_A_PAGE, ge=1, le=MOST_A_PAGE),
) -> HttpResponse:
    """The conversations, the latest first, without their turns and lines."""
    return answer(await look(_page, person_id(request), cursor, limit))


@router.get("/conversations/{id:conversation_id}", summary="A conversation")
async def read_conversation(
    request: HttpRequest,
    conversation_id: int,
    before: int | None = Query(None, ge=1, le=ids.LARGEST, description="Turns before this one"),
    limit: int = Query(MOST_TURNS, ge=1, le=MOST_TURNS),
) -> HttpResponse:
    """One conversation with its newest turns, in order, and their lines."""
    return answer(await look(_whole, person_id(request), conversation_id, before, limit, timezone.now()))


@router.patch("/conversations/{id:conversation_id}", summary="Change a conversation")
async def change_conversation(request: HttpRequest, conversation_id: int, given: ConversationChange) -> HttpResponse:
    """Its title, account, model, tools or cap. A raised cap or another account asks a waiting turn's route again."""
    caller, said = person_id(request), given.said()
    account, model = await look(_checked, caller, conversation_id, said)
    await step(_change, caller, conversation_id, said)
    if "account" in said or "model" in said:
        await doors.choose(caller, conversation_id, account, model)
    if "tools" in said:
        await doors.asked_again(caller)
    if "spend_cap" in said:
        await doors.raise_cap(caller, conversation_id, said["spend_cap"])
    return answer(await look(_whole, caller, conversation_id, None, MOST_TURNS, timezone.now()))


@router.delete("/conversations/{id:conversation_id}", summary="Delete a conversation")
async def delete_conversation(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """Delete it; what runs in it is stopped, its ledger stays."""
    caller = person_id(request)
    # The latest first: a queued turn would go out once the one before it is stopped.
    for turn_id in await look(_unfinished, caller, conversation_id):
        await doors.stop(caller, turn_id)
    await step(_delete, caller, conversation_id, timezone.now())
    return HttpResponse(status=204)


@router.post("/conversations/{id:conversation_id}/limit-back", summary="Switch back")
async def switch_back(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The chat waits for its own account (R23)."""
    return answer(await doors.switch_back(person_id(request), conversation_id))


@router.delete("/conversations/{id:conversation_id}/limit-back", summary="Carry on")
async def carry_on(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """End Switch back (R23)."""
    await doors.carry_on(person_id(request), conversation_id)
    return HttpResponse(status=204)


def own(caller: int, conversation_id: int) -> Conversation:
    """The caller's conversation. Raises NotHere."""
    found = Conversation.objects.filter(pk=conversation_id, person_id=caller, deleted_at=None).first()
    if found is None:
        raise NotHere
    return found


def _start(caller: int, said: dict[str, Any], now: datetime) -> dict[str, Any]:
    agent = _agent(caller, said.get("agent"))
    account, model = said.get("account"), said.get("model") or ""
    told: dict[str, Any] = {}
    if agent is not None:
        how = _with_agent(caller, agent, account or "", model)
        account, model = how.account, (model and _model(caller, how.account, model)) or how.model
        told = {"agent": agent.pk, "instructions": agent.instructions, "tools": agent.tools}
    elif account is None:
        start = starting(caller)
        account, model = start.account, (model and _model(caller, start.account, model)) or start.model
    else:
        model = _model(caller, account, model)
    cap = said.get("spend_cap")
    told |= {"tools": _tools(caller, said["tools"])} if "tools" in said else {}
    made = Conversation.objects.create(
        person_id=caller,
        account=account,
        model=model,
        spend_cap_nano=None if cap is None else to_nano(cap),
        created_at=now,
        updated_at=now,
        **told,
    )
    return conversation_json(made) | {"turns": [], "lines": []}


def _agent(caller: int, agent_id: int | None) -> Agent | None:
    try:
        return own_agent(caller, agent_id)
    except NotHere as error:
        raise Problem(422, f"There is no agent {agent_id}.", code="no_agent") from error


def _with_agent(caller: int, agent: Agent, account: str, model: str) -> Beginning:
    """How a chat begins with that agent. Raises Problem where who answers it is gone or signed out (R36)."""
    how = beginning(accounts_of(caller), agent, account, model)
    if how.trouble:
        raise Problem(422, how.trouble, code="no_account")
    return how


def _tools(caller: int, names: list[str]) -> list[str]:
    """The slugs of tool servers, each once. Raises Problem for one that the caller hasn't connected."""
    there = known(caller, names)
    for slug in names:
        if slug not in there:
            raise Problem(422, f"There is no tool server {slug!r}.", code="no_tool_server")
    return there


def _model(caller: int, slug: str, wanted: str) -> str:
    """The model of a chat with that account: the one asked for, else the account's default. Raises Problem."""
    if slug == LOCAL:
        return wanted or local_model()
    account = Account.objects.filter(person_id=caller, slug=slug, removed_at=None).first()
    if account is None:
        raise Problem(422, f"There is no account {slug!r}.", code="no_account")
    return model_of(account, wanted) if wanted else account.model


def _checked(caller: int, conversation_id: int, said: dict[str, Any]) -> tuple[str, str]:
    """The account and model that the change comes to, before any of it is written."""
    chat = own(caller, conversation_id)
    _tools(caller, said.get("tools", []))
    if "account" not in said and "model" not in said:
        return chat.account, chat.model
    account = said.get("account") or chat.account
    return account, _model(caller, account, said.get("model", ""))


def _change(caller: int, conversation_id: int, said: dict[str, Any]) -> None:
    changed: dict[str, Any] = {}
    if said.get("title"):
        changed |= {"title": said["title"], "titled": True}
    if "tools" in said:
        changed["tools"] = _tools(caller, said["tools"])
    if changed:
        Conversation.objects.filter(pk=conversation_id, person_id=caller).update(**changed)


def _page(caller: int, cursor: str | None, limit: int) -> dict[str, Any]:
    listed = Conversation.objects.filter(person_id=caller, deleted_at=None, temporary=False)
    rows = listed.order_by("-updated_at", "-pk")
    if cursor is not None:
        at, pk = _read_cursor(cursor)
        rows = rows.filter(Q(updated_at__lt=at) | Q(updated_at=at, pk__lt=pk))
    page = list(rows[: limit + 1])
    more = _cursor(page[limit - 1]) if len(page) > limit else None
    return {"items": [conversation_json(row) for row in page[:limit]], "next": more}


def _cursor(last: Conversation) -> str:
    return base64.urlsafe_b64encode(f"{last.updated_at.isoformat()}|{last.pk}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        at, _, pk = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        return datetime.fromisoformat(at).astimezone(UTC), int(pk)
    except (ValueError, OverflowError, binascii.Error) as error:
        raise Problem(422, "cursor is the `next` of the page before.") from error


def _whole(caller: int, conversation_id: int, before: int | None, limit: int, now: datetime) -> dict[str, Any]:
    chat = own(caller, conversation_id)
    rows = Turn.objects.filter(conversation_id=chat.pk).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    turns = list(reversed(rows[:limit]))
    reader = reader_of(caller, now)
    attempts: dict[int, list[Attempt]] = {}
    for attempt in Attempt.objects.filter(turn__in=turns).order_by("pk"):
        attempts.setdefault(attempt.turn_id, []).append(attempt)
    calls: dict[int, list[ToolCall]] = {}
    for call in ToolCall.objects.filter(turn__in=turns).order_by("pk"):
        calls.setdefault(call.turn_id, []).append(call)
    shown = Q(turn__in=turns) if before is not None or len(turns) == limit else Q()
    lines = Line.objects.filter(shown, conversation_id=chat.pk).order_by("pk")
    return conversation_json(chat) | {
        "turns": [turn_json(turn, attempts.get(turn.pk, ()), reader, calls=calls.get(turn.pk, ())) for turn in turns],
        "lines": [line_json(line, reader.viewer) for line in lines],
    }


def _unfinished(caller: int, conversation_id: int) -> list[int]:
    rows = Turn.objects.filter(conversation_id=own(caller, conversation_id).pk).exclude(state__in=Turn.ENDS)
    return list(rows.order_by("-pk").values_list("pk", flat=True))


def _delete(caller: int, conversation_id: int, now: datetime) -> None:
    Conversation.objects.filter(pk=conversation_id, person_id=caller).update(deleted_at=now)
