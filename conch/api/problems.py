"""RFC 9457 problem documents: how the API says what went wrong."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A call that can't be done. `detail` says why and what would help; `code` is for programs."""

    def __init__(self, status: int, detail: str, *, code: str = "", errors: list[dict[str, Any]] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.errors = errors


def problem(
    status: int,
    detail: str,
    *,
    code: str = "",
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """The document as an answer: type, title, status, detail, and where there are any, `code` and `errors`."""
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if code:
        document["code"] = code
    if errors:
        document["errors"] = errors
    return HttpResponse(json.dumps(document), status=status, content_type=MEDIA_TYPE, headers=dict(headers or {}))
