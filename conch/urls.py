"""Every address, by the part that answers it."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import include, path
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from conch.metrics import metrics


@login_not_required
@require_safe
@cache_control(public=True, max_age=3600)
def favicon(_request: HttpRequest) -> HttpResponseRedirect:
    """The icon, by the name under which browsers ask for it where a page names none (the API's answers, pictures)."""
    return HttpResponseRedirect(static("conch/icon.svg"))


handler500 = "conch.faults.failed"

urlpatterns = [
    path("", include("conch.chat.urls")),
    path("", include("conch.accounts.urls")),
    path("api/", include("conch.api.urls")),
    path("settings/", include("settings_ui.urls")),
    path("", include("settings_ui.welcome_urls")),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("favicon.ico", favicon),
]
