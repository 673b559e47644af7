"""*Edit and resend*: the form in a message's place, what it sends, and the versions that it folded."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_POST

from conch.chat.answers import person_of, told, viewer, wants_parts
from conch.chat.page import changes, new_key, own, own_turn
from conch.chat.shown import names_of, present, read
from conch.db import look
from conch.models import Turn
from conch.turns import doors
from conch.turns.errors import NotHere


def _own_turn(request: HttpRequest, turn_id: int) -> Turn:
    try:
        return own_turn(person_of(request).pk, turn_id)
    except NotHere as error:
        raise Http404 from error


@require_GET
def edit(request: HttpRequest, turn_id: int) -> HttpResponse:
    """The form that edits a message; a page of its own without script."""
    template = "chat/_edit.html" if wants_parts(request) else "chat/edit.html"
    return render(request, template, {"turn": _own_turn(request, turn_id), "key": new_key()})


@require_POST
@told
async def resend(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Send the edited message; what it takes the place of leaves the page."""
    key = request.POST.get("key", "")[:100] or None
    # A form sends line breaks as CR LF; what is compared with the key's first message is the same either way.
    text = request.POST.get("text", "").replace("\r\n", "\n")
    turn = await doors.resend(person_of(request).pk, turn_id, text, key=key)
    if not wants_parts(request):
        return redirect(f"/c/{turn.conversation_id}#turn-{turn.pk}")
    return HttpResponse(await look(_resent, request, turn))


def _resent(request: HttpRequest, turn: Turn) -> str:
    chat = own(person_of(request).pk, turn.conversation_id)
    context = changes(chat, viewer(request), turn=turn.pk, streaming=False)
    gone = Turn.objects.filter(replaced_by=turn).order_by("pk").values_list("pk", flat=True)
    context |= {"known": False, "known_to": turn.pk - 1, "gone": list(gone), "retitled": True}
    return render_to_string("chat/_changes.html", context, request)


@require_GET
def earlier(request: HttpRequest, turn_id: int) -> HttpResponse:
    """What an edit put that turn in the place of, with all that had come after it; nothing in it acts."""
    turn = _own_turn(request, turn_id)
    chat = turn.conversation
    rows = read(chat, Turn.objects.filter(replaced_by=turn))
    shown = present(chat, rows, names_of(chat.person_id), viewer(request))
    template = "chat/_earlier.html" if wants_parts(request) else "chat/earlier.html"
    return render(request, template, {"turn": turn, "turns": shown})
