"""What a person does in a chat: one address an action. Each calls one door of conch.turns and shows what changed."""

from decimal import Decimal, InvalidOperation

from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.views.decorators.http import require_POST

from conch.accounts.defaults import LOCAL, connected, local_model
from conch.chat.answers import changed, person_of, told, viewer, wants_parts
from conch.chat.files import message
from conch.chat.page import AT_REST, new_key, own, own_turn
from conch.chat.page import changes as changes_of
from conch.copy.calls import ALWAYS, NO, ONCE
from conch.db import look, step, step_now
from conch.engines.base import Image
from conch.models import Conversation, Turn
from conch.tasks.agents import accounts_of, beginning
from conch.tasks.agents import own as own_agent
from conch.tools import known as known_servers
from conch.turns import doors
from conch.turns.accept import checked
from conch.turns.errors import NotHere, NotNow, TooMuch

MOST_CAP = Decimal(1_000_000)
# A waiting turn that asks its route again has its answer within a few looks, a second apart.
LOOKS = 5


@require_POST
@told
async def begin(request: HttpRequest) -> HttpResponse:
    """The first message of a new chat: makes the chat, then sends. The same key again is the same chat."""
    person = person_of(request)
    text, images = await message(request)
    checked(text, images)
    key = request.POST.get("key", "")[:100] or new_key()
    given = {name: request.POST.get(name, "")[:200] for name in ("account", "model", "agent")}
    temporary = request.POST.get("temporary") == "on"
    # The box names its tools whenever it shows any to choose from, an empty name beside them; else the agent's count.
    chosen = request.POST.getlist("tools") if "tools" in request.POST else None
    chat_id = await step(_make, person.pk, key, **given, temporary=temporary, tools=chosen)
    await doors.send(person.pk, chat_id, text, images=images, key=key)
    if wants_parts(request):
        return HttpResponse(headers={"HX-Redirect": f"/c/{chat_id}"})
    return redirect(f"/c/{chat_id}")


def _make(
    person_id: int, key: str, *, account: str, model: str, agent: str, temporary: bool, tools: list[str] | None
) -> int:
    """A chat with that account, agent and tools, or the default; the one that this key has made already.

    Raises NotNow where the agent's account is gone or signed out: the message stays in the composer (R36).
    """
    made = Conversation.objects.filter(person_id=person_id, begun_key=key).first()
    if made is not None:
        return made.pk
    accounts, named = accounts_of(person_id), own_agent(person_id, int(agent) if agent.isdecimal() else None)
    account = account if named is not None or account == LOCAL or accounts.find(account) else ""
    how = beginning(accounts, named, account, model if account else "")
    if named is not None and how.trouble:
        raise NotNow("no_account", f"{how.trouble} Nothing was sent.")
    now = timezone.now()
    columns = how.columns() | ({} if tools is None else {"tools": known_servers(person_id, tools)})
    return Conversation.objects.create(
        person_id=person_id, begun_key=key, created_at=now, updated_at=now, temporary=temporary, **columns
    ).pk


@require_POST
@told
async def send(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """A message. The answer holds both articles; the second watches the turn."""
    key = request.POST.get("key", "")[:100] or None
    text, images = await message(request)
    return await _send(request, conversation_id, text, images=images, key=key)


@require_POST
@told
async def go_on(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """*Continue* is a new message of the person's (R31)."""
    return await _send(request, conversation_id, "Continue.")


async def _send(
    request: HttpRequest, conversation_id: int, text: str, *, images: tuple[Image, ...] = (), key: str | None = None
) -> HttpResponse:
    turn = await doors.send(person_of(request).pk, conversation_id, text, images=images, key=key)
    if not wants_parts(request):
        return redirect(f"/c/{conversation_id}#turn-{turn.pk}")
    return HttpResponse(await look(_sent, request, conversation_id, turn.pk))


def _sent(request: HttpRequest, conversation_id: int, turn_id: int) -> str:
    chat = own(person_of(request).pk, conversation_id)
    context = changes_of(chat, viewer(request), turn=turn_id, streaming=False)
    context |= {"known": False, "known_to": turn_id - 1, "key": new_key()}
    return render_to_string("chat/_changes.html", context, request)


async def _chat_of(request: HttpRequest, turn_id: int) -> int:
    turn = await look(own_turn, person_of(request).pk, turn_id)
    return turn.conversation_id


async def _chat_and_whether_it_stands(request: HttpRequest, turn_id: int) -> tuple[int, bool]:
    """The turn's chat, and whether what was pressed still speaks of it: another tab may have pressed before.

    Pressed again there, it would be answered, and paid for, a second time.
    """
    turn = await look(own_turn, person_of(request).pk, turn_id)
    run = request.POST.get("run", "")
    stands = turn.state in AT_REST or not run.isdecimal() or run == str(turn.run)
    return turn.conversation_id, stands


@require_POST
@told
async def stop(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Stop the answer; what had arrived is kept."""
    chat_id = await _chat_of(request, turn_id)
    await doors.stop(person_of(request).pk, turn_id)
    if wants_parts(request):
        # The turn's own stream tells how it ends.
        return HttpResponse(status=204)
    return redirect(f"/c/{chat_id}")


@require_POST
@told
async def cancel(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Take back a message that has not gone out."""
    chat_id = await _chat_of(request, turn_id)
    await doors.cancel(person_of(request).pk, turn_id)
    return await changed(request, chat_id, turn=turn_id, say="Cancelled. Nothing was sent.")


@require_POST
@told
async def retry(request: HttpRequest, turn_id: int) -> HttpResponse:
    """Answer anew, or ask the route of a waiting turn again."""
    chat_id, stands = await _chat_and_whether_it_stands(request, turn_id)
    if stands:
        await doors.retry(person_of(request).pk, turn_id)
    return await changed(request, chat_id, turn=turn_id, soon=LOOKS)


@require_POST
@told
async def answer_with(request: HttpRequest, turn_id: int) -> HttpResponse:
    """That account answers this message; for a key, a yes for this message alone (R27)."""
    chat_id, stands = await _chat_and_whether_it_stands(request, turn_id)
    if stands:
        await doors.answer_with(person_of(request).pk, turn_id, request.POST.get("account", ""))
    return await changed(request, chat_id, turn=turn_id)


@require_POST
@told
async def allow(request: HttpRequest, turn_id: int, call_id: int) -> HttpResponse:
    """The person's word on a call that asks; pressed again, or in another tab, the first stands."""
    chat_id = await _chat_of(request, turn_id)
    word = request.POST.get("allow", "")
    if word not in {ONCE, ALWAYS, NO}:
        return HttpResponse(status=400)
    await doors.allow(person_of(request).pk, turn_id, call_id, word)
    return await changed(request, chat_id, turn=turn_id, soon=LOOKS)


@require_POST
@told
async def send_now(request: HttpRequest, turn_id: int) -> HttpResponse:
    """*Send now instead* (R35)."""
    chat_id = await _chat_of(request, turn_id)
    await doors.send_now(person_of(request).pk, turn_id)
    if wants_parts(request) and await look(_is_behind, turn_id):
        # The stream of the one before it, which is being stopped, brings this one.
        return HttpResponse(status=204)
    return await changed(request, chat_id, turn=turn_id, soon=LOOKS)


def _is_behind(turn_id: int) -> bool:
    turn = Turn.objects.get(pk=turn_id)
    return Turn.objects.filter(conversation=turn.conversation_id, pk__lt=turn_id, state=Turn.State.RUNNING).exists()


@require_POST
@told
async def switch_back(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The chat waits for its own account (R23)."""
    await doors.switch_back(person_of(request).pk, conversation_id)
    return await changed(request, conversation_id, turn=await look(_routed, request, conversation_id))


@require_POST
@told
async def carry_on(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """End Switch back (R23)."""
    await doors.carry_on(person_of(request).pk, conversation_id)
    turn = await look(_routed, request, conversation_id)
    return await changed(request, conversation_id, turn=turn, soon=LOOKS)


def _routed(request: HttpRequest, conversation_id: int) -> int | None:
    chat = own(person_of(request).pk, conversation_id)
    return chat.lines.filter(kind="limit.routed").order_by("-pk").values_list("turn", flat=True).first()


@require_POST
@told
async def account(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """Who answers this chat from now on, at a limit too."""
    person, slug = person_of(request), request.POST.get("account", "")
    known = {one.slug: one.model for one in await look(connected, person.pk)} | {"local": local_model()}
    if slug not in known:
        raise NotNow("no_account", "That account isn’t connected any more. Choose another.")
    model = request.POST.get("model", "")[:200] or known[slug]
    await doors.choose(person.pk, conversation_id, slug, model)
    return await changed(request, conversation_id, focus=False, say="Saved.", soon=LOOKS)


@require_POST
@told
async def tools(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The tool servers that this chat has from now on: those named, and no others."""
    person = person_of(request)
    await step(_turn_on, person.pk, conversation_id, request.POST.getlist("tools"))
    await doors.asked_again(person.pk)
    return await changed(request, conversation_id, focus=False, say="Saved.", soon=LOOKS)


def _turn_on(person_id: int, conversation_id: int, names: list[str]) -> None:
    chat = own(person_id, conversation_id)
    Conversation.objects.filter(pk=chat.pk).update(tools=known_servers(person_id, names))


@require_POST
@told
async def cap(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """The most that this chat may spend (R18); nothing typed: no amount."""
    given = request.POST.get("cap", "").strip().removeprefix("$").strip()
    try:
        amount = Decimal(given) if given else None
    except InvalidOperation as error:
        raise TooMuch("The amount is a number of dollars, like 2.00.") from error
    if amount is not None and not (amount.is_finite() and 0 <= amount <= MOST_CAP):
        raise TooMuch("The amount is a number of dollars from 0 on, like 2.00.")
    await doors.raise_cap(person_of(request).pk, conversation_id, amount)
    return await changed(request, conversation_id, focus=False, say="Saved.", soon=LOOKS)


@require_POST
def title(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """Rename the chat."""
    chat = _own(request, conversation_id)
    given = " ".join(request.POST.get("title", "").split())[:200]
    if given:
        Conversation.objects.filter(pk=chat.pk).update(title=given, titled=True)
    return redirect(f"/c/{chat.pk}")


@require_POST
async def delete(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """Delete the chat; what runs in it is stopped. The next page offers to undo it."""
    person = person_of(request)
    try:
        chat = await look(own, person.pk, conversation_id)
    except NotHere as error:
        raise Http404 from error
    unfinished = chat.turns.exclude(state__in=("done", "failed", "stopped", "interrupted")).order_by("-pk")
    for turn_id in await look(lambda: list(unfinished.values_list("pk", flat=True))):
        await doors.stop(person.pk, turn_id)
    await step(Conversation.objects.filter(pk=chat.pk).update, deleted_at=timezone.now())
    return redirect(f"/?new&deleted={chat.pk}")


@require_POST
def restore(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """Undo a deletion."""
    mine = Conversation.objects.filter(pk=conversation_id, person=person_of(request))
    if not step_now(mine.update, deleted_at=None, updated_at=F("updated_at")):
        raise Http404
    return redirect(f"/c/{conversation_id}")


def _own(request: HttpRequest, conversation_id: int) -> Conversation:
    try:
        return own(person_of(request).pk, conversation_id)
    except NotHere as error:
        raise Http404 from error
