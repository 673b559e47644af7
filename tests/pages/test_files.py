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
