"""This computer: the model here, how good it is, servers found on loopback, and a box to try it."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from django.views.decorators.http import require_POST, require_safe

from conch.engines import local
from conch.engines.base import Access, EngineError, Message, Request, Text
from conch.engines.registry import engine
from settings_ui.forms import TryForm
from settings_ui.viewing import HttpRequest, Visit, page, visit

# Trying it is a taste, not a chat.
MOST_TOKENS = 256
TRIES_FOR = 90  # seconds


@require_safe
def computer(request: HttpRequest) -> HttpResponse:
    """The page."""
    return show(request, visit(request))


def show(request: HttpRequest, here: Visit, status: int = 200, **more: Any) -> HttpResponse:
    """The page; what runs on this machine is looked for only for its owner."""
    facts = local.facts()
    found = async_to_sync(local.servers_here)() if here.person.is_owner else []
    context = {"facts": facts, "found": found, "form": TryForm(), "owner": here.person.is_owner}
    return page(request, "computer.html", context | more, current="/settings/computer", status=status)


@require_POST
def try_it(request: HttpRequest) -> HttpResponse:
    """Ask the model on this computer something; nothing of it is kept, and it costs nothing."""
    here = visit(request)
    form = TryForm(request.POST)
    if not form.is_valid():
        return show(request, here, 422, form=form)
    answer = async_to_sync(answer_to)(form.cleaned_data["text"])
    return show(request, here, form=form, answer=answer)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said, or why it couldn't."""

    text: str = ""
    failed: str = ""


async def answer_to(text: str) -> Answer:
    """One short answer of the model on this computer."""
    facts = local.facts()
    request = Request(model=facts.model_id, messages=(Message("user", text),), max_output_tokens=MOST_TOKENS)
    pieces: list[str] = []
    try:
        async with asyncio.timeout(TRIES_FOR), aclosing(engine("local").reply(Access("local"), request)) as events:  # type: ignore[type-var]
            async for event in events:
                pieces.append(event.text if isinstance(event, Text) else "")  # noqa: PERF401  kept where it fails half way
    except EngineError as error:
        return Answer("".join(pieces), failed=error.said or "It couldn’t answer.")
    except TimeoutError:
        return Answer("".join(pieces), failed="It took too long and was stopped.")
    return Answer("".join(pieces))
