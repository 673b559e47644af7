"""Addresses of the first steps."""

from django.urls import URLPattern, path

from settings_ui import welcome

urlpatterns: list[URLPattern] = [
    path("welcome", welcome.first_steps, name="welcome"),
    path("welcome/connect/<str:engine_id>", welcome.take, name="welcome-connect"),
]
