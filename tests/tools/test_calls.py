"""Calls that are really run: over stdio and HTTP, with our own servers and a public one installed as a package."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from conch import tools
from conch.db import look
from conch.models import ToolPermission
from conch.tools import sessions
from conch.tools.launches import sealed
from tests.tools.site import HERE, command_of, gone, library, listing, notes_of, offered_by, server_of

pytestmark = pytest.mark.usefixtures("_ended")


async def call(person, server, tool, seconds=30.0, **arguments):
    return await tools.call(person.pk, offered_by(server, tool), arguments, seconds=seconds)


async def test_a_program_lists_its_tools_and_runs_them(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes")
    found = await listing(notes)

    wrote = await call(owner, notes, "write", text="Buy oats")
    read = await call(owner, notes, "search", words="oats")

    assert [(tool["name"], tool["title"]) for tool in found.tools][:2] == [
        ("write", "write a note"),
        ("search", "search"),
    ]
    assert found.tools[0]["schema"]["properties"]["text"]["type"] == "string"
    assert (wrote.text, wrote.failed) == ("Note 1 is written.", False)
    assert (read.text, read.failed) == ("Buy oats", False)
    assert 0 < read.seconds < 30
    assert (tmp_path / "notes").read_text() == "Buy oats\n"


async def test_an_address_lists_its_tools_and_runs_them_for_whoever_brings_the_header(owner):
    with library(TOKEN="s3cret-of-ada") as url:
        mine = await look(server_of, owner, "Library", url=url, secrets={"Authorization": "Bearer s3cret-of-ada"})
        none = await look(server_of, owner, "Other", url=url)
        found = await listing(mine)

        year = await call(owner, mine, "year", title="Emma")
        refused = await call(owner, none, "year", title="Emma")

    assert [tool["name"] for tool in found.tools] == ["year", "books"]
    assert (year.text, year.failed) == ("1815", False)
    assert refused.failed
    assert refused.text == ("It doesn’t accept who asks (401). Give it the header that it needs. This call didn’t run.")


async def test_a_public_server_installed_as_a_package_tells_the_time(owner):
    program = str(Path(sys.executable).parent / "mcp-server-time")
    time = await look(server_of, owner, "Time", command=[program, "--local-timezone", "Europe/Paris"])
    found = await listing(time)

    told = await call(owner, time, "convert_time", source_timezone="Europe/Paris", time="12:00", target_timezone="UTC")

    assert {tool["name"] for tool in found.tools} == {"get_current_time", "convert_time"}
    assert not told.failed
    assert json.loads(told.text)["time_difference"] in {"-1.0h", "-2.0h"}


async def test_a_tools_own_failure_is_its_outcome(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes")

    outcome = await call(owner, notes, "fail", why="the pen is dry")

    assert outcome.failed
    assert "the pen is dry" in outcome.text


async def test_calls_of_one_server_share_its_program_and_run_side_by_side(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes")

    seen = await asyncio.gather(*(call(owner, notes, "surroundings") for _ in range(4)))

    assert len({json.loads(one.text)["pid"] for one in seen}) == 1


async def test_a_program_sees_nothing_of_conch_but_what_it_was_told(owner, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebodys")
    monkeypatch.setenv("CONCH_SECRET_KEY", "the-seal")
    notes = await look(notes_of, owner, tmp_path / "notes", TOKEN="for-it-alone")

    seen = json.loads((await call(owner, notes, "surroundings")).text)

    assert seen["TOKEN"] == "for-it-alone"
    assert not {"OPENAI_API_KEY", "CONCH_SECRET_KEY", "CONCH_DATA", "DATABASE_URL"} & seen.keys()
    assert "for-it-alone" not in seen["argv"]
    assert Path(seen["cwd"]).parent.name.startswith("conch-")


async def test_what_it_was_told_is_in_no_list_of_processes(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes", TOKEN="for-it-alone")
    pid = json.loads((await call(owner, notes, "surroundings")).text)["pid"]

    command = await look(command_of, pid)

    assert b"tests.tools.servers.notes" in command
    assert b"for-it-alone" not in command


async def test_a_session_that_is_idle_for_a_while_ends_and_its_program_with_it(owner, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "IDLE", 0.0)
    notes = await look(notes_of, owner, tmp_path / "notes")

    pid = int(json.loads((await call(owner, notes, "surroundings")).text)["pid"])
    ended = await gone(pid)
    again = int(json.loads((await call(owner, notes, "surroundings")).text)["pid"])

    assert ended
    assert again != pid


async def test_every_program_ends_with_conch(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes")
    pid = int(json.loads((await call(owner, notes, "surroundings")).text)["pid"])

    await sessions.end_all()

    assert await gone(pid)


async def test_when_too_many_are_open_the_one_idle_longest_makes_room(owner, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MOST", 1)
    notes = await look(notes_of, owner, tmp_path / "notes")
    with library() as url:
        books = await look(server_of, owner, "Library", url=url)
        pid = int(json.loads((await call(owner, notes, "surroundings")).text)["pid"])

        told = await call(owner, books, "year", title="Dracula")
        ended = await gone(pid)

    assert ended
    assert told.text == "1897"


async def test_a_server_that_is_set_up_anew_is_not_asked_in_its_old_session(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes", TOKEN="old")
    before = json.loads((await call(owner, notes, "surroundings")).text)["TOKEN"]
    notes.sealed_environment = sealed(HERE | {"NOTES_FILE": "x", "TOKEN": "new"})
    await look(notes.save)

    after = json.loads((await call(owner, notes, "surroundings")).text)["TOKEN"]

    assert (before, after) == ("old", "new")


async def test_a_removed_server_and_a_tool_that_is_never_to_run_are_not_called(owner, tmp_path):
    """Whatever a chat was offered before."""
    notes = await look(notes_of, owner, tmp_path / "notes")
    await look(lambda: ToolPermission.objects.create(server=notes, tool="write", permission="never"))
    never = await call(owner, notes, "write", text="no")
    notes.removed_at = notes.created_at
    await look(notes.save)

    removed = await call(owner, notes, "search", words="no")

    assert (never.text, never.failed) == ("This tool is set to never run. This call didn’t run.", True)
    assert (removed.text, removed.failed) == ("This server isn’t connected any more. This call didn’t run.", True)
    assert not (tmp_path / "notes").exists()


async def test_a_server_that_forgot_its_session_is_asked_in_a_new_one_and_the_call_runs_once(owner):
    """It answers 404 to a session that it doesn't know, before it reads the call."""
    with library() as url:
        books = await look(server_of, owner, "Library", url=url)
        assert (await call(owner, books, "year", title="Emma")).text == "1815"
        port = url.split(":")[2].split("/")[0]
    with library(PORT=port):
        told = await call(owner, books, "year", title="Emma")

    assert (told.text, told.failed) == ("1815", False)


async def test_a_call_that_finds_its_server_gone_says_so_in_settings_until_one_finds_it_there(owner):
    with library() as url:
        books = await look(server_of, owner, "Library", url=url)
        port = url.split(":")[2].split("/")[0]
    lost = await call(owner, books, "year", title="Emma")
    await look(books.refresh_from_db)
    trouble = books.trouble
    with library(PORT=port):
        found = await call(owner, books, "year", title="Emma")
    await look(books.refresh_from_db)

    assert (lost.text, lost.failed) == ("It can’t be reached. This call didn’t run.", True)
    assert trouble == {"code": "unreachable"}
    assert (found.text, books.trouble) == ("1815", {})
