"""Addresses of the API. Whatever is asked for under /api/, errors are problem documents."""

from functools import wraps
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path, re_path

from conch.api.application import NOT_HERE, api
from conch.api.problems import problem


def _not_here(_request: HttpRequest) -> HttpResponse:
    return problem(404, NOT_HERE)


def _with_problems(pattern: Any) -> Any:
    """The same address with its plain errors as problem documents, HEAD as GET without a body, CSRF for sessions.

    The library exempts its views from Django's check; the wrapper doesn't carry that mark on.
    """
    view: Any = pattern.callback
    if iscoroutinefunction(view):

        @wraps(view, updated=())
        async def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            return _as_problem(request, await view(_as_get(request), *args, **kwargs))
    else:

        @wraps(view, updated=())
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            try:
                return _as_problem(request, view(_as_get(request), *args, **kwargs))
            except Http404:
                return problem(404, NOT_HERE)

    pattern.callback = wrapped
    return pattern


def _as_get(request: HttpRequest) -> HttpRequest:
    """The library knows no HEAD: it is asked as for GET, and the server leaves the body out."""
    request.asked_head = request.method == "HEAD"  # type: ignore[attr-defined]
    if request.method == "HEAD":
        request.method = "GET"
    return request


def _as_problem(request: HttpRequest, response: Any) -> Any:
    if request.asked_head:  # type: ignore[attr-defined]
        request.method = "HEAD"
    if response.status_code == 405:
        allowed = response["Allow"].replace("GET", "GET, HEAD")
        return problem(405, f"Only {allowed} here.", headers={"Allow": allowed})
    if response.streaming and request.method == "HEAD":
        return HttpResponse(status=response.status_code, headers=dict(response.items()))
    return response


_patterns, _app, _namespace = api.urls
urlpatterns = [
    path("", include(([_with_problems(pattern) for pattern in _patterns], _app), namespace=_namespace)),
    re_path(r"", _not_here),
]
