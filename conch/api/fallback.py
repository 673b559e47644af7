"""GET /api/fallback: who could answer at a limit, and why not (doors.md, FallbackPlan)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from ninja.params.functions import Query

from conch import ids
from conch.accounts.defaults import starting
from conch.api.caller import answer, person_id
from conch.api.conversations import own
from conch.api.problems import Problem
from conch.db import look
from conch.models import Person
from routing.api import fallback_plan

router = Router(tags=["fallback"])


@router.get("/fallback", summary="Who answers at a limit")
async def read_fallback(
    request: HttpRequest,
    engine: str | None = Query(None, description="An account's slug; the conversation's, else the default one"),
    conversation: int | None = Query(None, ge=1, le=ids.LARGEST, description="The conversation that it is asked for"),
) -> HttpResponse:
    """The choices in the order in which Automatic asks them, each with its facts and why it is passed over."""
    return answer(await look(_plan, person_id(request), engine, conversation))


def _plan(caller: int, engine: str | None, conversation: int | None) -> dict[str, Any]:
    chat = own(caller, conversation) if conversation is not None else None
    asked = engine or (chat.account if chat is not None else starting(caller).account)
    try:
        plan: dict[str, Any] = fallback_plan(Person.objects.get(pk=caller), asked, conversation, timezone.now())
    except LookupError as error:
        raise Problem(404, f"There is no account {asked!r}.", code="no_account") from error
    return plan
