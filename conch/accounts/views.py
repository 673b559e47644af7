"""The pages to sign in and out, and the two addresses that say whether this process is well."""

from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from conch.accounts import signin, zones
from conch.copy.clock import span
from conch.models import Person

BACKEND = "django.contrib.auth.backends.ModelBackend"
_migrated = False


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password_page(request: HttpRequest) -> HttpResponse:
    """Sign in by name and password."""
    if request.method != "POST":
        return render(request, "accounts/signin.html", {"next": request.GET.get("next", "")})
    name, address = request.POST.get("username", "")[:150], str(request.META.get("REMOTE_ADDR", ""))
    tried = signin.try_password(name, request.POST.get("password", "")[:4096], address, timezone.now())
    if tried.person is not None:
        return _signed_in(request, tried.person)
    said = "That name and password don’t go together."
    if tried.wait is not None:
        said = f"Too many tries. Try again in {span(tried.wait)}, or use a one-time link."
    given = {"next": request.POST.get("next", ""), "username": name, "error": said}
    return render(request, "accounts/signin.html", given, status=429 if tried.wait else 403)


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def link_page(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by a one-time link. Opened by a person it works at once; a program that only looks doesn't use it up."""
    now = timezone.now()
    if request.method == "POST" or _opened_by_a_person(request):
        person = signin.person_of_link(token, now)
        if person is not None:
            return _signed_in(request, person)
    elif signin.is_live(token, now):
        return render(request, "accounts/link.html")
    return render(request, "accounts/link_gone.html", status=410)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End this browser's session; drafts that it keeps aren't there for whoever signs in next."""
    logout(request)
    response = redirect("signin")
    response["Clear-Site-Data"] = '"storage"'
    return response


@login_not_required
@require_GET
def healthz(_request: HttpRequest) -> JsonResponse:
    """The process is up."""
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
@require_GET
def readyz(_request: HttpRequest) -> JsonResponse:
    """The database answers and has this version's tables: requests can be sent here."""
    global _migrated
    try:
        if _migrated:
            connection.ensure_connection()
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        else:
            executor = MigrationExecutor(connection)
            _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "why": "the database doesn't answer"}, status=503)
    if not _migrated:
        return JsonResponse({"status": "unavailable", "why": "migrations are not applied"}, status=503)
    return JsonResponse({"status": "ok"})


def _opened_by_a_person(request: HttpRequest) -> bool:
    """Whether a browser says that somebody opened this address themselves, in a tab.

    Not by another site's link (it could sign somebody in as somebody else), and not ahead of time. Browsers say so
    where the page is at a loopback address or under https; elsewhere, and for previews of links, there is a button.
    """
    headers = request.headers
    return (
        request.method == "GET"
        and headers.get("Sec-Fetch-Site") == "none"
        and headers.get("Sec-Fetch-Mode") == "navigate"
        and headers.get("Sec-Fetch-Dest") == "document"
        and "Sec-Purpose" not in headers
        and "Purpose" not in headers
    )


def _signed_in(request: HttpRequest, person: Person) -> HttpResponse:
    first = person.is_owner and person.last_login is None
    login(request, person, backend=BACKEND)
    if zones.unset(person, request.COOKIES):
        zones.take(person, request.COOKIES, timezone.now())
    wanted = request.POST.get("next", "")
    allowed = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    if not allowed and first:
        return HttpResponseRedirect(f"{reverse('welcome')}?first")  # what was found on the machine is its owner's
    return HttpResponseRedirect(wanted if allowed else "/")
