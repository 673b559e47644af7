"""The decision: who answers, and why."""

from django.apps import AppConfig


class RoutingConfig(AppConfig):
    """A pure core (standard library only) and its shell: known.py and api.py."""

    name = "routing"
