"""*Edit and resend*: a new turn in the place of one that was sent, and of all that came after it.

The old ones are kept, each with `replaced_by`: the page folds them behind *earlier version*, the JSON export has them,
the Markdown hasn't, and no request carries anything of them (R31).
"""

from dataclasses import dataclass
from datetime import datetime

from conch.engines.base import Image
from conch.models import Conversation, Picture, Turn
from conch.turns import actions
from conch.turns.accept import Accepted, accept, checked, title_of, turn_of
from conch.turns.errors import NotNow


@dataclass(frozen=True, slots=True)
class Resent:
    """The new turn, and which turns it took the place of are running still: they are asked to stop."""

    accepted: Accepted
    running: tuple[int, ...] = ()


def resend(person_id: int, turn_id: int, text: str, now: datetime, *, key: str | None = None) -> Resent:
    """Take the edited message in, with the images of the old one; what was unfinished from there on is stopped.

    The same key again is the same turn. Raises NotNow where the message was edited already, TooMuch over a limit.
    """
    old = turn_of(person_id, turn_id)
    images = _images(old)
    text = checked(text, images)
    accepted = accept(person_id, old.conversation_id, text, now, images=images, key=key)
    if not accepted.created:
        return Resent(accepted)
    if old.replaced_by_id is not None:
        raise NotNow("edited", "This message was edited already. Edit the version that stands.")
    branch = Turn.objects.filter(
        conversation_id=old.conversation_id, pk__gte=old.pk, pk__lt=accepted.turn_id, replaced_by=None
    )
    unfinished = branch.exclude(state__in=Turn.ENDS).order_by("-pk")
    for pk in list(unfinished.values_list("pk", flat=True)):
        actions.stop(person_id, pk, now)
    running = tuple(branch.filter(state=Turn.State.RUNNING).values_list("pk", flat=True))
    branch.update(replaced_by=accepted.turn_id)
    _title(old, accepted.turn_id, text)
    return Resent(accepted, running)


def _images(turn: Turn) -> tuple[Image, ...]:
    rows = Picture.objects.filter(attachments__turn=turn).order_by("attachments__pk")
    found = rows.values_list("media_type", "data", "width", "height")
    return tuple(Image(media_type, bytes(data), width or 0, height or 0) for media_type, data, width, height in found)


def _title(old: Turn, new_id: int, text: str) -> None:
    """A title is the first words of the first message (R34), until the person changes it."""
    standing = Turn.objects.filter(conversation_id=old.conversation_id, replaced_by=None, pk__lt=new_id)
    if not standing.exists():
        Conversation.objects.filter(pk=old.conversation_id, titled=False).update(title=title_of(text))
