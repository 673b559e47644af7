"""Pages of the chat that only read: the chat itself, search, what has changed, pictures, exports."""

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import require_GET

from conch.accounts.defaults import LOCAL
from conch.chat import exports, sidebar
from conch.chat.answers import person_of, viewer, wants_parts
from conch.chat.page import before_with, new_key, news, own, own_turn, shell_of, whole
from conch.chat.shown import stamp_of
from conch.engines import local_models
from conch.models import Agent, Attachment, Conversation
from conch.tasks.agents import accounts_of, agents_of, beginning
from conch.tasks.agents import own as own_agent
from conch.turns.errors import NotHere


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The latest chat; a new one where there is none or one is asked for (`new`, `agent`, with `account`, `model`)."""
    person = person_of(request)
    latest = None if "new" in request.GET or "agent" in request.GET else sidebar.chats_of(person.pk).first()
    if latest is not None:
        return _chat(request, latest)
    return render(request, "chat/page.html", new_chat(request))


def new_chat(request: HttpRequest) -> dict[str, Any]:
    """A chat that isn't there yet: it is made with its first message, by who and what was asked for."""
    person = person_of(request)
    given = request.POST or request.GET
    accounts = accounts_of(person.pk)
    asked = given.get("account", "")
    asked = asked if asked == LOCAL or accounts.find(asked) else ""
    agent = _agent(request, given.get("agent", ""))
    how = beginning(accounts, agent, asked, given.get("model", "")[:200] if asked else "")
    gone = Conversation.objects.filter(person=person, pk=_number(request, "deleted") or 0).exclude(deleted_at=None)
    return {
        "deleted": gone.first(),
        "chat": None,
        "turns": [],
        "account": how.account,
        "model": how.model,
        "agent": agent,
        "temporary": given.get("temporary") == "on",
        "agents": agents_of(person.pk),
        "problem": how.trouble,
        "replaced": how.replaced,
        "local": local_models.facts(local_models.setup()),
        "key": new_key(),
        **shell_of(person.pk, how.account, None, viewer(request), model=how.model, tools=_tools(request, agent)),
    }


def _tools(request: HttpRequest, agent: Agent | None) -> list[str]:
    """What was chosen in a box that couldn't be sent, or before another account was picked; else the agent's."""
    given = request.POST or request.GET
    return given.getlist("tools") if "tools" in given else agent.tools if agent is not None else []


def _agent(request: HttpRequest, named: str) -> Agent | None:
    """The person's agent of that id; another's isn't there (404)."""
    if not named:
        return None
    try:
        return own_agent(person_of(request).pk, int(named) if named.isascii() and named.isdigit() else 0)
    except NotHere as error:
        raise Http404 from error


@require_GET
def chat(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """One chat."""
    return _chat(request, _own(request, conversation_id))


def _chat(request: HttpRequest, found: Conversation) -> HttpResponse:
    _seen(found)
    before = _number(request, "before") or before_with(found, _number(request, "at"))
    context = whole(found, viewer(request), before=before)
    context["local"] = local_models.facts(local_models.setup())
    return render(request, "chat/page.html", context)


def _seen(found: Conversation) -> None:
    """Somebody looks at the chat."""
    if found.unread:
        Conversation.objects.filter(pk=found.pk, unread=True).update(unread=False)
        found.unread = False


def _number(request: HttpRequest, name: str) -> int | None:
    given = request.GET.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else None


def _own(request: HttpRequest, conversation_id: int) -> Conversation:
    try:
        return own(person_of(request).pk, conversation_id)
    except NotHere as error:
        raise Http404 from error


@require_GET
def chats(request: HttpRequest) -> HttpResponse:
    """The chats that have these words; the list alone for htmx."""
    person, q = person_of(request), request.GET.get("q", "").strip()[:200]
    listed = sidebar.listed(person.pk, viewer(request), q)
    if wants_parts(request):
        return render(request, "chat/_chats.html", listed | {"chat": None})
    return render(request, "chat/search.html", new_chat(request) | {"found": listed["found"], "q": q})


@require_GET
def now(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """What has changed in a chat since its page was shown: `have` its last turn, `live` the one it watches, `since`.

    The same stamp (`v`): nothing has. A tab that is `hidden` looks too, and nobody has read what it is told.
    """
    found = _own(request, conversation_id)
    try:
        since = datetime.fromisoformat(request.GET.get("since", ""))
    except ValueError:
        since = timezone.now()
    if since.tzinfo is None:
        raise Http404
    soon = _number(request, "soon") or 0
    have, live = _number(request, "have") or 0, _number(request, "live")
    hidden = "hidden" in request.GET
    if not hidden:
        _seen(found)
    if request.GET.get("v") == stamp_of(found) and not soon:
        return HttpResponse(status=204)
    context = news(found, viewer(request), have=have, live=live, since=since, soon=soon, hidden=hidden)
    return render(request, "chat/_changes.html", context)


@require_GET
def attachment(request: HttpRequest, attachment_id: int) -> HttpResponse:
    """A picture of one's own message; never anything that a browser would run."""
    found = get_object_or_404(Attachment, pk=attachment_id, person=person_of(request)).picture
    response = HttpResponse(bytes(found.data), content_type=found.media_type)
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


@require_GET
def answer(request: HttpRequest, turn_id: int) -> HttpResponse:
    """A reply as it was written, in Markdown, to be copied."""
    try:
        turn = own_turn(person_of(request).pk, turn_id)
    except NotHere as error:
        raise Http404 from error
    return HttpResponse(turn.answer, content_type="text/plain; charset=utf-8")


@require_GET
def export_markdown(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The chat as Markdown."""
    found = _kept(request, conversation_id)
    return _file(exports.as_markdown(found, viewer(request)), "text/markdown; charset=utf-8", found, "md")


@require_GET
def export_json(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The chat as JSON, with what an edit replaced."""
    found = _kept(request, conversation_id)
    return _file(exports.as_json(found, viewer(request)), "application/json", found, "json")


def _kept(request: HttpRequest, conversation_id: int) -> Conversation:
    """A chat that may be taken along: a temporary one isn't."""
    found = _own(request, conversation_id)
    if found.temporary:
        raise Http404
    return found


def _file(text: str, content_type: str, found: Conversation, ending: str) -> HttpResponse:
    name = slugify(found.title)[:60] or "chat"
    disposition = f'attachment; filename="{name}.{ending}"'
    return HttpResponse(text, content_type=content_type, headers={"Content-Disposition": disposition})
