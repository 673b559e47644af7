"""What an account is handed of a chat: plain conversation, nothing missing, nothing twice (R20, R31).

Every request carries the chat as messages. An answer that somebody else gave is marked with who gave it, in a plain
line before it; what was cut off is marked as cut off; a version that an edit replaced is left out. Thinking,
signatures and tool ids never leave the run that they came in, since only text, images and what tools gave are kept; the
last stands, marked as data, after the message that they ran for.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from conch.engines.base import Image, Message
from conch.models import Picture, ToolCall, Turn
from conch.turns import statements, tokens

CUT_OFF = "[This answer was cut off here.]"
OLDER_IMAGE = "[An image was here, which this model can’t see.]"
# The plain line before an answer of another, and the mark of one that was cut off.
TOKENS_OF_MARKS = 24

_CUT = frozenset({Turn.State.STOPPED, Turn.State.INTERRUPTED, Turn.State.FAILED})


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the person with what answered it; `images` is how many came with it, `tools` what tools gave.

    In tokens: `text_tokens` is the message, `answer_tokens` what answered it (None: not counted yet), `image_tokens`
    its images.
    """

    turn_id: int
    text: str
    answer: str = ""
    account: str = ""
    label: str = ""
    cut: bool = False
    images: int = 0
    tools: str = ""
    text_tokens: int | None = None
    answer_tokens: int | None = None
    image_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All of it, as it would be sent."""
        whole = self.image_tokens + (tokens.count(self.text) if self.text_tokens is None else self.text_tokens)
        if self.tools:
            whole += _count_again(self.tools)
        if self.answer:
            answer = tokens.count(self.answer) if self.answer_tokens is None else self.answer_tokens
            whole += answer + TOKENS_OF_MARKS
        return whole


@lru_cache(maxsize=512)
def _count_again(text: str) -> int:
    """What tools gave is put together anew for each turn: counted once all the same."""
    return tokens.count(text)


@dataclass(frozen=True, slots=True)
class Handed:
    """What is sent: the messages, and what was left out of the chat for it."""

    messages: tuple[Message, ...]
    tokens: int
    left_out: int = 0
    images_left_out: bool = False


def history(turn: Turn, labels: dict[str, str]) -> list[Said]:
    """The chat up to and with that turn, oldest first. `labels`: account slug → label, for who gave an answer.

    Called in a step: what was not counted yet (a chat of before) is counted here, once, and written down.
    """
    sizes, given = _image_tokens(turn), _given(turn)
    said, uncounted = [], []
    for pk, text, answer, account, state, ending, kept, kept_of_answer in statements.history(
        turn.conversation_id, turn.pk
    ):
        counted = kept is not None and kept_of_answer is not None
        counts = (kept, kept_of_answer) if counted else (tokens.count(text), tokens.count(answer))
        if not counted:
            uncounted.append((*counts, pk))
        images = sizes.get(pk, ())
        said.append(
            Said(
                pk,
                text,
                answer,
                account,
                labels.get(account, account),
                cut=state in _CUT or ending == "cut",
                images=len(images),
                tools=given.get(pk, ""),
                text_tokens=counts[0],
                answer_tokens=counts[1],
                image_tokens=sum(images),
            )
        )
    if uncounted:
        statements.keep_counts(uncounted)
    images = sizes.get(turn.pk, ())
    newest = Said(
        turn.pk,
        turn.text,
        images=len(images),
        tools=given.get(turn.pk, ""),
        text_tokens=turn.text_tokens,
        image_tokens=sum(images),
    )
    return [*said, newest]


def _image_tokens(turn: Turn) -> dict[int, list[int]]:
    """What each image of the chat comes to in tokens, by its turn."""
    found: dict[int, list[int]] = defaultdict(list)
    for turn_id, width, height in statements.pictures(turn.conversation_id):
        found[turn_id].append(tokens.of_image(width, height))
    return found


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
    """The tokens that these come to, with the instructions."""
    return sum(one.tokens for one in said) + (tokens.count(instructions) if instructions else 0)


def handed(
    said: Sequence[Said],
    account: str,
    *,
    fits: int | None = None,
    instructions: str = "",
    sees: bool = True,
) -> Handed:
    """The chat as that account gets it; to fit in `fits` tokens the oldest whole messages are left out."""
    whole, oldest = length(said, instructions), 0
    while fits is not None and whole > fits and oldest < len(said) - 1:
        whole -= said[oldest].tokens
        oldest += 1
    kept = said[oldest:]
    images = _images([s.turn_id for s in kept if s.images]) if sees else {}
    messages: list[Message] = []
    for one in kept:
        messages.append(_question(one, images.get(one.turn_id, ()), sees=sees))
        if one.answer:
            messages.append(_answer(one, account))
    left_out = sum(2 if s.answer else 1 for s in said[:oldest])
    unseen = not sees and any(s.images for s in kept)
    return Handed(tuple(messages), whole, left_out, images_left_out=unseen)


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
    rows = Picture.objects.filter(attachments__turn_id__in=turn_ids).order_by("attachments__pk")
    for turn_id, media_type, data in rows.values_list("attachments__turn_id", "media_type", "data"):
        found[turn_id] = (*found.get(turn_id, ()), Image(media_type, bytes(data)))
    return found
