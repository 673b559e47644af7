"""How a chat's views answer: a page or its parts, and errors as people read them; what was typed stays in the box."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html

from conch.chat.page import changes, own, whole
from conch.chat.viewer import viewer_of
from conch.copy.clock import Viewer
from conch.db import look
from conch.models import Person
from conch.turns.errors import NotHere, NotNow, TooMuch

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], Coroutine[Any, Any, HttpResponse]]


def person_of(request: HttpRequest) -> Person:
    """Who is signed in; nobody else gets this far."""
    assert isinstance(request.user, Person)
    return request.user


def viewer(request: HttpRequest) -> Viewer:
    """How they read times, now."""
    return viewer_of(person_of(request).preferences, timezone.now())


def wants_parts(request: HttpRequest) -> bool:
    """Whether htmx asks, and so for parts of the page."""
    return request.headers.get("HX-Request") == "true"


def told(view: View[P]) -> View[P]:
    """Let a view raise what turns raise; a person reads why, and another's thing isn't there (404)."""

    @wraps(view)
    async def telling(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return await view(request, *args, **kwargs)
        except NotHere as error:
            raise Http404 from error
        except NotNow as error:
            status, text = 409, error.text
        except TooMuch as error:
            status, text = 413 if error.large else 422, error.text
        if wants_parts(request):
            return HttpResponse(format_html("{}", text), status=status)
        try:
            return await look(_with_problem, request, kwargs.get("conversation_id"), text, status)
        except NotHere as error:  # what was sent couldn't be taken, and it was for another's chat at that
            raise Http404 from error

    return telling


def _with_problem(request: HttpRequest, conversation_id: Any, text: str, status: int) -> HttpResponse:
    """The page again without script, with what was typed and why it didn't go."""
    more = {"problem": text, "typed": request.POST.get("text", "")}
    if isinstance(conversation_id, int):
        context = whole(own(person_of(request).pk, conversation_id), viewer(request)) | more
        return HttpResponse(render_to_string("chat/page.html", context, request), status=status)
    if request.resolver_match is not None and request.resolver_match.url_name == "begin":
        from conch.chat.pages import new_chat

        return HttpResponse(render_to_string("chat/page.html", new_chat(request) | more, request), status=status)
    return HttpResponse(render_to_string("chat/problem.html", more, request), status=status)


async def changed(
    request: HttpRequest,
    conversation_id: int,
    *,
    turn: int | None = None,
    focus: bool = True,
    say: str = "",
    soon: int = 0,
) -> HttpResponse:
    """What an action changed, as parts; without script the chat's page again. `soon`: looks again so many times."""
    if not wants_parts(request):
        place = f"#turn-{turn}" if turn else ""
        return redirect(f"/c/{conversation_id}{place}")
    return HttpResponse(await look(_parts, request, conversation_id, turn, focus=focus, say=say, soon=soon))


def _parts(request: HttpRequest, conversation_id: int, turn: int | None, *, focus: bool, say: str, soon: int) -> str:
    chat = own(person_of(request).pk, conversation_id)
    context = changes(chat, viewer(request), turn=turn, focus=focus, say=say, soon=soon)
    return render_to_string("chat/_changes.html", context, request)
