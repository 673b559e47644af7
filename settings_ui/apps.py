"""The settings pages: one view module a page."""

from django.apps import AppConfig


class SettingsUiConfig(AppConfig):
    """Pages under /settings/."""

    name = "settings_ui"
