"""Servers that mean no good, and the ways that lead inside: bounded, told in words, and nothing is run twice."""

import asyncio
import os

import pytest

from conch import tools
from conch.db import look
from conch.tools import protocol, servers, sessions
from conch.tools.calling import LONGEST
from conch.tools.launches import launch_of
from conch.tools.listing import listing_of
from conch.tools.offers import MOST_OFFERED, offered
from conch.tools.over_stdio import MOST_ERRORS, ServerProcess
from conch.tools.servers import Kind, Wish
from conch.tools.trouble import ToolTrouble
from tests.conftest import NOW, make_person
from tests.tools.site import hostile_of, library, listing, offered_by, server_of

pytestmark = pytest.mark.usefixtures("_ended")
UNKNOWN = "It isn’t known whether this call did anything."


async def called(owner, how, seconds=20.0, **secrets):
    server = await look(hostile_of, owner, how, **secrets)
    return await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=seconds)


async def test_a_huge_outcome_is_cut_and_says_so(owner):
    outcome = await called(owner, "huge")

    assert not outcome.failed
    assert len(outcome.text) < LONGEST + 100
    assert outcome.text.endswith("[Cut here: 2,900,000 characters more.]")


async def test_a_line_without_end_is_given_up(owner):
    outcome = await called(owner, "endless-line")

    assert (outcome.text, outcome.failed) == (f"It doesn’t answer as an MCP server does. {UNKNOWN}", True)


async def test_a_server_that_dies_in_the_middle_is_not_asked_again(owner):
    """R17: nobody knows what it did by then. Its last words are told, without what it was told in secret."""
    outcome = await called(owner, "dies", TOKEN="for-it-alone")

    assert outcome.failed
    assert outcome.text == f"Its program ended by itself: out of luck, …. {UNKNOWN}"


async def test_a_server_that_never_answers_is_waited_for_so_long_and_ended(owner):
    server = await look(hostile_of, owner, "hang")

    outcome = await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=3)

    assert outcome.failed
    assert outcome.text in {
        f"It didn’t answer within 3 seconds. {UNKNOWN}",
        "It wasn’t ready within 3 seconds. This call didn’t run.",
    }
    assert outcome.seconds < 20


@pytest.mark.parametrize(
    ("how", "code"), [("rubbish", "rubbish"), ("deaf", "slow")], ids=["speaks something else", "says nothing"]
)
async def test_what_is_no_mcp_server_is_told_from_one(owner, monkeypatch, how, code):
    monkeypatch.setattr(sessions, "OPENING", 3.0)
    server = await look(hostile_of, owner, how)

    with pytest.raises(ToolTrouble) as raised:
        await listing_of(launch_of(server))

    assert raised.value.code == code
    assert not raised.value.sent


async def test_an_outcome_of_another_shape_is_no_outcome(owner):
    outcome = await called(owner, "shape")

    assert (outcome.text, outcome.failed) == (f"It doesn’t answer as an MCP server does. {UNKNOWN}", True)


async def test_lone_surrogates_and_nul_are_taken_out_of_an_outcome(owner):
    outcome = await called(owner, "surrogates")

    assert outcome.text == "a\ufffdz!"


async def test_a_picture_is_named_in_words(owner):
    outcome = await called(owner, "picture")

    assert outcome.text == "[The tool returned an image (image/png, 2 kB), which isn’t handed on.]"


async def test_a_flood_of_notices_and_questions_of_its_own_change_nothing(owner):
    outcome = await called(owner, "flood")

    assert (outcome.text, outcome.failed) == ("nothing", False)


async def test_a_server_that_says_all_the_time_that_its_list_changed_is_asked_for_it_once_a_call(owner):
    server = await look(hostile_of, owner, "notices")

    told = [await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=20) for _ in range(3)]

    assert [outcome.failed for outcome in told] == [False] * 3
    assert int(told[-1].text) <= 3 + 1  # one more where it was asked between two calls


async def test_a_list_without_end_is_left_after_a_while(owner, monkeypatch):
    monkeypatch.setattr(protocol, "MOST_PAGES", 5)
    server = await look(hostile_of, owner, "endless")

    found = await listing(server)

    assert (len(found.tools), found.left_out) == (5, 1)


async def test_a_thousand_tools_are_kept_and_the_first_are_offered(owner):
    server = await look(hostile_of, owner, "thousand")
    found = await listing(server)
    await look(server.save)

    chosen = await look(offered, owner.pk, ["hostile"])

    assert (len(found.tools), found.left_out) == (1000, 0)
    assert len(chosen) == MOST_OFFERED
    assert chosen[0].name == "hostile__tool-0000"


async def test_more_than_a_thousand_are_left_out(owner):
    found = await listing(await look(hostile_of, owner, "more"))

    assert len(found.tools) == 1000
    assert found.left_out == 1


async def test_odd_names_are_named_plainly_and_told_apart(owner):
    """Markup, spaces, what turns the line around, very long ones, none, and one that is there twice."""
    server = await look(hostile_of, owner, "odd")
    found = await listing(server)
    await look(server.save)

    chosen = await look(offered, owner.pk, ["hostile"])
    names = [tool.name for tool in chosen]

    assert found.left_out == 3  # the one of 129 characters, the empty one, the second "twice"
    assert len(set(names)) == len(names) == 7
    assert all(
        len(name) <= 64 and name.replace("-", "").replace("_", "").isalnum() and name.isascii() for name in names
    )
    assert "hostile__dot_ted" in names
    assert next(tool for tool in chosen if tool.tool == "twice").description == "first"
    assert [tool.title for tool in chosen if "exe" in tool.tool] == ["agnp.exe in Hostile"]


async def test_what_it_says_of_its_tools_is_cleaned_and_bounded(owner):
    words = (await listing(await look(hostile_of, owner, "words"))).tools[0]["description"]

    assert len(words) == 4000
    assert words.startswith("<img src=x onerror=alert(1)> ")
    assert "\0" not in words
    assert "\ufffd" in words


async def test_a_schema_without_end_is_left_out(owner):
    found = await listing(await look(hostile_of, owner, "schema"))

    assert ([tool["name"] for tool in found.tools], found.left_out) == (["plain"], 1)


async def test_nobody_but_the_owner_has_a_program_started_whatever_a_row_says(owner):
    bob = await look(make_person, "bob")
    server = await look(hostile_of, bob, "well")

    outcome = await tools.call(bob.pk, offered_by(server, "run"), {})

    assert outcome.text == "Only the owner of this machine may start programs. This call didn’t run."
    with pytest.raises(servers.CantConnect, match="Only the owner"):
        await servers.connect(bob, Wish("Mine", Kind.STDIO, command=("true",)), NOW)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/mcp",
        "http://[::1]/mcp",
        "http://169.254.169.254/mcp",
        "http://10.0.0.1/",
        "http://localhost/mcp",
    ],
)
async def test_a_guest_cannot_point_it_inside(owner, address):
    """SEC-04, by an address and by a name."""
    bob = await look(make_person, "bob")

    with pytest.raises(servers.CantConnect, match="isn’t an address on the internet") as raised:
        await servers.connect(bob, Wish("Inside", Kind.HTTP, url=address), NOW)

    assert raised.value.about == "url"


async def test_a_name_that_leads_inside_by_now_is_not_called_for_a_guest(owner, monkeypatch):
    """It resolved to the internet when it was connected; the address is looked at again at each connection."""
    bob = await look(make_person, "bob")
    with library() as url:
        server = await look(server_of, bob, "Turned", url=url.replace("127.0.0.1", "localhost"))
        mine = await look(server_of, owner, "Mine", url=url.replace("127.0.0.1", "localhost"))

        outcome = await tools.call(bob.pk, offered_by(server, "year"), {"title": "Emma"})
        owners = await tools.call(owner.pk, offered_by(mine, "year"), {"title": "Emma"})

    assert (outcome.text, outcome.failed) == ("It can’t be reached. This call didn’t run.", True)
    assert owners.text == "1815"


@pytest.mark.parametrize("where", ["/mcp", "http://127.0.0.1:1/mcp"], ids=["to itself", "elsewhere"])
async def test_no_redirect_is_followed(owner, where):
    with library(MOVED_TO=where) as url:
        server = await look(server_of, owner, "Moved", url=url.replace("/mcp", "/moved"), secrets={"X-Key": "k"})

        outcome = await tools.call(owner.pk, offered_by(server, "year"), {"title": "Emma"})

    assert outcome.failed
    assert outcome.text.startswith("It redirects elsewhere.")


async def test_another_persons_server_is_not_there(owner):
    bob = await look(make_person, "bob")
    server = await look(hostile_of, owner, "well")

    outcome = await tools.call(bob.pk, offered_by(server, "run"), {})
    mine = await look(offered, bob.pk, [server.slug])

    assert outcome.text.startswith("This server isn’t connected any more.")
    assert mine == ()


async def test_what_goes_wrong_is_in_no_log_with_what_was_told_in_secret(owner, caplog):
    caplog.set_level("DEBUG")
    with library(TOKEN="the-right-one") as url:
        server = await look(server_of, owner, "Library", url=url, secrets={"Authorization": "Bearer s3cret-wrong-one"})
        await tools.call(owner.pk, offered_by(server, "year"), {"title": "Emma"})
    await called(owner, "dies", TOKEN="for-it-alone")
    await asyncio.sleep(0)

    assert "s3cret-wrong-one" not in caplog.text
    assert "for-it-alone" not in caplog.text


async def test_what_a_program_logs_takes_no_more_than_a_bound_on_disk(owner, monkeypatch):
    """It writes 3.5 MB at each call."""
    started = []
    real = ServerProcess.start.__func__

    async def kept(kind, *given):
        started.append(await real(kind, *given))
        return started[-1]

    monkeypatch.setattr(ServerProcess, "start", classmethod(kept))
    server = await look(hostile_of, owner, "log")

    for _ in range(2):
        outcome = await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=20)
    taken = os.fstat(started[-1].popen.stderr.fileno()).st_blocks * 512

    assert not outcome.failed
    assert len(started) == 1
    assert taken <= MOST_ERRORS


async def test_where_every_session_is_busy_a_call_to_another_server_says_so(owner, monkeypatch):
    monkeypatch.setattr(sessions, "MOST", 1)
    launch = launch_of(await look(hostile_of, owner, "well"))
    other = await look(server_of, owner, "Other", url="https://other.example/mcp")
    began, held = asyncio.Event(), asyncio.Event()

    async def asked(_session):
        began.set()
        await held.wait()

    busy = asyncio.create_task(sessions.session_with(launch).use(asked, 20))
    await began.wait()

    outcome = await tools.call(owner.pk, offered_by(other, "run"), {})
    await look(other.refresh_from_db)
    held.set()
    await busy

    assert outcome.text == "Too many servers are busy right now. Try again in a while. This call didn’t run."
    assert other.trouble == {}
