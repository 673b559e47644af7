"""What is attached to a message: images without what else their files tell, text as part of the message."""

from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image, ImageSequence, PngImagePlugin

from conch.chat.files import as_text, with_file
from conch.models import Attachment, Turn
from conch.pictures import NotAPicture, picture
from tests.conftest import make_account
from tests.pages.conftest import a_chat

SECRET = "48.85 N, taken by Ada"


def exif():
    told = Image.Exif()
    told[0x010E] = SECRET  # ImageDescription
    told[0x0112] = 6  # Orientation: to be turned by 90 degrees
    return told.tobytes()


def a_file(kind):
    image = Image.new("RGB", (20, 10), "red")
    written, more = BytesIO(), {}
    if kind == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_text("Comment", SECRET)
        info.add_itxt("XML:com.adobe.xmp", SECRET)
        more = {"pnginfo": info, "exif": exif()}
    elif kind == "GIF":
        image, more = image.convert("P"), {"comment": SECRET.encode()}
    elif kind == "JPEG":
        more = {"comment": SECRET.encode(), "exif": exif(), "xmp": SECRET.encode()}
    else:
        more = {"exif": exif(), "xmp": SECRET.encode()}
    image.save(written, kind, **more)
    return written.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_what_a_file_tells_besides_its_picture_is_left_out(kind):
    given = a_file(kind)
    assert SECRET.encode() in given

    taken = picture(given)

    assert SECRET.encode() not in taken.data
    assert taken.media_type == f"image/{kind.lower()}"
    with Image.open(BytesIO(taken.data)) as seen:
        assert seen.size == ((20, 10) if kind == "GIF" else (10, 20))
        assert not seen.getexif()
        assert seen.convert("RGB").getpixel((5, 5))[0] > 200


def test_what_hides_behind_a_picture_stays_behind():
    hidden = a_file("PNG") + b"PK\x03\x04 an archive"

    assert b"an archive" not in picture(hidden).data


def test_an_animation_goes_on_moving():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "green", "blue")]
    written = BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:], duration=90, comment=SECRET.encode())

    taken = picture(written.getvalue())

    assert SECRET.encode() not in taken.data
    with Image.open(BytesIO(taken.data)) as seen:
        assert len(list(ImageSequence.Iterator(seen))) == 3


@pytest.mark.parametrize("turned", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_picture_stands_as_its_camera_meant_it(kind, turned):
    """However it was held: eight ways, of which four change width and height."""
    upright = Image.new("RGB", (32, 16), "blue")
    upright.paste("red", (0, 0, 16, 8))  # the corner at the top left
    ways = Image.Transpose
    undo = {2: ways.FLIP_LEFT_RIGHT, 3: ways.ROTATE_180, 4: ways.FLIP_TOP_BOTTOM, 5: ways.TRANSPOSE}
    undo |= {6: ways.ROTATE_90, 7: ways.TRANSVERSE, 8: ways.ROTATE_270}
    told, written = Image.Exif(), BytesIO()
    told[0x0112] = turned
    stored = upright.transpose(undo[turned]) if turned in undo else upright
    stored.save(written, kind, exif=told.tobytes())

    taken = picture(written.getvalue())

    with Image.open(BytesIO(taken.data)) as seen:
        assert seen.size == (taken.width, taken.height) == (32, 16)
        red, blue = seen.convert("RGB").getpixel((4, 3)), seen.convert("RGB").getpixel((28, 12))
        assert red[0] > red[2] + 100
        assert blue[2] > blue[0] + 100


@pytest.mark.parametrize(
    ("kind", "mode", "becomes"), [("JPEG", "RGB", "jpeg"), ("PNG", "RGB", "jpeg"), ("PNG", "RGBA", "webp")]
)
def test_a_picture_too_large_for_some_provider_is_made_as_small_as_models_see(kind, mode, becomes):
    """A photo of today's phones is beyond what Anthropic takes; one that every provider takes stays as it is."""
    noise = Image.effect_noise((2_400, 1_800), 120)
    photo = Image.merge("RGB", (noise, noise.rotate(90).resize(noise.size), noise.rotate(180))).convert(mode)
    if mode == "RGBA":
        photo.putalpha(noise)
    written = BytesIO()
    photo.save(written, kind, **({"quality": 97} if kind == "JPEG" else {"compress_level": 1}))
    if len(written.getvalue()) > 8 * 1024 * 1024:
        photo = photo.crop((0, 0, 1_500, 1_200))
        written = BytesIO()
        photo.save(written, kind, compress_level=1)

    taken = picture(written.getvalue())

    assert len(written.getvalue()) > 3_700_000 >= len(taken.data)
    assert taken.media_type == f"image/{becomes}"
    assert (taken.width, taken.height) == photo.size  # fewer bytes do: it wasn't wider than models see


def test_a_picture_longer_than_some_provider_takes_keeps_its_shape():
    written = BytesIO()
    Image.new("RGB", (9_000, 300), "green").save(written, "PNG")

    taken = picture(written.getvalue())

    assert (taken.width, taken.height) == (2_576, 86)
    assert taken.media_type == "image/jpeg"


def a_png_that_claims(width, height):
    """A small file whose head says that it is huge; its data are zeroes, which pack well."""
    import struct
    import zlib

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress(bytes(1_000_000))
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def a_png_that_tells(size):
    """A PNG with a text that unpacks to so many bytes."""
    info, written = PngImagePlugin.PngInfo(), BytesIO()
    info.add_text("Comment", "x" * size, zip=True)
    Image.new("RGB", (4, 4)).save(written, "PNG", pnginfo=info)
    return written.getvalue()


def a_gif_of(frames):
    import struct

    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return head + frame * frames + b";"


@pytest.mark.parametrize(
    ("data", "large"),
    [
        (a_png_that_claims(60_000, 60_000), True),
        (a_png_that_claims(8_000, 8_000), True),
        (a_png_that_tells(100_000_000), False),
        (a_gif_of(100_000), True),
        (b"\x89PNG" + bytes(9 * 1024 * 1024), True),
    ],
)
def test_a_small_file_that_would_unpack_to_a_huge_one_is_not_unpacked(data, large):
    """Bombs: told by their head, in bounded memory."""
    import tracemalloc

    tracemalloc.start()
    try:
        with pytest.raises(NotAPicture) as said:
            picture(data)
        assert tracemalloc.get_traced_memory()[1] < 80_000_000
    finally:
        tracemalloc.stop()
    assert said.value.large is large


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_what_breaks_off_is_no_picture(kind):
    """Truncated at any place in its data: nothing half is sent."""
    noise, written = Image.effect_noise((64, 64), 90).convert("RGB"), BytesIO()
    noise.save(written, kind)
    whole = written.getvalue()

    for part in (0.1, 0.5, 0.9):
        with pytest.raises(NotAPicture):
            picture(whole[: int(len(whole) * part)])


SCRIPT = b"<script>alert(document.cookie)</script>"


@pytest.mark.parametrize(
    "data",
    [
        a_file("GIF").replace(b"GIF89a", b"GIF89a", 1) + SCRIPT,
        a_file("JPEG") + SCRIPT + b"PK\x05\x06" + bytes(18),
        a_file("PNG") + b"%PDF-1.7" + SCRIPT,
        a_file("JPEG")[:2] + b"\xff\xfe" + (len(SCRIPT) + 2).to_bytes(2, "big") + SCRIPT + a_file("JPEG")[2:],
    ],
)
def test_a_file_that_is_two_things_goes_on_as_the_picture_alone(data):
    """Polyglots: what a browser or an archiver would find in it is gone."""
    taken = picture(data)

    for other in (b"<script", b"PK\x05\x06", b"%PDF"):
        assert other not in taken.data


@pytest.mark.parametrize(
    "data",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        b"BM" + bytes(60),
        b"II*\0" + bytes(60),
        b"%!PS-Adobe-3.0 EPSF-3.0\n" + bytes(60),
        b"RIFF\x24\0\0\0WAVEfmt " + bytes(30),
        b"\0\0\0\x18ftypavif" + bytes(30),
    ],
)
def test_other_kinds_of_images_are_not_even_tried(data):
    """Their readers are where the holes were."""
    with pytest.raises(NotAPicture, match="PNG, JPEG, WebP or GIF"):
        picture(data)


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n broken", b"GIF89a", b"%PDF-1.7 \xff", a_file("JPEG")[:60]])
def test_what_is_broken_or_something_else_is_no_picture(data):
    with pytest.raises(NotAPicture):
        picture(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a,b\r\n1,2\r\n", "a,b\n1,2\n"),
        ("π, 日本, 🐚".encode(), "π, 日本, 🐚"),
        ("\ufeffmarked".encode(), "marked"),
        ("wide".encode("utf-16"), "wide"),
        (b"\xff\xd8\xff\xe0", None),
        (b"nul \0 inside", None),
        (a_file("PNG"), None),
        (a_file("GIF"), None),
    ],
)
def test_text_is_told_by_its_content(data, text):
    assert as_text(data) == text


def test_a_file_stands_in_a_fence_that_it_cant_close_under_its_name():
    whole = with_file("Why?", "notes\u202e`.md", "```py\nx = 1\n```\n")

    assert whole == "Why?\n\nnotes.md:\n````md\n```py\nx = 1\n```\n````"
    assert with_file(" ", "", "x") == "A file:\n```\nx\n```"


@pytest.mark.django_db(transaction=True)
def test_text_and_images_go_with_a_message_by_what_they_are(ada, as_ada):
    make_account(ada, state="signed_out")
    chat = a_chat(ada)
    files = [
        SimpleUploadedFile("orders.csv", b"id,total\n1,2\n", "text/csv"),
        SimpleUploadedFile("photo.dat", a_file("JPEG"), "application/octet-stream"),
    ]

    as_ada.post(f"/c/{chat.pk}/messages", {"text": "Sum it up", "images": files})

    assert Turn.objects.get().text == "Sum it up\n\norders.csv:\n```csv\nid,total\n1,2\n```"
    assert Attachment.objects.get().picture.media_type == "image/jpeg"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("file", "status", "said"),
    [
        (("a.zip", b"PK\x03\x04\xff\xff", "application/zip"), 422, "A file is text, or an image"),
        (("a.png", b"only text", "image/png"), 422, "An image is a PNG"),
        (("a.txt", b"x" * 200_001, "text/plain"), 413, "200,000 are allowed"),
    ],
)
def test_what_cant_be_taken_is_said_and_nothing_is_sent(ada, as_ada, file, status, said):
    make_account(ada)
    chat = a_chat(ada)

    given = {"text": "here", "images": SimpleUploadedFile(*file)}
    response = as_ada.post(f"/c/{chat.pk}/messages", given, headers={"HX-Request": "true"})

    assert response.status_code == status
    assert said in response.content.decode()
    assert not Turn.objects.exists()
