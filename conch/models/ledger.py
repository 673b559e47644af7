"""Every attempt that was or may be paid for, and what a month comes to."""

from typing import ClassVar

from django.db import models

from conch.models.people import Person


class Entry(models.Model):
    """One paid attempt: held at the most it can cost, settled with what it did cost (R26).

    `account`, `conversation` and `turn` are kept by value: the ledger outlives what it speaks of.
    """

    class State(models.TextChoices):
        HELD = "held"
        SETTLED = "settled"

    class PricedBy(models.TextChoices):
        PROVIDER = "provider"
        LIST = "list"
        NONE = "none"

    class Consent(models.TextChoices):
        OWN = "own"
        NAMED = "named"
        PAID_ON = "paid_on"
        ONCE = "once"

    person = models.ForeignKey(Person, models.CASCADE, related_name="entries")
    account = models.CharField(max_length=64)
    engine = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    conversation = models.BigIntegerField(null=True, default=None)
    turn = models.BigIntegerField(null=True, default=None)
    attempt = models.BigIntegerField(null=True, default=None)
    month = models.CharField(max_length=7)
    state = models.CharField(max_length=8, choices=State.choices)
    input_tokens = models.BigIntegerField(null=True, default=None)
    cached_input_tokens = models.BigIntegerField(null=True, default=None)
    output_tokens = models.BigIntegerField(null=True, default=None)
    hold_nano = models.BigIntegerField(null=True, default=None)
    # Null: unknown. Unknown is never zero (R33).
    cost_nano = models.BigIntegerField(null=True, default=None)
    priced_by = models.CharField(max_length=8, choices=PricedBy.choices, default=PricedBy.NONE)
    estimated = models.BooleanField(default=False)
    consent = models.CharField(max_length=8, choices=Consent.choices, blank=True, default="")
    # Extra usage that a plan billed (R32).
    extra = models.BooleanField(default=False)
    at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, default=None)

    class Meta:
        verbose_name_plural = "entries"
        indexes: ClassVar = [
            models.Index(fields=["person", "month", "-id"], name="entry_month"),
            models.Index(fields=["conversation"], name="entry_conversation"),
            models.Index(fields=["turn"], name="entry_turn"),
        ]


class MonthTotal(models.Model):
    """The running total of a person's month (account ""), and of one account in it (R28)."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="month_totals")
    month = models.CharField(max_length=7)
    account = models.CharField(max_length=64, blank=True, default="")
    spent_nano = models.BigIntegerField(default=0)
    held_nano = models.BigIntegerField(default=0)
    unpriced = models.IntegerField(default=0)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "month", "account"], name="one_total")]


class PriceOverride(models.Model):
    """An admin's own price of a model, in USD per million tokens; it goes before the bundled list."""

    engine = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    input_per_million = models.DecimalField(max_digits=14, decimal_places=6)
    cached_input_per_million = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True, default=None)
    output_per_million = models.DecimalField(max_digits=14, decimal_places=6)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["engine", "model"], name="one_price")]
