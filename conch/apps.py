"""The product's Django app."""

from django.apps import AppConfig


class ConchConfig(AppConfig):
    """Everything with effects; starts nothing by being imported."""

    name = "conch"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have Django's checks look at what is Conch's own."""
        from conch import checks  # noqa: F401  registers them
