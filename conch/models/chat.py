"""Conversations: turns with their attempts and events, and the lines said between them."""

from typing import ClassVar

from django.db import models

from conch.models.people import Person


class Conversation(models.Model):
    """One chat. `account` and `model` are who answers it whenever that one has room (R11)."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="conversations")
    title = models.CharField(max_length=200, blank=True, default="")
    titled = models.BooleanField(default=False)
    account = models.CharField(max_length=64)
    model = models.CharField(max_length=200, blank=True, default="")
    instructions = models.TextField(blank=True, default="")
    agent = models.BigIntegerField(null=True, default=None)
    tools = models.JSONField(default=list, blank=True)
    spend_cap_nano = models.BigIntegerField(null=True, default=None)
    spent_nano = models.BigIntegerField(default=0)
    held_nano = models.BigIntegerField(default=0)
    # Switch back (R23): until then this chat's route is asked with `wait`.
    waits_until = models.DateTimeField(null=True, default=None)
    # Staying (R21): where the chat was before, and the yes that brought it there.
    stayed_from = models.CharField(max_length=64, blank=True, default="")
    stayed_from_model = models.CharField(max_length=200, blank=True, default="")
    stayed_consent = models.CharField(max_length=8, blank=True, default="")
    temporary = models.BooleanField(default=False)
    unread = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, default=None)
    # The key of the message that it was made for: sent twice, that is one chat.
    begun_key = models.CharField(max_length=200, null=True, default=None)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "begun_key"], name="chat_once")]
        indexes: ClassVar = [
            models.Index(fields=["person", "-updated_at"], name="conversation_latest"),
            models.Index(fields=["created_at"], condition=models.Q(temporary=True), name="conversation_temporary"),
        ]

    def __str__(self) -> str:
        return self.title or "New chat"


class Turn(models.Model):
    """One message of the person and what answers it. The state machine is drawn in conch/turns/__init__.py."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting"
        CAPPED = "capped"
        DONE = "done"
        FAILED = "failed"
        STOPPED = "stopped"
        INTERRUPTED = "interrupted"

    ENDS: ClassVar = (State.DONE, State.FAILED, State.STOPPED, State.INTERRUPTED)

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="turns")
    idempotency_key = models.CharField(max_length=200, null=True, default=None)
    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    text = models.TextField()
    answer = models.TextField(blank=True, default="")
    # What the two come to in tokens, counted once (conch/turns/tokens.py); null: not counted yet.
    text_tokens = models.IntegerField(null=True, default=None)
    answer_tokens = models.IntegerField(null=True, default=None)
    account = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    input_tokens = models.BigIntegerField(null=True, default=None)
    output_tokens = models.BigIntegerField(null=True, default=None)
    cost_nano = models.BigIntegerField(null=True, default=None)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, default=None)
    ended_at = models.DateTimeField(null=True, default=None)
    # How the answer ended where it isn't whole: "", "cut", "length".
    ending = models.CharField(max_length=8, blank=True, default="")
    failure_code = models.CharField(max_length=40, blank=True, default="")
    failure = models.JSONField(default=dict, blank=True)
    replaced_by = models.ForeignKey("self", models.SET_NULL, null=True, default=None, related_name="replaces")

    # The latest run and the place in its stream of events (conch/turns/__init__.py says how ids grow).
    run = models.IntegerField(default=1)
    position = models.BigIntegerField(default=0)
    # answer-with: this account answers the next run, by a yes for this message alone (R27).
    once = models.CharField(max_length=64, blank=True, default="")
    # Nobody is looking: a background task, or a turn that goes out by itself after a wait (R25).
    unattended = models.BooleanField(default=False)
    # A prompt on a schedule: it doesn't carry on, and is held at a limit (R25).
    routine = models.BooleanField(default=False)
    stop_asked = models.BooleanField(default=False)

    # Waiting (R16): for whom, until when it says, when the route is asked again, since when, and how often it was.
    waits_for = models.CharField(max_length=64, blank=True, default="")
    until = models.DateTimeField(null=True, default=None)
    wake_at = models.DateTimeField(null=True, default=None)
    waiting_since = models.DateTimeField(null=True, default=None)
    wakes = models.IntegerField(default=0)

    # Who runs it: host, process id and start time of the process, and until when others leave it alone.
    owner = models.CharField(max_length=200, blank=True, default="")
    lease_until = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "idempotency_key"], name="message_once"),
            models.UniqueConstraint(
                fields=["conversation"], condition=models.Q(state="running"), name="one_running_turn_a_chat"
            ),
            models.CheckConstraint(
                condition=models.Q(
                    state__in=["queued", "running", "waiting", "capped", "done", "failed", "stopped", "interrupted"]
                ),
                name="known_turn_state",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["conversation", "id"], name="turn_in_chat"),
            models.Index(
                fields=["state", "wake_at"],
                condition=models.Q(state__in=["queued", "running", "waiting", "capped"]),
                name="turn_unfinished",
            ),
        ]


class Attempt(models.Model):
    """One account asked during one run of a turn, with what came of it."""

    turn = models.ForeignKey(Turn, models.CASCADE, related_name="attempts")
    run = models.IntegerField()
    account = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    # running, done, refused, passed (unable, cost nothing), failed, stopped, interrupted
    state = models.CharField(max_length=12, default="running")
    refusal_kind = models.CharField(max_length=8, blank=True, default="")
    refusal_until = models.DateTimeField(null=True, default=None)
    # What a refused attempt had streamed: folded under the line, no part of the answer (R17).
    partial = models.TextField(blank=True, default="")
    input_tokens = models.BigIntegerField(null=True, default=None)
    output_tokens = models.BigIntegerField(null=True, default=None)
    cost_nano = models.BigIntegerField(null=True, default=None)
    consent = models.CharField(max_length=8, blank=True, default="")
    # Kept by the provider's redacted words where it gave any.
    said = models.TextField(blank=True, default="")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, default=None)


class ToolCall(models.Model):
    """A call that a model asked for in a turn, and what came of it: never run twice by itself (R17).

    `digest` is of the arguments: the same tool with the same arguments is the same call, in every run of the turn,
    until the person presses Try again: from then on the earlier ones are `forgotten`. `tool_digest` is of the tool as
    it described itself when the call asked: the person's yes is for that one. `changed`: it asks anew, since the tool
    described itself otherwise by then.
    """

    class State(models.TextChoices):
        ASKED = "asked"  # waits for the person's word
        ALLOWED = "allowed"  # they said yes; not run yet
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        DECLINED = "declined"

    ENDS: ClassVar = (State.DONE, State.FAILED, State.DECLINED)

    turn = models.ForeignKey(Turn, models.CASCADE, related_name="calls")
    run = models.IntegerField()
    # Who asked for it.
    account = models.CharField(max_length=64)
    server = models.CharField(max_length=64)
    tool = models.CharField(max_length=200)
    name = models.CharField(max_length=64)
    title = models.CharField(max_length=300, blank=True, default="")
    arguments = models.JSONField(default=dict, blank=True)
    digest = models.CharField(max_length=64)
    tool_digest = models.CharField(max_length=64, blank=True, default="")
    changed = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=State.choices)
    outcome = models.TextField(blank=True, default="")
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, default=None)
    ended_at = models.DateTimeField(null=True, default=None)
    forgotten = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["turn", "name", "digest"], condition=models.Q(forgotten=False), name="call_once"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["asked", "allowed", "running", "done", "failed", "declined"]),
                name="known_call_state",
            ),
        ]


class Line(models.Model):
    """Something said in the chat that is not a message; `data` holds the facts, templates and copy the sentence."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="lines")
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, default=None, related_name="lines")
    kind = models.CharField(max_length=20)
    data = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField()


class TurnEvent(models.Model):
    """An event of a turn's run other than text; the text between two events is in the turn and its attempts."""

    turn = models.ForeignKey(Turn, models.CASCADE, related_name="events")
    run = models.IntegerField()
    position = models.BigIntegerField()
    kind = models.CharField(max_length=12)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["turn", "run", "position"], name="event_once")]


class Picture(models.Model):
    """An image as it is kept: checked by content, written anew, once for each person, however often it was sent."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="pictures")
    sha256 = models.CharField(max_length=64)
    media_type = models.CharField(max_length=60)
    data = models.BinaryField()
    width = models.IntegerField(null=True, default=None)
    height = models.IntegerField(null=True, default=None)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "sha256"], name="picture_once_a_person")]


class Attachment(models.Model):
    """An image of a message, private to its person."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="attachments")
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, default=None, related_name="attachments")
    picture = models.ForeignKey(Picture, models.CASCADE, related_name="attachments")
    name = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
