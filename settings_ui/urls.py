"""Addresses of the settings pages: one for each page, one for each thing that can be done."""

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from settings_ui import accounts, computer, connecting, leaving, limits, providers, reading, usage, you

urlpatterns: list[URLPattern] = [
    path("", RedirectView.as_view(pattern_name="settings-providers"), name="settings"),
    path("providers", providers.providers, name="settings-providers"),
    path("providers/<str:slug>", accounts.account, name="settings-account"),
    path("providers/<str:slug>/rename", accounts.rename, name="settings-rename"),
    path("providers/<str:slug>/model", accounts.model, name="settings-model"),
    path("providers/<str:slug>/limit", accounts.limit, name="settings-limit"),
    path("providers/<str:slug>/carries-on", accounts.carries_on, name="settings-carries-on"),
    path("providers/<str:slug>/check", connecting.check_now, name="settings-check"),
    path("providers/<str:slug>/reconnect", connecting.reconnect, name="settings-reconnect"),
    path("providers/<str:slug>/disconnect", accounts.disconnect, name="settings-disconnect"),
    path("connect", connecting.engines_page, name="settings-connect"),
    path("connect/<str:engine_id>", connecting.connect_page, name="settings-connect-engine"),
    path("read", reading.read_now, name="settings-read"),
    path("start", providers.start, name="settings-start"),
    path("budget", providers.budget, name="settings-budget"),
    path("limits/choose", limits.choose, name="settings-limits-choose"),
    path("limits/move", limits.move, name="settings-limits-move"),
    path("limits/switch/<str:name>", limits.switch, name="settings-limits-switch"),
    path("limits/paid", limits.paid, name="settings-limits-paid"),
    path("limits/let", limits.let, name="settings-limits-let"),
    path("limits/save", limits.save, name="settings-limits-save"),
    path("usage", usage.usage, name="settings-usage"),
    path("usage.csv", usage.usage_csv, name="settings-usage-csv"),
    path("computer", computer.computer, name="settings-computer"),
    path("computer/try", computer.try_it, name="settings-try"),
    path("you", you.you, name="settings-you"),
    path("you/times", you.times, name="settings-times"),
    path("you/look", you.look, name="settings-look"),
    path("you/password", you.password, name="settings-password"),
    path("you/tokens", you.make_token, name="settings-token"),
    path("you/tokens/<int:token_id>/revoke", you.revoke_token, name="settings-token-revoke"),
    path("you/export", leaving.export, name="settings-export"),
    path("you/delete", leaving.delete, name="settings-delete"),
    path("you/link", you.link, name="settings-link"),
    path("you/sessions/end", you.end_others, name="settings-sessions-end"),
    path("you/sessions/<str:name>/end", you.end_session, name="settings-session-end"),
]
