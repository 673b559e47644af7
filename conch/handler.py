"""Django's handler, without a thread for every request.

Django tells of a request's beginning, and closes its response, on a thread that it begins for that request alone, also
where nothing else ever ran on it: a millisecond each time. Here such a thread cleans up after itself where there was
need of one, and none is begun where there was none.
"""

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any

from asgiref.sync import SyncToAsync, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix


class Request(ASGIRequest):
    """A request that holds no NUL: in forms and queries it is left out (doors.md), an address with one leads nowhere.

    PostgreSQL has no such texts; asked about one, it would seem to be broken.
    """

    _post: QueryDict

    def __init__(self, scope: Any, body: Any) -> None:
        super().__init__(scope, body)
        self.path, self.path_info = self.path.replace("\0", "\ufffd"), self.path_info.replace("\0", "\ufffd")
        self.META["PATH_INFO"] = self.path_info
        self.META["QUERY_STRING"] = self.META["QUERY_STRING"].replace("%00", "")

    def _load_post_and_files(self) -> None:
        super()._load_post_and_files()
        if any("\0" in text for name, texts in self._post.lists() for text in (name, *texts)):
            clean = QueryDict(mutable=True)
            for name, texts in self._post.lists():
                clean.setlist(name.replace("\0", ""), [text.replace("\0", "") for text in texts])
            self._post = clean


class Handler(ASGIHandler):
    """Answers requests. A client that goes away ends the answer to it, and nothing else."""

    request_class = Request

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request. Its beginning is told to nobody: no connection is open on its behalf yet."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body):
            set_script_prefix(get_script_prefix(scope))
            request, refusal = self.create_request(scope, body)
            if request is None:
                assert refusal is not None, "one or the other is made"
                await self.send_response(refusal, send)
                refusal.close()
                return
            tasks = (
                asyncio.create_task(self.listen_for_disconnect(receive)),
                asyncio.create_task(self._answer(request, send)),
            )
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            _, answered = await asyncio.gather(*tasks, return_exceptions=True)
        if isinstance(answered, HttpResponseBase):
            await _where_it_ran(answered.close)
            return
        await _where_it_ran(partial(signals.request_finished.send, sender=type(self)))
        if not isinstance(answered, asyncio.CancelledError):
            raise answered

    async def _answer(self, request: HttpRequest, send: Any) -> HttpResponseBase:
        response: HttpResponseBase = await self.run_get_response(request)
        with suppress(asyncio.CancelledError):  # the client went away
            await self.send_response(response, send)
        return response


async def _where_it_ran(cleans_up: Callable[[], Any]) -> None:
    """On the request's own thread if anything ran on one, since its connections are there; else right here."""
    own = SyncToAsync.thread_sensitive_context.get(None)
    if own in SyncToAsync.context_to_thread_executor:
        await sync_to_async(cleans_up)()
    else:
        cleans_up()
