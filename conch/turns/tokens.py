"""How many tokens a message has, near enough for holds and for what fits (R9, R26). No provider is asked to count.

Counted with the vocabulary of OpenAI's models, which is in the library's wheel: nothing is fetched. Other models split
text otherwise; what came with earlier replies of an account's model corrects it (conch/accounts/abilities.py). Each
message is counted once and its count kept with it: a chat of 200 messages costs 200 additions a turn.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from conch.engines.base import Request, Tool

if TYPE_CHECKING:
    from splintr import AnyTokenizer

VOCABULARY = "o200k_base"
# What stands around a message: its role, and the marks between messages.
TOKENS_A_MESSAGE = 6
# Text is split in pieces of so many characters first: one endless word takes time with the square of its length.
PIECE = 2_000
# An image costs a token for every 750 of its pixels, and providers make one smaller before it costs more than most.
PIXELS_A_TOKEN = 750
MOST_FOR_AN_IMAGE, LEAST_FOR_AN_IMAGE = 4_800, 100


@lru_cache(maxsize=1)
def _tokenizer() -> "AnyTokenizer":
    """Some 45 ms and 30 MB at the first message of a process: a process that answers nobody doesn't pay for it."""
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(VOCABULARY)


def count(text: str) -> int:
    """The tokens that one message of this text comes to."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    encode = _tokenizer().encode_ordinary
    return TOKENS_A_MESSAGE + sum(len(encode(text[at : at + PIECE])) for at in range(0, len(text), PIECE))


def of_image(width: int | None, height: int | None) -> int:
    """The tokens of an image of so many pixels; the most, where its size isn't known."""
    if not width or not height:
        return MOST_FOR_AN_IMAGE
    return min(MOST_FOR_AN_IMAGE, LEAST_FOR_AN_IMAGE + width * height // PIXELS_A_TOKEN)


def of_tools(tools: Iterable[Tool]) -> int:
    """The tokens of the tools that go along with a request."""
    import json

    return sum(count(f"{tool.name} {tool.description} {json.dumps(dict(tool.schema))}") for tool in tools)


def length(request: Request) -> int:
    """The tokens that all of a request comes to, counted anew."""
    images = sum(len(message.images) for message in request.messages)
    said = sum(count(message.text) for message in request.messages)
    said += sum(count(outcome.text) for message in request.messages for outcome in message.outcomes)
    said += count(request.instructions) if request.instructions else 0
    return said + images * MOST_FOR_AN_IMAGE + of_tools(request.tools)
