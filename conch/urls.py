"""Every address, by the part that answers it."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("conch.chat.urls")),
    path("", include("conch.accounts.urls")),
    path("api/", include("conch.api.urls")),
    path("settings/", include("settings_ui.urls")),
    path("admin/", admin.site.urls),
]
