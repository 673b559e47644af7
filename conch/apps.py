"""The product's Django app."""

from django.apps import AppConfig


class ConchConfig(AppConfig):
    """Everything with effects; starts nothing by being imported."""

    name = "conch"
    default_auto_field = "django.db.models.BigAutoField"
