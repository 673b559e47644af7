"""What starts chats besides a message: agents, prompts that run without a page, prompts on a schedule."""

from typing import ClassVar

from django.db import models

from conch.models.chat import Conversation, Turn
from conch.models.people import Person


class Agent(models.Model):
    """How a chat starts (R24): instructions, who answers, with which model and tools. Afterwards it is any other chat.

    `account` empty: whoever new chats start with; `model` empty: that account's own.
    """

    person = models.ForeignKey(Person, models.CASCADE, related_name="agents")
    name = models.CharField(max_length=100)
    instructions = models.TextField(blank=True, default="")
    account = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    tools = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Task(models.Model):
    """A prompt that runs without a page (R25), in a chat of its own; its state is that of its turn."""

    person = models.ForeignKey(Person, models.CASCADE, related_name="tasks")
    conversation = models.OneToOneField(Conversation, models.CASCADE, related_name="task")
    turn = models.OneToOneField(Turn, models.CASCADE, related_name="task")
    created_at = models.DateTimeField()


class Routine(models.Model):
    """A prompt on a schedule (R25). The schedule is a cron expression of five fields, in the person's zone.

    `zone` is the zone that `next_at` was worked out in; none: it doesn't run (switched off, or never again).
    """

    person = models.ForeignKey(Person, models.CASCADE, related_name="routines")
    name = models.CharField(max_length=100)
    text = models.TextField()
    agent = models.ForeignKey(Agent, models.SET_NULL, null=True, default=None, related_name="routines")
    # Empty: its agent's, else whoever new chats start with.
    account = models.CharField(max_length=64, blank=True, default="")
    cron = models.CharField(max_length=100)
    zone = models.CharField(max_length=64, blank=True, default="")
    active = models.BooleanField(default=True)
    next_at = models.DateTimeField(null=True, default=None)
    created_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["next_at"], condition=models.Q(active=True), name="routine_due"),
        ]

    def __str__(self) -> str:
        return self.name


class RoutineRun(models.Model):
    """One run of a routine, in a chat of its own; its state is that of its turn.

    `planned_at`: the moment that it is for. `late`: it went out later than planned.
    """

    routine = models.ForeignKey(Routine, models.CASCADE, related_name="runs")
    turn = models.OneToOneField(Turn, models.CASCADE, related_name="routine_run")
    planned_at = models.DateTimeField()
    started_at = models.DateTimeField()
    late = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["routine", "planned_at"], name="run_once")]
