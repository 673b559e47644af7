"""Connected sign-ins and keys, and what is known of their room."""

from typing import ClassVar

from django.db import models

from conch.models.people import Person


class Account(models.Model):
    """One connected sign-in or key on one engine (product.md, Words).

    A removed account stays as a row with `removed_at`, so that its slug is never given to another sign-in or key of
    the same person and counts again when that same one is back.
    """

    class State(models.TextChoices):
        OK = "ok"
        SIGNED_OUT = "signed_out"
        UNREACHABLE = "unreachable"
        WRONG_KEY = "wrong_key"
        NO_CREDIT = "no_credit"
        DISABLED = "disabled"

    person = models.ForeignKey(Person, models.CASCADE, related_name="accounts")
    slug = models.CharField(max_length=64)
    engine = models.CharField(max_length=40)
    label = models.CharField(max_length=100)
    # Whose it is in the engine's own terms (R1): account id + user id, organisation id + e-mail; empty: not known.
    identity = models.CharField(max_length=400, blank=True, default="")
    # The same for people: an e-mail address, or nothing.
    whose = models.CharField(max_length=254, blank=True, default="")
    plan = models.CharField(max_length=60, blank=True, default="")
    organization = models.CharField(max_length=120, blank=True, default="")
    key_hint = models.CharField(max_length=8, blank=True, default="")
    key_fingerprint = models.CharField(max_length=64, blank=True, default="")
    sealed_key = models.TextField(blank=True, default="")
    base_url = models.CharField(max_length=500, blank=True, default="")
    home = models.CharField(max_length=500, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    # What the engine's own list says: [{"id", "label", "tools", "images", "context", "price"...}], unknown: null.
    known_models = models.JSONField(default=list, blank=True)
    # When that list was read, when reading it failed, and until when it is left alone (conch/reread.py).
    listed_at = models.DateTimeField(null=True, default=None)
    list_failed_at = models.DateTimeField(null=True, default=None)
    list_pause_until = models.DateTimeField(null=True, default=None)
    state = models.CharField(max_length=20, choices=State.choices, default=State.OK)
    carries_on = models.BooleanField(default=True)
    own_limit_nano = models.BigIntegerField(null=True, default=None)
    # The provider's own cap of a key (OpenRouter): what is left of it, when it was read, and when it starts anew.
    key_cap_nano = models.BigIntegerField(null=True, default=None)
    key_left_nano = models.BigIntegerField(null=True, default=None)
    key_resets_at = models.DateTimeField(null=True, default=None)
    connected_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, default=None)
    read_at = models.DateTimeField(null=True, default=None)
    read_failed_at = models.DateTimeField(null=True, default=None)
    read_backoff_until = models.DateTimeField(null=True, default=None)
    # *Check now* allows one attempt past a refusal (R29).
    attempt_allowed_at = models.DateTimeField(null=True, default=None)
    clock_off_seconds = models.IntegerField(null=True, default=None)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["person", "slug"], name="slug_once_a_person"),
            models.CheckConstraint(condition=~models.Q(slug__in=["auto", "wait", "local", ""]), name="slug_not_taken"),
        ]

    def __str__(self) -> str:
        return self.slug


class Ability(models.Model):
    """What a model of an account takes, beyond what its engine's list says (conch/accounts/abilities.py).

    Null: nothing is known, or was said, so the list counts, and what isn't in it either is taken as able (R9).
    """

    account = models.ForeignKey(Account, models.CASCADE, related_name="abilities")
    model = models.CharField(max_length=200)
    # Learned from what its provider refused; `fits`: the tokens that a request may hold, as the
    # provider counts them.
    tools = models.BooleanField(null=True, default=None)
    images = models.BooleanField(null=True, default=None)
    fits = models.BigIntegerField(null=True, default=None)
    # The person's own word, before all else.
    tools_set = models.BooleanField(null=True, default=None)
    images_set = models.BooleanField(null=True, default=None)
    context_set = models.BigIntegerField(null=True, default=None)
    # What its provider counted in an earlier prompt, for every token counted here (R26).
    ratio = models.FloatField(null=True, default=None)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["account", "model"], name="ability_once_a_model")]
        verbose_name_plural = "abilities"


class Window(models.Model):
    """A plan's metered span. A percentage that is missing says nothing; it is never 0 or 100 (R6)."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="windows")
    name = models.CharField(max_length=60)
    used_percent = models.FloatField(null=True, default=None)
    resets_at = models.DateTimeField(null=True, default=None)
    # The models it covers; empty: all.
    covers = models.JSONField(default=list, blank=True)
    length_minutes = models.IntegerField(null=True, default=None)
    read_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["account", "name"], name="window_once")]


class WindowSample(models.Model):
    """What a window read in one hour: the latest reading of it, kept in a ring of two weeks of hours."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="samples")
    name = models.CharField(max_length=60)
    # The hour's place in the ring; after two weeks the same place is written over, so nothing needs to be swept.
    slot = models.SmallIntegerField()
    at = models.DateTimeField()
    used_percent = models.FloatField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "name", "slot"], name="sample_once_an_hour")
        ]


class Refusal(models.Model):
    """An account said no for a limit: a metered plan is `blocked` until its reset, any other `refused` (R8)."""

    class Kind(models.TextChoices):
        BLOCKED = "blocked"
        REFUSED = "refused"

    account = models.ForeignKey(Account, models.CASCADE, related_name="refusals")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    # The one model it names; empty: the whole account.
    model = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField()
    # The provider's reset, or none; never the 15 minutes.
    until = models.DateTimeField(null=True, default=None)
    # When Conch asks it again.
    retry_at = models.DateTimeField()
    # Why: "limit", "money", "not_entitled".
    reason = models.CharField(max_length=20, default="limit")
    # The readings before it, to tell an early reset from a meter that was wrong (R29).
    before = models.JSONField(default=list, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["account", "model"], name="refusal_once")]
