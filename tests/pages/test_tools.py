"""The tools of a chat, on its page: which are on, turning them on and off, and what a new chat begins with."""

import pytest

from conch.models import Agent, Conversation
from tests.conftest import NOW, make_person
from tests.tools.site import server_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(transactional_db, client):
    person = make_person("ada", is_owner=True)
    client.force_login(person)
    server_of(person, "Notes", url="https://notes.example/mcp", trouble={"code": "unreachable"})
    server_of(person, "Library", url="https://library.example/mcp")
    return person


def chat_of(person, **fields):
    return Conversation.objects.create(person=person, account="local", created_at=NOW, updated_at=NOW, **fields)


def said(response):
    return response.content.decode()


def test_the_box_says_which_servers_are_on_and_what_is_in_the_way(client, ada):
    page = said(client.get(f"/c/{chat_of(ada, tools=['notes']).pk}"))

    assert 'aria-label="Tools: Notes. Change"' in page
    assert 'value="notes" checked' in page
    assert "It can’t be reached." in page


def test_a_person_without_servers_sees_nothing_of_them(client, db):
    person = make_person("bob")
    client.force_login(person)

    assert 'popovertarget="tools"' not in said(client.get(f"/c/{chat_of(person).pk}"))


def test_those_named_are_on_from_now_on_and_no_others(client, ada):
    chat = chat_of(ada, tools=["notes"])

    response = client.post(f"/c/{chat.pk}/tools", {"tools": ["library", "nothing"]})

    assert response["Location"] == f"/c/{chat.pk}"
    assert Conversation.objects.get().tools == ["library"]


def test_anothers_chat_is_not_there(client, ada):
    chat = chat_of(make_person("carl"), tools=["theirs"])

    assert client.post(f"/c/{chat.pk}/tools", {"tools": ["notes"]}).status_code == 404
    assert Conversation.objects.get().tools == ["theirs"]


def test_looking_changes_nothing(client, ada):
    assert client.get(f"/c/{chat_of(ada).pk}/tools").status_code == 405


def test_a_new_chat_of_an_agent_has_its_tools_unless_others_are_chosen(client, ada):
    agent = Agent.objects.create(person=ada, name="Librarian", account="local", tools=["library"], created_at=NOW)
    shown = said(client.get(f"/?agent={agent.pk}"))
    given = {"text": "Hello", "agent": agent.pk}

    client.post("/begin", given | {"key": "as it is"})
    client.post("/begin", given | {"key": "others", "tools": ["", "notes"]})
    client.post("/begin", given | {"key": "none", "tools": [""]})

    assert 'value="library" form="composer" checked' in shown
    assert 'value="notes" form="composer" checked' not in shown
    assert list(Conversation.objects.order_by("pk").values_list("tools", flat=True)) == [["library"], ["notes"], []]


def test_what_was_chosen_stays_with_a_message_that_could_not_be_sent(client, ada):
    response = client.post("/begin", {"text": " ", "tools": ["", "notes"]})

    assert response.status_code == 422
    assert 'value="notes" form="composer" checked' in said(response)
    assert not Conversation.objects.exists()


def test_an_agent_is_given_tools_and_loses_those_that_are_unticked(client, ada):
    given = {"name": "Librarian", "instructions": "", "account": "", "model": ""}
    client.post("/settings/agents/new", given | {"tools": ["library", "notes"]})
    agent = Agent.objects.get()
    first, shown = agent.tools, said(client.get("/settings/agents"))

    client.post(f"/settings/agents/{agent.pk}", given | {"tools": ["notes"]})
    refused = client.post(f"/settings/agents/{agent.pk}", given | {"tools": ["nothing"]})

    agent.refresh_from_db()
    assert first == ["library", "notes"]
    assert "With the tools of Library, Notes." in shown
    assert agent.tools == ["notes"]
    assert "That server isn’t connected any more." in said(refused)
