"""What every request passes through: sign-in, CSRF, the person's zone, and the headers of every answer.

Django's own middleware hops to a thread for each of its steps (3 ms a request, measured). None of the steps here
waits for anything but one read of who is signed in, so under ASGI they run where the request runs. A call to the API
with `Authorization: Bearer` has no session, so what is about sessions steps aside for it.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from csp.middleware import CSPMiddleware as DjangoCsp
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.middleware import AuthenticationMiddleware as DjangoAuthentication
from django.contrib.auth.models import AnonymousUser
from django.contrib.messages.middleware import MessageMiddleware as DjangoMessages
from django.contrib.sessions.middleware import SessionMiddleware as DjangoSession
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware as DjangoXFrame
from django.middleware.common import CommonMiddleware as DjangoCommon
from django.middleware.csrf import CsrfViewMiddleware as DjangoCsrf
from django.middleware.security import SecurityMiddleware as DjangoSecurity
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject
from whitenoise.middleware import WhiteNoiseMiddleware as DjangoWhiteNoise  # type: ignore[import-untyped]

from conch.accounts import tokens, zones
from conch.api.problems import problem
from conch.db import look
from conch.models import Person

API = "/api/"
LARGE_FORM = 64 * 1024  # bytes; parsing more than that would hold up the streams of others


def bearer(request: HttpRequest) -> str:
    """The API token that a call carries, or nothing. Pages take none: there a session is needed."""
    if not request.path_info.startswith(API):
        return ""
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def _rest(step: Any, request: HttpRequest) -> HttpResponseBase:
    response: HttpResponseBase = await step.get_response(request)
    return response


class _Inline:
    """Django's middleware without the hop to a thread: for steps that wait for nothing."""

    async_mode: bool
    get_response: Callable[[HttpRequest], Any]

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        process_request = getattr(self, "process_request", None)
        response: HttpResponseBase | None = process_request(request) if process_request else None
        response = response or await _rest(self, request)
        process_response = getattr(self, "process_response", None)
        return process_response(request, response) if process_response else response


class SecurityMiddleware(_Inline, DjangoSecurity):
    """nosniff, Referrer-Policy and the like."""


class CSPMiddleware(_Inline, DjangoCsp):
    """The Content-Security-Policy of every answer."""


class CommonMiddleware(_Inline, DjangoCommon):
    """The Host check, which also keeps a name that was rebound to this machine out, and slashes at the end."""


class XFrameOptionsMiddleware(_Inline, DjangoXFrame):
    """No page of ours in another's frame."""


class MessageMiddleware(_Inline, DjangoMessages):
    """One-time messages of the admin; kept in the session, so not for bearers."""

    def process_request(self, request: HttpRequest) -> None:
        """Make room for messages."""
        if not bearer(request):
            super().process_request(request)


class WhiteNoiseMiddleware(DjangoWhiteNoise):  # type: ignore[misc]
    """Static files. Small as they are, each is read whole: an ASGI answer can't be read piece by piece from a file."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        self.async_mode = iscoroutinefunction(get_response)
        if self.async_mode:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:  # noqa: D102
        return self.__acall__(request) if self.async_mode else super().__call__(request)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        static = self.find_file(path) if self.autorefresh and path.startswith(self.static_prefix) else None
        static = static or self.files.get(path)
        if static is None:
            return await _rest(self, request)
        return await sync_to_async(self._whole)(static, request)

    def _whole(self, static: Any, request: HttpRequest) -> HttpResponse:
        served = self.serve(static, request)
        response = HttpResponse(b"".join(served), status=served.status_code, headers=dict(served.items()))
        if "Content-Type" not in served:
            del response["Content-Type"]
        served.close()
        return response


class SessionMiddleware(_Inline, DjangoSession):
    """The browser's session."""

    def process_request(self, request: HttpRequest) -> None:
        """Give the request its session, read on first use."""
        if not bearer(request):
            super().process_request(request)

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        """Save what changed in it."""
        return response if bearer(request) else super().process_response(request, response)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        self.process_request(request)
        response = await _rest(self, request)
        session = getattr(request, "session", None)
        if session is not None and session.modified:
            saved: HttpResponseBase = await sync_to_async(self.process_response)(request, response)
        else:
            saved = self.process_response(request, response)
        return saved


class _InlineView(_Inline):
    """The same for a step that decides once the view is known."""

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)  # type: ignore[call-arg]
        if self.async_mode:
            self.__dict__["process_view"] = self._aprocess_view

    async def _aprocess_view(self, *given: Any) -> HttpResponseBase | None:
        decided: HttpResponseBase | None = type(self).process_view(self, *given)  # type: ignore[attr-defined]
        return decided


class CsrfViewMiddleware(_InlineView, DjangoCsrf):
    """Forms and scripts of other sites can't act for a signed-in person. A bearer is nobody's cookie: it is let by."""

    def process_view(self, request: HttpRequest, callback: Any, callback_args: Any, callback_kwargs: Any) -> Any:
        """Refuse a changing request without the token of our own pages."""
        if bearer(request):
            return None
        return super().process_view(request, callback, callback_args, callback_kwargs)

    async def _aprocess_view(self, *given: Any) -> HttpResponseBase | None:
        request: HttpRequest = given[0]
        length = request.META.get("CONTENT_LENGTH") or "0"
        if request.method == "POST" and length.isdigit() and int(length) > LARGE_FORM and not bearer(request):
            refused: HttpResponseBase | None = await sync_to_async(super().process_view)(*given)
            return refused
        return await super()._aprocess_view(*given)

    def _reject(self, request: HttpRequest, _reason: str) -> HttpResponse:
        if request.path_info.startswith(API):
            return problem(403, "This call needs the page's CSRF token in X-CSRFToken, or an API token.", code="csrf")
        return HttpResponse(render_to_string("accounts/refused.html"), status=403)


class AuthenticationMiddleware(DjangoAuthentication):
    """Who is asking: by session, or by an API token. `request.person_id` is None for nobody."""

    def __call__(self, request: HttpRequest) -> Any:  # noqa: D102
        if self.async_mode:
            return self.__acall__(request)
        _known(request, _who(request))
        return self.get_response(request)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        # Without a cookie or a token nobody is signed in, and nothing needs to be read.
        carries = bearer(request) or settings.SESSION_COOKIE_NAME in request.COOKIES
        _known(request, await look(_who, request) if carries else None)
        return await _rest(self, request)


def _who(request: HttpRequest) -> Person | int | None:
    """The person of the session, whole; of a token only the id, since most calls need no more."""
    token = bearer(request)
    if token:
        return tokens.person_of(token, timezone.now())
    user = get_user(request)
    if not isinstance(user, Person):
        return None
    zones.preferences_of(user)
    return user


def _known(request: HttpRequest, who: Person | int | None) -> None:
    user: Any = AnonymousUser()
    if isinstance(who, Person):
        user = who
    elif who is not None:
        user = SimpleLazyObject(lambda: Person.objects.select_related("preferences").get(pk=who))

    async def auser() -> Any:
        return user

    request.user = user
    request.auser = auser
    request.person_id = who.pk if isinstance(who, Person) else who  # type: ignore[attr-defined]


class SignInRequired(_InlineView, MiddlewareMixin):
    """Every page and call needs a sign-in, save views marked `login_not_required`."""

    def process_view(self, request: HttpRequest, view: Any, _args: Any, _kwargs: Any) -> HttpResponse | None:
        """Ask for a sign-in: a page redirects, a fragment and a call answer 401."""
        if request.person_id is not None or not getattr(view, "login_required", True):  # type: ignore[attr-defined]
            return None
        if request.path_info.startswith(API):
            said = "This token isn't known or was revoked." if bearer(request) else "Sign in, or send an API token."
            return problem(401, said, code="signed_out", headers={"WWW-Authenticate": 'Bearer realm="Conch"'})
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(render_to_string("accounts/again.html"), status=401)
        if request.method not in {"GET", "HEAD"}:
            # A form without script: a redirect would lose what was typed, the browser's Back keeps it.
            return HttpResponse(render_to_string("accounts/again_page.html"), status=401)
        return HttpResponseRedirect(f"{reverse('signin')}?next={quote(request.get_full_path())}")


class NotAPage(_Inline, MiddlewareMixin):
    """Somebody who opens the address of a form (a reload, a bookmark) reads so, instead of an empty page."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Give the refusal words."""
        if response.status_code == 405 and not response.content and not request.path_info.startswith(API):
            response.content = render_to_string("405.html")
        return response


class PersonTimeZone(MiddlewareMixin):
    """Times on pages are in the person's zone. The browser's is taken where the person has none yet."""

    def __call__(self, request: HttpRequest) -> Any:  # noqa: D102
        if self.async_mode:
            return self.__acall__(request)
        person = _visitor(request)
        if person is not None and zones.unset(person, request.COOKIES):
            zones.take(person, request.COOKIES, timezone.now())
        with timezone.override(zones.zone_of(person)):
            return self.get_response(request)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        person = _visitor(request)
        if person is not None and zones.unset(person, request.COOKIES):
            await sync_to_async(zones.take)(person, request.COOKIES, timezone.now())
        with timezone.override(zones.zone_of(person)):
            return await _rest(self, request)


def _visitor(request: HttpRequest) -> Person | None:
    """Who looks at a page; a bearer's times are UTC."""
    return None if bearer(request) or not isinstance(request.user, Person) else request.user
