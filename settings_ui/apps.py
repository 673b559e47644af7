"""The settings pages: one view module a page."""

from django.apps import AppConfig


class SettingsUiConfig(AppConfig):
    """Pages under /settings/."""

    name = "settings_ui"

    def ready(self) -> None:
        """Have each session that begins keep which browser it is in."""
        from django.contrib.auth.signals import user_logged_in

        from settings_ui.devices import remember_browser

        user_logged_in.connect(remember_browser, dispatch_uid="settings_ui.devices")
