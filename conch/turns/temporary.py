"""Temporary chats: gone 24 hours after their last turn ended; what they cost stays in the ledger."""

from datetime import datetime, timedelta

from django.db.models import Exists, Max, OuterRef
from django.db.models.functions import Coalesce

from conch.models import Conversation, Picture, Turn

KEPT = timedelta(hours=24)
MOST_AT_ONCE = 20


def expired(now: datetime) -> list[int]:
    """The temporary chats whose time is over; one with a turn that hasn't ended stays."""
    unfinished = Turn.objects.filter(conversation=OuterRef("pk")).exclude(state__in=Turn.ENDS)
    chats = Conversation.objects.filter(temporary=True, created_at__lt=now - KEPT).filter(~Exists(unfinished))
    over = chats.annotate(last=Coalesce(Max("turns__ended_at"), "created_at")).filter(last__lt=now - KEPT)
    return list(over.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])


def forget(conversation_id: int, now: datetime) -> None:
    """Delete that chat with all that was said in it, unless something has been sent in it meanwhile.

    An image of it goes too, unless it was also sent in another chat.
    """
    if conversation_id in expired(now):
        sent = list(
            Picture.objects.filter(attachments__turn__conversation=conversation_id).values_list("pk", flat=True)
        )
        Conversation.objects.filter(pk=conversation_id).delete()
        Picture.objects.filter(pk__in=sent, attachments=None).only("pk").delete()
