"""Addresses of signing in and out, and of this process's health."""

from django.urls import path

from conch.accounts import views

urlpatterns = [
    path("signin", views.password_page, name="signin"),
    path("signin/<str:token>", views.link_page, name="signin-link"),
    path("signout", views.sign_out, name="signout"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]
