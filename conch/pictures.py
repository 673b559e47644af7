"""Pictures that a person sends: told apart by their content, never by what their name or type claims."""

import warnings
from io import BytesIO

from django.conf import settings

from conch.engines.base import Image

MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
MOST_PIXELS = 100_000_000


class NotAPicture(ValueError):
    """The bytes can't be taken; says what is allowed. `large`: they are too many."""

    def __init__(self, said: str, *, large: bool = False) -> None:
        super().__init__(said)
        self.large = large


def picture(data: bytes) -> Image:
    """The picture that those bytes are, with the media type that they really have. Raises NotAPicture."""
    if len(data) > settings.IMAGE_BYTES:
        raise NotAPicture(f"An image may have {settings.IMAGE_BYTES // 2**20} MiB.", large=True)
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    allowed = "An image is a PNG, JPEG, WebP or GIF file."
    try:
        with warnings.catch_warnings(), Pillow.open(BytesIO(data), formats=list(MEDIA_TYPES)) as opened:
            warnings.simplefilter("ignore", Pillow.DecompressionBombWarning)
            kind, pixels = opened.format or "", opened.width * opened.height
            opened.verify()
    # Pillow raises many kinds for broken files, SyntaxError and struct.error among them.
    except (
        UnidentifiedImageError,
        Pillow.DecompressionBombError,
        OSError,
        ValueError,
        SyntaxError,
        ArithmeticError,
    ) as error:
        raise NotAPicture(allowed) from error
    if pixels > MOST_PIXELS:
        raise NotAPicture(f"An image may have {MOST_PIXELS // 1_000_000} megapixels.", large=True)
    return Image(MEDIA_TYPES[kind], data)
