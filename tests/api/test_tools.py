"""The tools of a conversation, by slugs of the caller's servers."""

import pytest

from conch.models import Conversation
from tests.conftest import make_person
from tests.tools.site import listed, server_of


@pytest.fixture
def servers(ada):
    server_of(ada, "Notes", url="https://notes.example/mcp", tools=[listed()])
    server_of(ada, "Library", url="https://library.example/mcp")
    server_of(make_person("carl"), "Bobs", url="https://bobs.example/mcp")


def test_a_conversation_starts_with_tools_and_has_others_from_then_on(call, servers):
    made = call.post("/api/conversations", json={"account": "local", "tools": ["notes"]}).json()

    changed = call.patch(f"/api/conversations/{made['id']}", json={"tools": ["library", "notes", "library"]})
    none = call.patch(f"/api/conversations/{made['id']}", json={"tools": []})

    assert made["tools"] == ["notes"]
    assert changed.json()["tools"] == ["library", "notes"]
    assert none.json()["tools"] == []


@pytest.mark.parametrize("slug", ["nothing", "bobs"])
def test_a_server_that_is_not_there_or_anothers_is_refused_and_nothing_changes(call, servers, slug):
    made = call.post("/api/conversations", json={"account": "local", "tools": ["notes"]}).json()

    started = call.post("/api/conversations", json={"account": "local", "tools": ["notes", slug]})
    changed = call.patch(f"/api/conversations/{made['id']}", json={"title": "Mine now", "tools": [slug]})

    for refused in (started, changed):
        assert refused.status_code == 422
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["code"] == "no_tool_server"
        assert refused.json()["detail"] == f"There is no tool server '{slug}'."
    assert list(Conversation.objects.values_list("tools", "title")) == [(["notes"], "")]
