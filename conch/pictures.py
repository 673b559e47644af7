"""Pictures that a person sends: told apart by their content, never by what their name or type claims.

Each is written anew, turned as its camera meant it and without what else the file told: where it was taken, by whom,
with what. Nothing that hides in a file goes along with it.
"""

import threading
import warnings
from io import BytesIO
from typing import Any

from django.conf import settings

from conch.engines.base import Image

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
MOST_PIXELS = 50_000_000
MOST_FRAMES = 500
# What every provider takes of one image: bytes (Anthropic's 5 MB are of base64), pixels a side. Models look at fewer:
# a larger one is made as small as the sharpest of them sees.
TAKEN_BYTES, TAKEN_SIDE, SEEN_SIDE = 3_700_000, 8_000, 2_576
ALLOWED = "An image is a PNG, JPEG, WebP or GIF file."
ORIENTATION = 0x0112  # Exif
# What Pillow writes of what it has read, unless it is told otherwise.
TOLD = {"exif": b"", "comment": b"", "xmp": b""}
# One picture at a time: unpacked, the largest takes 200 MB.
_unpacking = threading.Lock()
ANIMATED = ("duration", "loop", "disposal", "background", "transparency")


class NotAPicture(ValueError):
    """The bytes can't be taken; says what is allowed. `large`: they are too many."""

    def __init__(self, said: str, *, large: bool = False) -> None:
        super().__init__(said)
        self.large = large


def picture(data: bytes) -> Image:
    """The picture that those bytes are, with the media type that they really have. Raises NotAPicture."""
    if len(data) > settings.IMAGE_BYTES:
        raise _large()
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    try:
        with _unpacking, warnings.catch_warnings():
            warnings.simplefilter("ignore", Pillow.DecompressionBombWarning)
            with Pillow.open(BytesIO(data), formats=list(MEDIA_TYPES)) as opened:
                _measured(opened)
                opened.verify()
            with Pillow.open(BytesIO(data), formats=list(MEDIA_TYPES)) as opened:
                # Two pictures in one JPEG, as some cameras write: the first is what one sees.
                kind = "JPEG" if opened.format == "MPO" else opened.format or ""
                clean, size = _anew(opened, kind)
                if (len(clean) > TAKEN_BYTES or max(size) > TAKEN_SIDE) and not _moves(opened, kind):
                    kind, clean, size = _smaller(clean)
    except NotAPicture:
        raise
    except Pillow.DecompressionBombError as error:
        raise _huge() from error
    # Pillow raises many kinds for broken files, SyntaxError and struct.error among them.
    except (
        UnidentifiedImageError,
        OSError,
        ValueError,
        SyntaxError,
        ArithmeticError,
    ) as error:
        raise NotAPicture(ALLOWED) from error
    if len(clean) > settings.IMAGE_BYTES:
        raise _large()
    return Image(MEDIA_TYPES[kind], clean, *size)


def _large() -> NotAPicture:
    return NotAPicture(f"An image may have {settings.IMAGE_BYTES // 2**20} MiB.", large=True)


def _huge() -> NotAPicture:
    return NotAPicture(f"An image may have {MOST_PIXELS // 1_000_000} megapixels.", large=True)


def _measured(opened: Any) -> None:
    """Raises NotAPicture for more frames, or more pixels over all of them, than are read."""
    frames = 1 if opened.format == "MPO" else getattr(opened, "n_frames", 1)
    if frames > MOST_FRAMES:
        raise NotAPicture(f"An animation may have {MOST_FRAMES} pictures.", large=True)
    if opened.width * opened.height * frames > MOST_PIXELS:
        raise _huge()


def _anew(opened: Any, kind: str) -> tuple[bytes, tuple[int, int]]:
    """The same picture, written anew, with its width and height."""
    from PIL import ImageOps

    told: dict[str, Any] = dict(TOLD)
    if profile := opened.info.get("icc_profile"):
        told["icc_profile"] = profile
    image = opened
    if _moves(opened, kind):
        told |= {"save_all": True} | {name: opened.info[name] for name in ANIMATED if name in opened.info}
    elif opened.getexif().get(ORIENTATION, 1) != 1:
        image = ImageOps.exif_transpose(opened)
    if kind == "JPEG":
        told |= {"quality": "keep"} if image.format == "JPEG" else {"quality": 92}
    elif kind == "WEBP":
        told |= {"quality": 90}
    written = BytesIO()
    image.save(written, kind, **told)
    return written.getvalue(), image.size


def _moves(opened: Any, kind: str) -> bool:
    return kind != "JPEG" and getattr(opened, "n_frames", 1) > 1


def _smaller(clean: bytes) -> tuple[str, bytes, tuple[int, int]]:
    """The same picture small enough for every provider: its kind, its bytes, its width and height."""
    from PIL import Image as Pillow

    with Pillow.open(BytesIO(clean)) as large:
        clear = large.has_transparency_data
        image = large.convert("RGBA" if clear else "RGB")
    image.thumbnail((SEEN_SIDE, SEEN_SIDE))
    kind, written = "WEBP" if clear else "JPEG", BytesIO()
    for quality in (88, 70, 50):
        written = BytesIO()
        image.save(written, kind, quality=quality)
        if written.tell() <= TAKEN_BYTES:
            break
    return kind, written.getvalue(), image.size
