"""Every address of the product, and a person who has one of everything that an address can name."""

from datetime import timedelta
from types import SimpleNamespace

from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from conch.accounts import tokens
from conch.accounts.seal import seal
from conch.models import (
    Agent,
    ApiToken,
    Attachment,
    Attempt,
    Conversation,
    Entry,
    Line,
    MonthTotal,
    Picture,
    Preferences,
    Refusal,
    Routine,
    RoutineRun,
    SigninLink,
    Task,
    ToolPermission,
    ToolServer,
    ToolSignIn,
    Turn,
    TurnEvent,
    Window,
    WindowSample,
)
from conch.tools.grants import Grant, sealed_grant
from conch.tools.launches import sealed
from tests.conftest import make_account, make_attachment

SECRET = "sk-proj-Adas0wnKey7f3e"
MARK = "adas-own-words"
OPEN = {"signin", "signin/<str:token>", "healthz", "readyz", "favicon.ico", "admin/login/", "admin/(?P<url>.*)$"} | {
    "settings/tools/connect/client.json"  # who Conch is, for authorization servers
}
LASTS = timedelta(minutes=10)
METHODS = ("get", "post", "patch", "delete")


def addresses():
    """Every pattern of the product, the admin's too, as it is written in the URL configuration."""

    def walk(resolver, before=""):
        for pattern in resolver.url_patterns:
            whole = before + str(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern, whole)
            else:
                yield whole, pattern

    return list(dict(walk(get_resolver())).items())


def one_of_everything(person):
    """Ada's things: a chat with two turns, an account with its key, an agent, a task, a routine, a token …"""
    now = timezone.now()
    account = make_account(person, "openai", "adas", label=MARK, sealed_key=seal(SECRET), key_hint=SECRET[-4:])
    Refusal.objects.create(account=account, kind="refused", at=now, retry_at=now)
    Window.objects.create(account=account, name=MARK, read_at=now)
    WindowSample.objects.create(account=account, name=MARK, slot=1, at=now, used_percent=1)
    chat = Conversation.objects.create(person=person, account="adas", title=MARK, created_at=now, updated_at=now)
    turns = [
        Turn.objects.create(conversation=chat, text=MARK, answer=MARK, state="done", created_at=now, ended_at=now)
        for _ in range(2)
    ]
    turn = turns[-1]
    Attempt.objects.create(turn=turn, run=1, account="adas", model="m", state="done", started_at=now, ended_at=now)
    TurnEvent.objects.create(turn=turn, run=1, position=1, kind="queued")
    Line.objects.create(
        conversation=chat, turn=turn, kind="limit.returned", data={"account": "adas", "label": MARK}, at=now
    )
    png = bytes.fromhex("89504e470d0a1a0a") + MARK.encode()
    image = make_attachment(person, turn, png)
    Entry.objects.create(
        person=person, account="adas", engine="openai", model=MARK, month="2026-10", state="settled", at=now
    )
    MonthTotal.objects.create(person=person, month="2026-10", unpriced=1)
    agent = Agent.objects.create(person=person, name=MARK, created_at=now)
    _tool_server(person, now)
    task = Task.objects.create(person=person, conversation=chat, turn=turns[0], created_at=now)
    routine = Routine.objects.create(
        person=person, name=MARK, text=MARK, cron="0 9 * * *", active=False, created_at=now
    )
    RoutineRun.objects.create(routine=routine, turn=turns[1], planned_at=now, started_at=now)
    tokens.make(person, MARK, now)
    token = ApiToken.objects.get(person=person)
    return SimpleNamespace(
        person=person,
        named={
            "conversation_id": chat.pk,
            "turn_id": turn.pk,
            "attachment_id": image.pk,
            "slug": "adas",
            "agent_id": agent.pk,
            "task_id": task.pk,
            "routine_id": routine.pk,
            "token_id": token.pk,
        },
    )


def signed_in_with(token):
    """A sign-in to a tool server, as it is kept."""
    place = {"issuer": "http://127.0.0.1:1", "token_endpoint": "http://127.0.0.1:1/token"}
    client = {"client_id": MARK, "client_secret": token}
    return sealed_grant(Grant("g", place, client, "http://127.0.0.1:1/mcp", access_token=token, refresh_token=token))


def _tool_server(person, now):
    """A server with its headers and a sign-in, one of its tools allowed, and another sign-in under way."""
    told = sealed({"Authorization": SECRET})
    notes = ToolServer.objects.create(
        person=person,
        slug="adas",
        name=MARK,
        kind="http",
        url="http://127.0.0.1:1/mcp",
        sealed_headers=told,
        sealed_sign_in=signed_in_with(SECRET),
        tools=[{"name": "read", "title": MARK, "description": MARK, "schema": {"type": "object"}, "digest": "d"}],
        created_at=now,
    )
    ToolPermission.objects.create(server=notes, tool="read", permission="always", digest="d")
    ToolSignIn.objects.create(
        server=notes, digest="d", session="s", sealed=seal(f'{{"address": "{MARK}"}}'), expires_at=now + LASTS
    )


def filled(pattern_text, named, **others):
    """An address with its places filled by what is named; what the admin calls its objects is the chat's id."""
    import re

    given = (
        {"engine_id": "openai", "token": "a-made-up-one-time-link", "name": "paid", "how": "address"} | others | named
    )

    def fill(match):
        name = match[2]
        return str(given.get(name, named["conversation_id"]))

    text = re.sub(r"<(\w+:)?(\w+)>", fill, pattern_text)
    return "/" + re.sub(r"\^|\$|\(\?P<\w+>[^)]*\)", "", text)


def rows_of(person):
    """Everything that is kept of a person, to see whether any of it was changed."""
    whose = {
        "person": (
            Conversation,
            Entry,
            MonthTotal,
            Attachment,
            Picture,
            ApiToken,
            SigninLink,
            Agent,
            Routine,
            Task,
            ToolServer,
            Preferences,
        ),
        "conversation__person": (Turn, Line),
        "turn__conversation__person": (Attempt, TurnEvent),
        "account__person": (Window, WindowSample, Refusal),
        "routine__person": (RoutineRun,),
        "server__person": (ToolPermission, ToolSignIn),
    }
    found = {"account": list(person.accounts.order_by("pk").values())}
    for path, models in whose.items():
        for model in models:
            found[model.__name__] = list(model.objects.filter(**{path: person}).order_by("pk").values())
    found["person"] = [
        getattr(type(person).objects.get(pk=person.pk), name) for name in ("username", "password", "email")
    ]
    return found


def signed_in(person, **how):
    client = Client(**how)
    client.force_login(person)
    return client


def still_in(client, person):
    """The same client, signed in again where an address has just signed it out."""
    if "_auth_user_id" not in client.session:
        client.force_login(person)
    return client


def body(response):
    """All of an answer's body, of a stream what it says by itself."""
    if not response.streaming:
        return response.content
    import asyncio

    async def read():
        async with asyncio.timeout(5):
            return b"".join([part async for part in response.streaming_content])

    return asyncio.run(read()) if response.is_async else b"".join(response.streaming_content)
