"""A chat of its own for a prompt that nobody watches, with its first turn, in one step: both are there or neither."""

from datetime import datetime

from conch.models import Conversation, Turn
from conch.tasks.agents import Beginning
from conch.turns.accept import accept


def begun(
    person_id: int, how: Beginning, text: str, now: datetime, *, title: str = "", key: str | None = None, routine: bool
) -> Turn:
    """Make the chat and queue its turn, unattended (R25); where this key has made one already, that one's turn.

    Runs within a step. Whoever calls it starts the turn once the step is committed; if they can't, the worker does.
    """
    made = None if key is None else Conversation.objects.filter(person_id=person_id, begun_key=key).first()
    if made is not None:
        return Turn.objects.filter(conversation=made).order_by("pk")[0]
    chat = Conversation.objects.create(
        person_id=person_id,
        title=title,
        titled=bool(title),
        begun_key=key,
        created_at=now,
        updated_at=now,
        **how.columns(),
    )
    accepted = accept(person_id, chat.pk, text, now, unattended=True, routine=routine)
    return Turn.objects.get(pk=accepted.turn_id)
