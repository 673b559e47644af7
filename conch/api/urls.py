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
    """The same address with its plain errors as problem documents, and with CSRF for sessions.

    The library exempts its views from Django's check; the wrapper doesn't carry that mark on.
    """
    view: Any = pattern.callback
    if iscoroutinefunction(view):

        @wraps(view, updated=())
        async def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            return _as_problem(await view(request, *args, **kwargs))
    else:

        @wraps(view, updated=())
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            try:
                return _as_problem(view(request, *args, **kwargs))
            except Http404:
                return problem(404, NOT_HERE)

    pattern.callback = wrapped
    return pattern


def _as_problem(response: Any) -> Any:
    if response.status_code == 405:
        allowed = response["Allow"]
        return problem(405, f"Only {allowed} here.", headers={"Allow": allowed})
    return response


_patterns, _app, _namespace = api.urls
urlpatterns = [
    path("", include(([_with_problems(pattern) for pattern in _patterns], _app), namespace=_namespace)),
    re_path(r"", _not_here),
]
