"""Steps that put a turn on its way: a new message, a retry, an account picked for it, the end of its wait.

Each is one short transaction on the writer thread. Nothing is sent from here: a queued turn is claimed by begin.py.
"""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet

from conch.engines.base import Image
from conch.models import Attachment, Attempt, Conversation, Picture, Turn
from conch.turns import statements, tokens
from conch.turns.errors import NotHere, NotNow, TooMuch
from conch.turns.events import Event

TITLE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Accepted:
    """A turn that was taken in; `created` is False where the same message had come before."""

    turn_id: int
    created: bool
    event: Event | None = None


def clean(text: str) -> str:
    """The text as it may be kept and sent: lone surrogates become U+FFFD, NUL is left out (doors.md)."""
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "")


def checked(text: str, images: tuple[Image, ...]) -> str:
    """The cleaned message. Raises TooMuch where it is empty or over a limit."""
    text = clean(text)
    if len(text) > settings.MESSAGE_CHARACTERS:
        allowed = f"{settings.MESSAGE_CHARACTERS:,}"
        raise TooMuch(f"This message has {len(text):,} characters; {allowed} are allowed.", large=True)
    if not text.strip() and not images:
        raise TooMuch("There is nothing to send: the message is empty.")
    if len(images) > settings.IMAGES_A_MESSAGE:
        raise TooMuch(f"{settings.IMAGES_A_MESSAGE} images a message are allowed.")
    return text


def title_of(text: str) -> str:
    """A chat's title: the first words of its first message, by no model (R34)."""
    words = " ".join(text.split())
    if len(words) <= TITLE_CHARACTERS:
        return words or "Image"
    return words[: TITLE_CHARACTERS + 1].rsplit(" ", 1)[0][:TITLE_CHARACTERS] + "…"


def accept(
    person_id: int,
    conversation_id: int,
    text: str,
    now: datetime,
    *,
    images: tuple[Image, ...] = (),
    key: str | None = None,
    once: str = "",
    unattended: bool = False,
    routine: bool = False,
) -> Accepted:
    """Take a message in: the turn, `queued`, and its key. The same key again is the same turn, else NotNow."""
    named = statements.chat_is_named(person_id, conversation_id)
    if named is None:
        raise NotHere
    if key is not None:
        known = Turn.objects.filter(conversation_id=conversation_id, idempotency_key=key).only("id", "text").first()
        if known is not None:
            if known.text != text:
                raise NotNow("key_used", "This idempotency key was used for another message.")
            return Accepted(known.pk, created=False)
    turn_id = statements.insert_turn(
        conversation_id=conversation_id,
        idempotency_key=key,
        text=text,
        text_tokens=tokens.count(text),
        created_at=now,
        position=1,
        once=once,
        unattended=unattended,
        routine=routine,
    )
    event = _queued(turn_id, 1, 1)
    _attach(person_id, turn_id, images, now)
    statements.chat_moved(conversation_id, now, title="" if named else title_of(text))
    return Accepted(turn_id, created=True, event=event)


def _attach(person_id: int, turn_id: int, images: tuple[Image, ...], now: datetime) -> None:
    for image in images:
        picture = kept(person_id, image, now)
        Attachment.objects.create(person_id=person_id, turn_id=turn_id, picture=picture, created_at=now)


def kept(person_id: int, image: Image, now: datetime) -> Picture:
    """That image as it is kept: once for each person, however often it is sent."""
    from hashlib import sha256

    facts = {"media_type": image.media_type, "data": image.data, "created_at": now}
    size = {"width": image.width or None, "height": image.height or None}
    picture, _ = Picture.objects.defer("data").get_or_create(
        person_id=person_id, sha256=sha256(image.data).hexdigest(), defaults=facts | size
    )
    return picture


def _queued(turn_id: int, run: int, position: int) -> Event:
    event = Event(position, "queued", {})
    statements.insert_events([(event, turn_id, run)])
    return event


def turn_of(person_id: int, turn_id: int) -> Turn:
    """The person's turn. Raises NotHere."""
    turn = statements.turn_with_chat(turn_id)
    if turn is None or turn.conversation.person_id != person_id or turn.conversation.deleted_at is not None:
        raise NotHere
    return turn


def again(turn: Turn, now: datetime, *, once: str = "") -> bool:
    """Queue the turn for a new run; False where it is queued or running already (the same run goes on).

    A run begins with an empty answer; what an ended run had said stays with its attempts. One that had ended begins
    to wait anew, where it waits again; one that waits goes on waiting since when it did.
    """
    position = turn.position + 1
    anew = {"waiting_since": None, "wakes": 0} if turn.state in Turn.ENDS else {}
    changed = Turn.objects.filter(pk=turn.pk, state=turn.state, run=turn.run).exclude(
        state__in=[Turn.State.QUEUED, Turn.State.RUNNING]
    )
    updated = changed.update(
        state=Turn.State.QUEUED,
        run=turn.run + 1,
        position=position,
        answer="",
        answer_tokens=None,
        account="",
        model="",
        input_tokens=None,
        output_tokens=None,
        cost_nano=None,
        ending="",
        failure_code="",
        failure={},
        started_at=None,
        ended_at=None,
        until=None,
        wake_at=None,
        stop_asked=False,
        once=once,
        owner="",
        lease_until=None,
        unattended=False,
        routine=False,
        **anew,
    )
    if updated:
        if turn.answer:
            said = Attempt.objects.filter(turn_id=turn.pk, run=turn.run, partial="").order_by("-pk").values("pk")[:1]
            Attempt.objects.filter(pk__in=list(said.values_list("pk", flat=True))).update(partial=turn.answer)
        _queued(turn.pk, turn.run + 1, position)
        Conversation.objects.filter(pk=turn.conversation_id).update(updated_at=now)
    return bool(updated)


def unfinished_before() -> QuerySet[Turn]:
    """For a filter on turns: the turns of the same chat that go before it and have not ended (R35)."""
    states = [Turn.State.QUEUED, Turn.State.RUNNING, Turn.State.WAITING, Turn.State.CAPPED]
    return Turn.objects.filter(
        Q(pk__lt=OuterRef("pk")) | Q(state=Turn.State.RUNNING),
        ~Q(pk=OuterRef("pk")),
        conversation_id=OuterRef("conversation_id"),
        state__in=states,
    )


def next_queued(conversation_id: int) -> int | None:
    """The queued turn of that chat that may run now, if there is one."""
    return statements.next_queued(conversation_id)
