"""What a page of a chat shows, whole or in parts: the same templates either way, in a fixed number of queries."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import Q, QuerySet

from conch.accounts import lists
from conch.chat import sidebar
from conch.chat.composing import Composer, composer_for
from conch.chat.servers import servers_for
from conch.chat.shown import TURNS_A_PAGE, Names, Rows, ShownTurn, names_of, present, read
from conch.copy.clock import Viewer
from conch.models import Conversation, Turn
from conch.turns.errors import NotHere

AT_REST = (Turn.State.WAITING, Turn.State.CAPPED)
# A page looks again by itself at a reset that is nearer than this; a later one it finds by its looks every 5 s.
SOON = timedelta(hours=1)
JUST_NOW = timedelta(seconds=10)


def new_key() -> str:
    """A key for the next message: sent twice, it is the same message."""
    return uuid4().hex


def own(person_id: int, conversation_id: int) -> Conversation:
    """The person's chat. Raises NotHere for another's, and for one that was deleted."""
    chat = Conversation.objects.filter(pk=conversation_id, person_id=person_id, deleted_at=None).first()
    if chat is None:
        raise NotHere
    return chat


def own_turn(person_id: int, turn_id: int) -> Turn:
    """The person's turn with its chat. Raises NotHere."""
    mine = Turn.objects.filter(conversation__person_id=person_id, conversation__deleted_at=None)
    turn = mine.select_related("conversation").filter(pk=turn_id).first()
    if turn is None:
        raise NotHere
    return turn


def current(chat: Conversation) -> QuerySet[Turn]:
    """The turns of a chat that stand: not those that an edit put another in the place of."""
    return Turn.objects.filter(conversation=chat, replaced_by=None)


def whole(chat: Conversation, viewer: Viewer, *, before: int | None = None, q: str = "") -> dict[str, Any]:
    """A whole page: the newest turns, or those before one of them."""
    turns = current(chat) if before is None else current(chat).filter(pk__lt=before)
    newest = list(turns.order_by("-pk").values_list("pk", flat=True)[: TURNS_A_PAGE + 1])
    rows = read(chat, Turn.objects.filter(pk__in=newest[:TURNS_A_PAGE]))
    context = around(chat, rows, viewer, q=q)
    shown = present(chat, rows, names_of(chat.person_id), viewer)
    return context | {
        "turns": shown,
        "say": "" if before else _just_said(rows, shown, viewer.now),
        "earlier": newest[TURNS_A_PAGE - 1] if len(newest) > TURNS_A_PAGE else None,
        "later": before is not None,
        "key": new_key(),
        "cap": None if chat.spend_cap_nano is None else f"{chat.spend_cap_nano / 10**9:.2f}",
    }


def _just_said(rows: Rows, shown: list[ShownTurn], now: datetime) -> str:
    """What a first message led to before its page was there, for those who would have heard it on an open page."""
    if not shown or shown[-1].watched or now - rows.turns[-1].created_at > JUST_NOW:
        return ""
    return shown[-1].spoken


def before_with(chat: Conversation, turn: int | None) -> int | None:
    """Where a page ends that has that turn in its middle; None where the newest page has it."""
    if turn is None:
        return None
    later = list(current(chat).filter(pk__gt=turn).order_by("pk").values_list("pk", flat=True)[:TURNS_A_PAGE])
    return later[TURNS_A_PAGE // 2] if len(later) == TURNS_A_PAGE else None


def changes(
    chat: Conversation,
    viewer: Viewer,
    *,
    turn: int | None = None,
    focus: bool = False,
    say: str = "",
    soon: int = 0,
    streaming: bool = True,
) -> dict[str, Any]:
    """What an action may have changed: its turn, those not answered yet, the one with the latest routed line.

    `streaming`: also a turn that the page may be watching; its stream begins anew.
    """
    open_turns = _open(chat) if streaming else _open(chat).exclude(state=Turn.State.RUNNING)
    rows = read(chat, current(chat).filter(Q(pk=turn or 0) | Q(pk__in=open_turns) | Q(pk__in=_routed(chat))))
    shown = present(chat, rows, names_of(chat.person_id), viewer, focus=turn if focus else None)
    return around(chat, rows, viewer, soon=soon) | {"turns": shown, "known": True, "say": say}


def news(
    chat: Conversation,
    viewer: Viewer,
    *,
    have: int,
    live: int | None,
    since: datetime,
    soon: int = 0,
    hidden: bool = False,
) -> dict[str, Any]:
    """What has changed since a page was shown: turns that came, ended or moved on; not the one it watches.

    Where the clock was set back meanwhile, no time says what is new: the newest turns are all shown again.
    `hidden`: nobody sees the page, so what is new in its own chat counts as unread, too.
    """
    newer = Q(pk__gt=have) | Q(ended_at__gte=since) | Q(pk__in=_open(chat)) | Q(pk__in=_routed(chat))
    if since > viewer.now:
        newer |= Q(pk__in=current(chat).order_by("-pk").values_list("pk", flat=True)[:TURNS_A_PAGE])
    rows = read(chat, current(chat).filter(newer).exclude(pk=live or 0, state=Turn.State.RUNNING))
    shown = present(chat, rows, names_of(chat.person_id), viewer)
    gone = Turn.objects.filter(conversation=chat, pk__lte=have, replaced_by__gt=have)
    return around(chat, rows, viewer, soon=soon, hidden=hidden) | {
        "turns": shown,
        "known_to": have,
        "gone": list(gone.values_list("pk", flat=True)),
    }


def _open(chat: Conversation) -> QuerySet[Turn, int]:
    return current(chat).exclude(state__in=Turn.ENDS).values_list("pk", flat=True)


def _routed(chat: Conversation) -> QuerySet[Any, Any]:
    return chat.lines.filter(kind="limit.routed").order_by("-pk").values_list("turn", flat=True)[:1]


def around(
    chat: Conversation, rows: Rows, viewer: Viewer, *, q: str = "", soon: int = 0, hidden: bool = False
) -> dict[str, Any]:
    """What is around the turns: the box, the sidebar, what is looked at again.

    `soon`: how many more looks a second apart, while a waiting turn asks its route again.
    """
    open_turns = rows.unfinished
    running = open_turns[0][0] if open_turns and open_turns[0][1] not in AT_REST else None
    resting = [until for _, state, until in open_turns if state in AT_REST]
    until = min((at for at in resting if at), default=None)
    rest_seconds = (
        max(5, int((until - viewer.now).total_seconds()) + 3) if until and until - viewer.now < SOON else None
    )
    return {
        "chat": chat,
        "running": running,
        "rests": bool(resting),
        "behind": len(open_turns) > 1,
        "stamp": rows.stamp,
        "rest_seconds": 1 if resting and soon else rest_seconds,
        "soon": soon - 1 if soon else 0,
        "reload_in": 3 if running else rest_seconds or (20 if resting else None),
        "have": rows.last or 0,
        "since": viewer.now.isoformat(),
        **shell_of(chat.person_id, chat.account, chat.pk, viewer, q=q, hidden=hidden, tools=chat.tools),
    }


def shell_of(
    person_id: int,
    account: str,
    conversation_id: int | None,
    viewer: Viewer,
    *,
    model: str = "",
    q: str = "",
    hidden: bool = False,
    tools: Sequence[str] = (),
) -> dict[str, Any]:
    """The sidebar and the box, of a chat or of a new one; lists of models that are old are read after it."""
    lists.shown_to(person_id)
    composer: Composer = composer_for(person_id, account, conversation_id, viewer, model=model)
    listed = sidebar.listed(person_id, viewer, q, within=None if hidden else conversation_id)
    return {"composer": composer, "servers": servers_for(person_id, tools), **listed}


def turn_parts(turn: Turn, names: Names, viewer: Viewer) -> tuple[ShownTurn, Rows]:
    """One turn as its page shows it."""
    rows = read(turn.conversation, Turn.objects.filter(pk=turn.pk))
    return present(turn.conversation, rows, names, viewer)[0], rows
