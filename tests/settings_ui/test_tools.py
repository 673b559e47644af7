"""Settings → Tools: connecting, what may run, what is in the way; whose it is, and what is never shown."""

import pytest

from conch.models import Agent, Conversation, ToolPermission, ToolServer
from conch.tools.launches import opened
from settings_ui.tools import field_of
from tests.conftest import NOW, make_person
from tests.tools.site import HERE, library, listed, program, server_of

ACTIONS = ("permissions", "check", "rename", "secrets", "remove")


@pytest.fixture
def tables(transactional_db):
    """What connecting writes is written by a thread of its own."""


def chosen(tool, permission, seen="A tool."):
    """What the page's form sends for one tool: the choice, and the tool as it was shown."""
    return {field_of(tool): permission, f"{field_of(tool)}-seen": seen}


def said(response):
    return response.content.decode()


def lines(secrets):
    return "\n".join(f"{name}={value}" for name, value in secrets.items())


def test_the_owner_connects_a_program_and_sees_its_tools(signed_in, tmp_path):
    told = HERE | {"NOTES_FILE": str(tmp_path / "notes"), "TOKEN": "for-it-alone"}
    given = {"name": "My notes", "command": " ".join(program("notes")), "secrets": lines(told)}

    response = signed_in.post("/settings/tools/connect/program", given, follow=True)

    assert response.redirect_chain == [("/settings/tools/my-notes", 302)]
    assert "My notes is connected, with 4 tools. Each asks before it runs." in said(response)
    assert "write a note" in said(response)
    assert "It was told PYTHONPATH, NOTES_FILE, TOKEN." in said(response)
    server = ToolServer.objects.get(person=signed_in.person)
    assert (server.slug, server.kind, server.command) == ("my-notes", "stdio", program("notes"))
    assert opened(server.sealed_environment) == told
    assert "for-it-alone" not in server.sealed_environment


def test_an_address_is_connected_with_its_headers(signed_in):
    with library(TOKEN="s3cret") as url:
        given = {"name": "Library", "url": url, "secrets": "Authorization: Bearer s3cret", "inside": "on"}
        response = signed_in.post("/settings/tools/connect/address", given, follow=True)

    assert "Library is connected, with 2 tools." in said(response)
    assert "s3cret" not in said(response)
    assert "It was told Authorization." in said(response)


def test_an_address_on_this_computer_is_asked_for_once_more(signed_in):
    given = {"name": "Library", "url": "http://127.0.0.1:1/mcp"}

    response = signed_in.post("/settings/tools/connect/address", given)

    assert response.status_code == 422
    assert "That address is on this computer or its network. Tick this." in said(response)
    assert 'type="checkbox" name="inside"' in said(response)


def test_what_was_typed_in_secret_is_never_put_back(signed_in):
    given = {"name": "Notes", "command": "no-such-program-here", "secrets": "TOKEN=for-it-alone"}

    response = signed_in.post("/settings/tools/connect/program", given)

    assert response.status_code == 422
    assert "There is no program “no-such-program-here” on this computer. Nothing was connected." in said(response)
    assert "What you wrote under Environment wasn’t kept. Write it again." in said(response)
    assert "for-it-alone" not in said(response)
    assert 'value="no-such-program-here"' in said(response)
    assert not ToolServer.objects.exists()


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        ("TOKEN", "Line 1 isn’t like NAME=value."),
        ("A=1\n=oops-secret", "Line 2 isn’t like NAME=value."),
        ("A B=oops-secret", "Line 1 isn’t like NAME=value."),
        ("A=oops\x07secret", "Line 1 has characters that can’t be sent."),
        ("\n".join(f"A{n}=1" for n in range(51)), "At most 50 lines."),
    ],
)
def test_an_environment_that_cannot_be_read_is_refused_without_being_quoted(signed_in, secrets, why):
    response = signed_in.post("/settings/tools/connect/program", {"name": "N", "command": "true", "secrets": secrets})

    assert response.status_code == 422
    assert why in said(response)
    assert "oops" not in said(response)


@pytest.mark.parametrize("header", ["Host: evil.example", "content-length: 5", "Mcp-Session-Id: x", "Cookie: a=b"])
def test_headers_that_are_conchs_own_are_refused(signed_in, header):
    given = {"name": "N", "url": "https://notes.example/mcp", "secrets": header}

    response = signed_in.post("/settings/tools/connect/address", given)

    assert "Line 1: that header is Conch’s own to send." in said(response)


def test_a_guest_connects_no_program(visitor):
    """Not offered, and not there."""
    listed_page = said(visitor.get("/settings/tools"))

    assert "Connect a program" not in listed_page
    assert "Only the owner of this computer may connect programs on it." in listed_page
    assert visitor.get("/settings/tools/connect/program").status_code == 404
    assert visitor.post("/settings/tools/connect/program", {"name": "N", "command": "true"}).status_code == 404
    assert not ToolServer.objects.exists()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mcp", "http://169.254.169.254/", "http://localhost:1/mcp"])
def test_a_guest_points_nothing_inside(visitor, url):
    given = {"name": "N", "url": url, "inside": "on"}

    response = visitor.post("/settings/tools/connect/address", given)

    assert response.status_code == 422
    assert "This address isn’t an address on the internet. Only the owner may use others." in said(response)


@pytest.mark.parametrize("action", ["", *(f"/{action}" for action in ACTIONS)])
@pytest.mark.parametrize("slug", ["bobs", "gone", "nothing"])
def test_what_is_not_mine_or_not_there_is_404(signed_in, action, slug):
    bobs = server_of(make_person("carl"), "Bobs", url="https://bobs.example/mcp", tools=[listed()])
    server_of(signed_in.person, "Gone", url="https://gone.example/mcp", removed_at=NOW)
    address = f"/settings/tools/{slug}{action}"

    assert signed_in.get(address).status_code in {404, 405}
    posted = signed_in.post(address, {"name": "Mine now", "secrets": "A: b", field_of("run"): "always"})
    assert posted.status_code in {404, 405} if not action else posted.status_code == 404
    bobs.refresh_from_db()
    assert (bobs.name, bobs.removed_at, bobs.sealed_headers) == ("Bobs", None, "")
    assert not ToolPermission.objects.exists()


@pytest.mark.parametrize("action", ["permissions", "check", "rename", "secrets"])
def test_looking_at_an_action_changes_nothing(signed_in, action):
    server_of(signed_in.person, "Notes", url="https://notes.example/mcp")

    assert signed_in.get(f"/settings/tools/notes/{action}").status_code == 405


def test_each_tool_asks_until_it_is_said_otherwise(signed_in):
    tools = [listed("read"), listed("write"), listed("delete")]
    server = server_of(signed_in.person, "Notes", url="https://notes.example/mcp", tools=tools)
    given = chosen("read", "always") | chosen("write", "ask") | chosen("delete", "never")

    response = signed_in.post("/settings/tools/notes/permissions", given, follow=True)

    assert "Saved." in said(response)
    kept = dict(ToolPermission.objects.filter(server=server).values_list("tool", "permission"))
    assert kept == {"read": "always", "delete": "never"}
    assert "3 tools: 1 always, 1 never, the rest ask." in said(signed_in.get("/settings/tools"))


def test_a_permission_that_there_is_not_changes_nothing(signed_in):
    server_of(signed_in.person, "Notes", url="https://notes.example/mcp", tools=[listed("read")])

    signed_in.post("/settings/tools/notes/permissions", {field_of("read"): "whatever", field_of("other"): "always"})

    assert not ToolPermission.objects.exists()


def test_an_always_holds_for_what_the_tool_said_then(signed_in):
    """A server may say later that the same name does something else: it asks again, and the page says why."""
    server = server_of(signed_in.person, "Notes", url="https://notes.example/mcp", tools=[listed("read")])
    signed_in.post("/settings/tools/notes/permissions", chosen("read", "always"))
    ToolServer.objects.filter(pk=server.pk).update(tools=[listed("read", "Reads, and sends it all away.")])

    page = said(signed_in.get("/settings/tools/notes"))

    assert "It says something else of itself than when you allowed it, so it asks again." in page
    assert '<option value="ask" selected>' in page


def test_an_always_said_to_what_it_says_now_holds_again(signed_in):
    """decisions/0014."""
    server = server_of(signed_in.person, "Notes", url="https://notes.example/mcp", tools=[listed("read")])
    signed_in.post("/settings/tools/notes/permissions", chosen("read", "always"))
    ToolServer.objects.filter(pk=server.pk).update(tools=[listed("read", "Reads, and sends it all away.")])

    response = signed_in.post(
        "/settings/tools/notes/permissions", chosen("read", "always", "Reads, and sends it all away."), follow=True
    )

    assert "Saved." in said(response)
    assert ToolPermission.objects.get().digest == "Reads, and sends it all away."
    assert '<option value="always" selected>' in said(response)


@pytest.mark.parametrize("htmx", [True, False])
def test_an_always_said_to_a_tool_that_changed_under_the_page_is_not_kept_and_that_is_said(signed_in, htmx):
    """decisions/0014: a yes is for what was read."""
    server = server_of(signed_in.person, "Notes", url="https://notes.example/mcp", tools=[listed("read"), listed("rm")])
    given = chosen("read", "always") | chosen("rm", "never")
    ToolServer.objects.filter(pk=server.pk).update(
        tools=[listed("read", "Reads, and sends it all away."), listed("rm")]
    )

    headers = {"HX-Request": "true"} if htmx else {}
    response = signed_in.post("/settings/tools/notes/permissions", given, headers=headers)
    page = said(signed_in.get("/settings/tools/notes"))

    assert response.headers.get("HX-Refresh") == ("true" if htmx else None)
    assert "A tool says something else of itself than when this page was shown, so it still asks." in page
    assert "Saved." not in page
    assert dict(ToolPermission.objects.values_list("tool", "permission")) == {"rm": "never"}


def test_a_server_that_is_gone_is_said_to_be_with_why_and_keeps_its_tools(signed_in):
    with library() as url:
        signed_in.post("/settings/tools/connect/address", {"name": "Library", "url": url, "inside": "on"})

    response = signed_in.post("/settings/tools/library/check", follow=True)

    assert "Library can’t be used now. It can’t be reached." in said(response)
    assert "Unreachable" in said(response)
    assert "all books" in said(response)
    assert "Unreachable" in said(signed_in.get("/settings/tools"))


def test_a_server_that_is_back_is_said_to_be_by_the_next_check(signed_in):
    with library() as url:
        signed_in.post("/settings/tools/connect/address", {"name": "Library", "url": url, "inside": "on"})
        ToolServer.objects.update(trouble={"code": "unreachable"})

        response = signed_in.post("/settings/tools/library/check", follow=True)

    assert "Library answers, with 2 tools." in said(response)
    assert "Unreachable" not in said(response)


def test_a_server_that_is_called_like_an_address_of_settings_has_pages_all_the_same(signed_in, tmp_path):
    told = HERE | {"NOTES_FILE": str(tmp_path / "notes")}
    given = {"name": "Connect", "command": " ".join(program("notes")), "secrets": lines(told)}

    response = signed_in.post("/settings/tools/connect/program", given, follow=True)

    assert response.redirect_chain == [("/settings/tools/connect-2", 302)]


def test_it_is_renamed_and_keeps_its_slug(signed_in):
    server = server_of(signed_in.person, "Notes", url="https://notes.example/mcp")

    signed_in.post("/settings/tools/notes/rename", {"name": "  My \u202e notes "})
    refused = signed_in.post("/settings/tools/notes/rename", {"name": " "})

    server.refresh_from_db()
    assert (server.name, server.slug) == ("My notes", "notes")
    assert refused.status_code == 422


def test_other_secrets_take_the_place_of_all_that_it_was_told(signed_in):
    with library(TOKEN="new-one") as url:
        server = server_of(signed_in.person, "Library", url=url, secrets={"Authorization": "Bearer old", "X-Old": "1"})

        response = signed_in.post(
            "/settings/tools/library/secrets", {"secrets": "Authorization: Bearer new-one"}, follow=True
        )

    server.refresh_from_db()
    assert opened(server.sealed_headers) == {"Authorization": "Bearer new-one"}
    assert "Library answers, with 2 tools." in said(response)
    assert "new-one" not in said(response)


def test_removing_it_forgets_its_secrets_and_what_was_allowed_and_keeps_its_slug(signed_in):
    url = "https://notes.example/mcp"
    server = server_of(signed_in.person, "Notes", url=url, secrets={"A": "b"}, tools=[listed()])
    ToolPermission.objects.create(server=server, tool="run", permission="always", digest="A tool.")
    now = {"created_at": NOW, "updated_at": NOW}
    Conversation.objects.create(person=signed_in.person, account="local", tools=["notes"], **now)
    Agent.objects.create(person=signed_in.person, name="A", tools=["notes", "other"], created_at=NOW)

    asked = said(signed_in.get("/settings/tools/notes/remove"))
    signed_in.post("/settings/tools/notes/remove")

    server.refresh_from_db()
    assert "One chat has it turned on: it is off there, too." in asked
    assert "One agent has it: it is off there, too." in asked
    assert (server.sealed_headers, server.tools) == ("", [])
    assert server.removed_at is not None
    assert Conversation.objects.get().tools == []
    assert Agent.objects.get().tools == ["other"]
    assert not ToolPermission.objects.exists()
    assert "Notes" not in said(signed_in.get("/settings/tools")).replace("Notes is removed", "")


def test_the_same_server_again_is_refused_while_it_is_there_and_has_its_slug_back_later(signed_in):
    with library() as url:
        given = {"name": "Library", "url": url, "inside": "on"}
        signed_in.post("/settings/tools/connect/address", given)
        twice = signed_in.post("/settings/tools/connect/address", given)
        signed_in.post("/settings/tools/library/remove")
        other = server_of(signed_in.person, "Other", slug="library-2", url="https://other.example/mcp")
        again = signed_in.post("/settings/tools/connect/address", given | {"name": "Books"})

    assert "This server is connected already, as Library." in said(twice)
    assert again["Location"] == "/settings/tools/library"
    assert list(ToolServer.objects.order_by("pk").values_list("slug", "name")) == [
        ("library", "Books"),
        ("library-2", other.name),
    ]


def test_a_thousand_tools_are_shown_a_hundred_at_a_time(signed_in):
    tools = [listed(f"tool-{number}") for number in range(1000)]
    server = server_of(signed_in.person, "Many", url="https://many.example/mcp", tools=tools)

    page = said(signed_in.get("/settings/tools/many?page=3"))
    response = signed_in.post("/settings/tools/many/permissions", {field_of("tool-250"): "never", "page": "3"})

    assert page.count("<select") == 100
    assert "201 to 300 of 1000" in page
    assert "A chat is offered 128 tools at most" in page
    assert response["Location"] == "/settings/tools/many?page=3"
    assert list(ToolPermission.objects.filter(server=server).values_list("tool", flat=True)) == ["tool-250"]


def test_what_a_server_says_of_its_tools_is_text_on_the_page(signed_in):
    odd = listed("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", title="</code><b>bold")
    server_of(signed_in.person, "Odd", url="https://odd.example/mcp", tools=[odd])

    page = said(signed_in.get("/settings/tools/odd"))

    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page
    assert "<b>bold" not in page


def test_nothing_told_in_secret_leaves_with_what_a_person_takes_along(signed_in):
    told = {"Authorization": "Bearer for-it-alone"}
    server = server_of(signed_in.person, "Notes", url="https://notes.example/mcp", secrets=told, tools=[listed()])

    taken = b"".join(signed_in.get("/settings/you/export").streaming_content).decode()

    assert "https://notes.example/mcp" in taken
    assert "for-it-alone" not in taken
    assert server.sealed_headers not in taken
    assert "sealed" not in taken.partition('"tool_servers"')[2].partition("conversations")[0]
