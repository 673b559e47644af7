"""Filters of the ledger whose choices come from the months' totals: few rows, however long the ledger is."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from conch.models import Entry, MonthTotal


class MonthFilter(admin.SimpleListFilter):
    """One calendar month."""

    title = "month"
    parameter_name = "month"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        """The months that have totals, newest first."""
        months = MonthTotal.objects.order_by("-month").values_list("month", flat=True).distinct()
        return [(month, month) for month in months]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Entry]) -> QuerySet[Entry]:
        """The entries of the chosen month."""
        return queryset.filter(month=self.value()) if self.value() else queryset


class AccountFilter(admin.SimpleListFilter):
    """One account's slug."""

    title = "account"
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        """The slugs that have totals."""
        slugs = MonthTotal.objects.exclude(account="").order_by("account").values_list("account", flat=True).distinct()
        return [(slug, slug) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Entry]) -> QuerySet[Entry]:
        """The entries of the chosen account."""
        return queryset.filter(account=self.value()) if self.value() else queryset
