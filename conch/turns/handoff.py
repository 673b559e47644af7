"""What an account is handed of a chat: plain conversation, nothing missing, nothing twice (R20, R31).

Every request carries the chat as messages. An answer that somebody else gave is marked with who gave it, in a plain
line before it; what was cut off is marked as cut off; a version that an edit replaced is left out. Thinking,
signatures and tool ids never leave the run that they came in, since only text, images and what tools gave are kept; the
last stands, marked as data, after the message that they ran for.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from conch.engines.base import Image, Message
from conch.models import Attachment, ToolCall, Turn
from conch.turns import statements, tokens

CUT_OFF = "[This answer was cut off here.]"
OLDER_IMAGE = "[An image was here, which this model can’t see.]"

_CUT = frozenset({Turn.State.STOPPED, Turn.State.INTERRUPTED, Turn.State.FAILED})


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the person with what answered it; `images` is how many came with it, `tools` what tools gave."""

    turn_id: int
    text: str
    answer: str = ""
    account: str = ""
    label: str = ""
    cut: bool = False
    images: int = 0
    tools: str = ""


@dataclass(frozen=True, slots=True)
class Handed:
    """What is sent: the messages, and what was left out of the chat for it."""

    messages: tuple[Message, ...]
    tokens: int
    left_out: int = 0
    images_left_out: bool = False


def history(turn: Turn, labels: dict[str, str]) -> list[Said]:
    """The chat up to and with that turn, oldest first. `labels`: account slug → label, for who gave an answer."""
    seen = statements.history(turn.conversation_id, turn.pk)
    pictures = Counter(statements.pictures(turn.conversation_id))
    given = _given(turn)
    earlier = [
        Said(
            pk,
            text,
            answer,
            account,
            labels.get(account, account),
            state in _CUT or ending == "cut",
            pictures[pk],
            given.get(pk, ""),
        )
        for pk, text, answer, account, state, ending in seen
    ]
    return [*earlier, Said(turn.pk, turn.text, images=pictures[turn.pk], tools=given.get(turn.pk, ""))]


def _given(turn: Turn) -> dict[int, str]:
    """What tools gave for each message of the chat, as plain conversation: who answers need not know how they ran."""
    given: dict[int, list[str]] = defaultdict(list)
    for turn_id, tool, arguments, state, outcome, length_ in statements.calls(turn.conversation_id, turn.pk):
        asked = f"{tool} {json.dumps(arguments, ensure_ascii=False)}"
        if state == ToolCall.State.DECLINED:
            given[turn_id].append(f"[The person said no to this call: {asked}]")
            continue
        how = "This call failed" if state == ToolCall.State.FAILED else "This was run for the message above"
        rest = f"\n[… {length_ - len(outcome)} characters more]" if length_ > len(outcome) else ""
        given[turn_id].append(f"[{how}: {asked} It gave, as data:]\n{outcome}{rest}\n[The end of it.]")
    return {turn_id: "\n\n".join(parts) for turn_id, parts in given.items()}


def length(said: Sequence[Said], instructions: str = "") -> int:
    """The most tokens that these come to, with the instructions."""
    spoken = sum(
        tokens.count(s.text + s.tools, s.images) + (tokens.count(s.answer) + 12 if s.answer else 0) for s in said
    )
    return spoken + (tokens.count(instructions) if instructions else 0)


def handed(
    said: Sequence[Said],
    account: str,
    *,
    fits: int | None = None,
    instructions: str = "",
    sees: bool = True,
) -> Handed:
    """The chat as that account gets it; to fit in `fits` tokens the oldest whole messages are left out."""
    kept = list(said)
    if fits is not None:
        while len(kept) > 1 and length(kept, instructions) > fits:
            kept.pop(0)
    images = _images([s.turn_id for s in kept if s.images]) if sees else {}
    messages: list[Message] = []
    for one in kept:
        messages.append(_question(one, images.get(one.turn_id, ()), sees=sees))
        if one.answer:
            messages.append(_answer(one, account))
    left_out = sum(2 if s.answer else 1 for s in said) - sum(2 if s.answer else 1 for s in kept)
    unseen = not sees and any(s.images for s in kept)
    return Handed(tuple(messages), length(kept, instructions), left_out, images_left_out=unseen)


def _question(one: Said, images: tuple[Image, ...], *, sees: bool) -> Message:
    text = one.text if sees or not one.images else f"{OLDER_IMAGE}\n{one.text}"
    return Message("user", f"{text}\n\n{one.tools}" if one.tools else text, images)


def _answer(one: Said, account: str) -> Message:
    text = one.answer if one.account == account or not one.account else f"[{one.label} answered:]\n{one.answer}"
    return Message("assistant", f"{text}\n\n{CUT_OFF}" if one.cut else text)


def _images(turn_ids: Sequence[int]) -> dict[int, tuple[Image, ...]]:
    if not turn_ids:
        return {}
    found: dict[int, tuple[Image, ...]] = {}
    rows = Attachment.objects.filter(turn_id__in=turn_ids).order_by("pk")
    for turn_id, media_type, data in rows.values_list("turn_id", "media_type", "data"):
        found[turn_id] = (*found.get(turn_id, ()), Image(media_type, bytes(data)))
    return found
