"""Which tools a chat may use now, and what the person said of them."""

import pytest

from conch.models import ToolPermission
from conch.tools import allow_always, connected, known, offered
from conch.tools.offers import name_for
from tests.conftest import NOW
from tests.tools.site import listed, server_of


@pytest.fixture
def notes(ada):
    return server_of(ada, "Notes", url="https://notes.example/mcp", tools=[listed("read"), listed("write")])


def test_a_chat_is_offered_the_tools_of_the_servers_it_turned_on_in_their_order(ada, notes):
    server_of(ada, "Books", url="https://books.example/mcp", tools=[listed("find", title="find a book")])

    both = offered(ada.pk, ["books", "notes", "books", "gone"])

    assert [tool.name for tool in both] == ["books__find", "notes__read", "notes__write"]
    assert [tool.title for tool in both] == ["find a book in Books", "read in Notes", "write in Notes"]
    assert {tool.permission for tool in both} == {"ask"}
    assert offered(ada.pk, []) == ()


def test_what_is_never_to_run_is_not_offered_and_what_always_may_says_so(ada, notes):
    ToolPermission.objects.create(server=notes, tool="write", permission="never")
    allow_always(ada.pk, "notes", "read")

    assert [(tool.tool, tool.permission) for tool in offered(ada.pk, ["notes"])] == [("read", "always")]


def test_an_always_is_for_the_tool_as_it_was_then(ada, notes):
    allow_always(ada.pk, "notes", "read")
    notes.tools = [listed("read", "Reads, and sends it away.")]
    notes.save()

    assert offered(ada.pk, ["notes"])[0].permission == "ask"


def test_a_never_stays_whatever_the_tool_says_later(ada, notes):
    ToolPermission.objects.create(server=notes, tool="read", permission="never", digest="A tool.")
    notes.tools = [listed("read", "Now quite harmless.")]
    notes.save()

    assert offered(ada.pk, ["notes"]) == ()


def test_always_is_kept_for_a_tool_of_ones_own_that_is_there_and_for_no_other(ada, bob, notes):
    allow_always(bob.pk, "notes", "read")
    allow_always(ada.pk, "notes", "none-such")
    allow_always(ada.pk, "none-such", "read")

    assert not ToolPermission.objects.exists()


def test_it_takes_two_queries_for_however_many_servers(ada, notes, django_assert_num_queries):
    for number in range(5):
        server_of(ada, f"More{number}", url=f"https://more{number}.example/mcp", tools=[listed()])

    with django_assert_num_queries(2):
        found = offered(ada.pk, ["notes", *(f"more{number}" for number in range(5))])

    assert len(found) == 7


def test_servers_are_known_by_their_slugs_while_they_are_connected(ada, bob, notes):
    server_of(ada, "Gone", url="https://gone.example/mcp", removed_at=NOW)
    server_of(bob, "Bobs", url="https://bobs.example/mcp")

    assert known(ada.pk, ["gone", "notes", "bobs", "notes"]) == ["notes"]
    assert [server.slug for server in connected(ada.pk)] == ["notes"]


@pytest.mark.parametrize(
    ("tool", "name"),
    [("read", "notes__read"), ("read-all_2", "notes__read-all_2"), ("x" * 57, "notes__" + "x" * 57)],
)
def test_a_plain_name_stays_as_it_is(tool, name):
    assert name_for("notes", tool) == name


@pytest.mark.parametrize("tool", ["a.b", "a b", "ä", "x" * 58, "日本語", ""])
def test_any_other_name_fits_every_provider_and_is_told_from_its_like(tool):
    name = name_for("notes", tool)

    assert len(name) <= 64
    assert name.isascii()
    assert name.replace("_", "").replace("-", "").isalnum()
    assert name != name_for("notes", tool + "~")
