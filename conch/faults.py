"""What somebody gets where Conch itself fails: words, never a stack; a database that is away is said to be (503)."""

import logging
import sys

from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from conch.api.problems import problem

logger = logging.getLogger("conch")

API = "/api/"
LATER = {"Retry-After": "5"}  # seconds
AWAY = "The database can't do that now. Nothing was changed; try again."
OURS = "That is a fault of Conch's. Nothing more is known here; the log says more."


def failed(request: HttpRequest) -> HttpResponse:
    """The answer to a request that broke, whatever broke it, also before it came to its view."""
    error = sys.exc_info()[1]
    away = isinstance(error, Error)
    if away:
        logger.error("the database: %s", error)
    if request.path_info.startswith(API):
        return problem(503, AWAY, code="database", headers=LATER) if away else problem(500, OURS, code="internal")
    if away:
        return HttpResponse(render_to_string("503.html"), status=503, headers=LATER)
    return HttpResponse(render_to_string("500.html"), status=500)
