"""MCP servers that a person connected, and what each of their tools may do."""

from typing import ClassVar

from django.db import models

from conch.models.people import Person


class ToolServer(models.Model):
    """One MCP server: a program started here ("stdio"), or an address ("http").

    A removed one stays as a row with `removed_at`: its slug is never given to another server of the same person, and
    that same server has it again once it is back.
    """

    class Kind(models.TextChoices):
        STDIO = "stdio"
        HTTP = "http"

    person = models.ForeignKey(Person, models.CASCADE, related_name="tool_servers")
    slug = models.CharField(max_length=24)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=5, choices=Kind.choices)
    # The program and its words, run without a shell; empty for an address.
    command = models.JSONField(default=list, blank=True)
    url = models.CharField(max_length=500, blank=True, default="")
    # JSON objects, sealed: what goes into the program's environment, and the headers of every request.
    sealed_environment = models.TextField(blank=True, default="")
    sealed_headers = models.TextField(blank=True, default="")
    # What is kept of a sign-in (conch/tools/grants.py), sealed: also once it has ended, then without its tokens.
    sealed_sign_in = models.TextField(blank=True, default="")
    # As listed last: [{"name", "title", "description", "schema", "digest"}], in the server's order.
    tools = models.JSONField(default=list, blank=True)
    # How many more it lists than are kept.
    left_out = models.IntegerField(default=0)
    listed_at = models.DateTimeField(null=True, default=None)
    # When reading that list failed by itself, and until when it is left alone (conch/reread.py).
    list_failed_at = models.DateTimeField(null=True, default=None)
    list_pause_until = models.DateTimeField(null=True, default=None)
    # Why it couldn't be reached at the last try: {"code", …facts}; empty: it could. conch/copy/tools.py says it.
    trouble = models.JSONField(default=dict, blank=True)
    tried_at = models.DateTimeField(null=True, default=None)
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, default=None)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["person", "slug"], name="one_tool_server"),
            models.CheckConstraint(condition=models.Q(kind__in=["stdio", "http"]), name="known_tool_server_kind"),
        ]

    def __str__(self) -> str:
        return self.name


class ToolSignIn(models.Model):
    """A sign-in to a server that is under way: its person is at the server's own page, and comes back once, in time.

    A server has one at most: who begins again takes back what was begun before.
    """

    server = models.OneToOneField(ToolServer, models.CASCADE, related_name="sign_in")
    # Of the `state` that leads back to it, and of the browser's session in which it was begun.
    digest = models.CharField(max_length=64, unique=True)
    session = models.CharField(max_length=64)
    # What is needed then, and the address that the person is sent to, sealed.
    sealed = models.TextField()
    expires_at = models.DateTimeField()


class ToolPermission(models.Model):
    """What a person said of one tool; without a row it asks.

    `digest` is of the tool as it was then: "always" is for that one, and a tool that says it does something else by now
    asks again.
    """

    class Permission(models.TextChoices):
        ASK = "ask"
        ALWAYS = "always"
        NEVER = "never"

    server = models.ForeignKey(ToolServer, models.CASCADE, related_name="permissions")
    tool = models.CharField(max_length=200)
    permission = models.CharField(max_length=6, choices=Permission.choices)
    digest = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["server", "tool"], name="one_permission_a_tool"),
            models.CheckConstraint(
                condition=models.Q(permission__in=["ask", "always", "never"]), name="known_tool_permission"
            ),
        ]
