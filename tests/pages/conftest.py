"""Rows of chats, and their pages through Django's client."""

import pytest
from django.test import Client

from conch.models import Conversation, Line, Turn
from tests.conftest import NOW


@pytest.fixture
def as_ada(ada):
    client = Client()
    client.force_login(ada)
    return client


def a_chat(person, account="codex", title="Slow query", **fields):
    given = {"created_at": NOW, "updated_at": NOW, "model": "gpt-5.5"} | fields
    return Conversation.objects.create(person=person, account=account, title=title, **given)


def a_turn(chat, text="hi", answer="Hello.", state="done", **fields):
    given = {"account": chat.account, "model": "gpt-5.5", "created_at": NOW, "ended_at": NOW} | fields
    return Turn.objects.create(conversation=chat, text=text, answer=answer, state=state, **given)


def a_line(turn, kind, data):
    return Line.objects.create(conversation=turn.conversation, turn=turn, kind=kind, data=data, at=NOW)
