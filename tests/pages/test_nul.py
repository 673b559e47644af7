"""A NUL in what a browser sends: left out of forms and queries, and no address has one (doors.md)."""

from io import BytesIO

import pytest

from conch.handler import Handler

SCOPE = {"type": "http", "method": "POST", "path": "/begin", "query_string": b"", "headers": []}
BOUNDARY = "b0undary"
URLENCODED = (b"application/x-www-form-urlencoded", b"text=a%00b&ke%00y=%00&text=c")
MULTIPART = (
    f"multipart/form-data; boundary={BOUNDARY}".encode(),
    b"".join(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"
        for name, value in (("text", b"a\0b"), ("key", b"\0"), ("text", b"c"))
    )
    + f"--{BOUNDARY}--\r\n".encode(),
)


def request_of(body=b"", kind=b"", **scope):
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    request, refusal = Handler().create_request({**SCOPE, "headers": headers, **scope}, BytesIO(body))
    assert refusal is None
    return request


@pytest.mark.parametrize(("kind", "body"), [URLENCODED, MULTIPART], ids=["urlencoded", "multipart"])
def test_a_form_comes_without(kind, body):
    assert dict(request_of(body, kind).POST.lists()) == {"text": ["ab", "c"], "key": [""]}


def test_a_query_comes_without():
    assert request_of(query_string=b"q=a%00b&page=%002").GET.dict() == {"q": "ab", "page": "2"}


def test_an_address_with_one_is_none_that_there_is():
    request = request_of(path="/settings/providers/open\0ai")

    assert request.path_info == "/settings/providers/open\ufffdai"
    assert request.path == request.path_info
