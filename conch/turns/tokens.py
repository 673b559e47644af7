"""How many tokens a text is at most, near enough for holds and for what fits (R9, R26).

Three bytes of UTF-8 a token is more than any of the providers' tokenizers needs for prose and code; what came with
earlier replies corrects it where it is known. No provider is asked to count.
"""

from conch.engines.base import Request

BYTES_A_TOKEN = 3
TOKENS_A_MESSAGE = 6
TOKENS_AN_IMAGE = 1_600


def count(text: str, images: int = 0) -> int:
    """The most tokens that one message of this text, and so many images, comes to."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_A_TOKEN) + TOKENS_A_MESSAGE + images * TOKENS_AN_IMAGE


def length(request: Request) -> int:
    """The most tokens that all of a request comes to."""
    said = sum(count(message.text, len(message.images)) for message in request.messages)
    return said + (count(request.instructions) if request.instructions else 0)
