"""What a person attaches to a message, told by its content: images go along as images, text as part of the message."""

import asyncio
import re
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from conch.engines.base import Image
from conch.pictures import NotAPicture, picture
from conch.turns.errors import TooMuch

BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
NAME_CHARACTERS = 100


async def message(request: HttpRequest) -> tuple[str, tuple[Image, ...]]:
    """The message with its text files, and its images. Raises TooMuch for what is neither."""
    # A form sends line breaks as CR LF.
    text, images = request.POST.get("text", "").replace("\r\n", "\n"), []
    for each in request.FILES.getlist("images"):
        data = each.read()
        written = as_text(data) if not _claims_image(each) else None
        if written is None:
            images.append(await asyncio.to_thread(_picture, each, data))
        else:
            text = with_file(text, each.name or "", written)
    return text, tuple(images)


def as_text(data: bytes) -> str | None:
    """The text that those bytes are, in UTF-8 or, by its mark, UTF-16; None where they are none."""
    encoding = next((name for mark, name in BOMS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")


def with_file(text: str, name: str, content: str) -> str:
    """The message and below it the file, by its name, in a fence that its content can't close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    shown = "".join(character for character in name if character.isprintable() and character != "`")[:NAME_CHARACTERS]
    kind = shown.rpartition(".")[2] if re.fullmatch(r".+\.\w{1,12}", shown, re.ASCII) else ""
    written = f"{shown or 'A file'}:\n{fence}{kind}\n{content.removesuffix(chr(10))}\n{fence}"
    return f"{text}\n\n{written}" if text.strip() else written


def _claims_image(file: "UploadedFile[Any]") -> bool:
    claimed = file.content_type or ""
    return claimed.startswith("image/") and claimed != "image/svg+xml"


def _picture(file: "UploadedFile[Any]", data: bytes) -> Image:
    try:
        return picture(data)
    except NotAPicture as error:
        said = str(error)
        if not error.large and not _claims_image(file):
            said = "A file is text, or an image: PNG, JPEG, WebP or GIF."
        raise TooMuch(said, large=error.large) from error
