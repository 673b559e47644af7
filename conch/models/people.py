"""The people of this Conch: who they are, what they prefer, and how they sign in."""

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models


class Person(AbstractUser):
    """Somebody who signs in. The owner is the first, made at the first start: the owner of the machine."""

    is_owner = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "people"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["is_owner"], condition=models.Q(is_owner=True), name="one_owner"),
        ]


class Preferences(models.Model):
    """One row a person (product.md, Preferences). Changed column by column."""

    person = models.OneToOneField(Person, models.CASCADE, primary_key=True, related_name="preferences")
    default_account = models.CharField(max_length=64, blank=True, default="")
    default_model = models.CharField(max_length=200, blank=True, default="")
    limit_fallback = models.CharField(max_length=64, default="auto")
    limit_order = models.JSONField(default=list, blank=True)
    limit_return = models.BooleanField(default=True)
    limit_paid = models.BooleanField(default=False)
    # Unset: on where the person gave a model of their own, off while there is only the tiny built-in one.
    offline_fallback = models.BooleanField(null=True, default=None)
    month_budget_nano = models.BigIntegerField(null=True, default=None)
    time_zone = models.CharField(max_length=64, blank=True, default="")
    hour_cycle = models.CharField(max_length=3, blank=True, default="")
    # R28: a changed zone counts for the budget from the next month on. The zone in force for `budget_month`.
    budget_zone = models.CharField(max_length=64, blank=True, default="")
    budget_month = models.CharField(max_length=7, blank=True, default="")
    theme = models.CharField(max_length=5, blank=True, default="")
    shortcuts = models.BooleanField(default=True)
    read_aloud = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "preferences"
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(hour_cycle__in=["", "h12", "h23"]), name="known_hour_cycle"),
            models.CheckConstraint(condition=models.Q(theme__in=["", "light", "dark"]), name="known_theme"),
        ]


class ApiToken(models.Model):
    """A token for the API, kept only as a digest; shown once when it is made."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100, blank=True, default="")
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=8, blank=True, default="")
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, default=None)
    revoked_at = models.DateTimeField(null=True, default=None)


class SigninLink(models.Model):
    """A link that signs its person in once, within ten minutes; kept only as a digest."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="signin_links")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, default=None)


class SigninFailure(models.Model):
    """A password that wasn't right, kept for a quarter of an hour so that guessing is slowed down."""

    # Who was tried, as a digest: what is typed here may be a password in the wrong box.
    name_digest = models.CharField(max_length=64)
    address = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["name_digest", "at"], name="failure_of_a_name"),
            models.Index(fields=["address", "at"], name="failure_from_an_address"),
        ]
