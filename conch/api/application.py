"""The API as one application: its errors as problem documents, its OpenAPI document, its calls."""

import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from conch.api import accounts, conversations, docs, fallback, ledger, openapi, preferences, turns
from conch.api.parsing import CleanJson
from conch.api.problems import Problem, problem
from conch.faults import AWAY, LATER, OURS
from conch.turns.errors import NotHere, NotNow, TooMuch

logger = logging.getLogger("conch.api")

NOT_HERE = "There is no such thing here."


class ConchApi(NinjaAPI):
    """django-ninja with a whole OpenAPI document: how to sign in, what is answered, and how errors look."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """The document."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        openapi.complete(document)
        return document


api = ConchApi(
    title="Conch",
    version="1",
    description="Chats that carry on at a limit. Times are ISO 8601 in UTC, money is a decimal string in USD.",
    urls_namespace="api",
    parser=CleanJson(),
    docs=docs.Page(),
)
for part in (accounts, preferences, fallback, conversations, turns, ledger):
    api.add_router("", part.router)


@api.exception_handler(Problem)
def _problem(_request: HttpRequest, error: Any) -> HttpResponse:
    return problem(error.status, error.detail, code=error.code, errors=error.errors)


@api.exception_handler(NotHere)
@api.exception_handler(Http404)
def _not_here(_request: HttpRequest, _error: Any) -> HttpResponse:
    return problem(404, NOT_HERE)


@api.exception_handler(NotNow)
def _not_now(_request: HttpRequest, error: Any) -> HttpResponse:
    return problem(409, error.text, code=error.code)


@api.exception_handler(TooMuch)
def _too_much(_request: HttpRequest, error: Any) -> HttpResponse:
    return problem(413 if error.large else 422, error.text)


@api.exception_handler(RequestDataTooBig)
def _too_big(_request: HttpRequest, _error: Any) -> HttpResponse:
    return problem(413, "A request may have 56 MiB.")


@api.exception_handler(ValidationError)
def _invalid(_request: HttpRequest, error: Any) -> HttpResponse:
    """Which fields, and what is wrong with them; never what was sent."""
    errors = [
        {"at": ".".join(str(part) for part in one["loc"] if part != "given"), "what": one["msg"]}
        for one in error.errors
    ]
    said = "; ".join(f"{one['at']}: {one['what']}" for one in errors[:3])
    return problem(422, said or "The call can't be understood.", errors=errors)


@api.exception_handler(HttpError)
def _http(_request: HttpRequest, error: Any) -> HttpResponse:
    said = "The body is no JSON." if error.status_code == 400 else str(error)
    return problem(error.status_code, said)


@api.exception_handler(Error)
def _database(_request: HttpRequest, error: Any) -> HttpResponse:
    logger.error("the database: %s", error)
    return problem(503, AWAY, code="database", headers=LATER)


@api.exception_handler(Exception)
def _fault(request: HttpRequest, error: Any) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path_info, exc_info=error)
    return problem(500, OURS, code="internal")
