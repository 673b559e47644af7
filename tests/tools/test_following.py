"""Lists of tools read again by themselves: daily, when a session opens, when a server says so. No tool is called."""

import asyncio
from datetime import timedelta

import pytest

from conch import tools
from conch.db import look
from conch.models import ToolServer
from conch.tools import following, sessions
from tests.conftest import NOW
from tests.tools.site import hostile_of, listed, notes_of, offered_by, server_of

pytestmark = pytest.mark.usefixtures("_ended")

DAY = timedelta(days=1)


async def row_of(server):
    return await look(ToolServer.objects.get, pk=server.pk)


async def names(server):
    return [tool["name"] for tool in (await row_of(server)).tools]


async def test_a_list_is_read_again_once_it_is_a_day_old(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes")

    await following.read_due(NOW + DAY - timedelta(seconds=1))
    early = await names(notes)
    await following.read_due(NOW + DAY)

    assert early == []
    assert await names(notes) == ["write", "search", "surroundings", "fail"]
    assert (await row_of(notes)).listed_at == NOW + DAY
    assert await look(following.due, NOW + 2 * DAY - timedelta(seconds=1)) == []
    assert not (tmp_path / "notes").exists()


async def test_processes_that_look_at_once_start_its_program_once(owner, tmp_path, monkeypatch):
    notes = await look(notes_of, owner, tmp_path / "notes")
    begun = []
    monkeypatch.setattr(sessions.Session, "_live", _counted(sessions.Session._live, begun))

    await asyncio.gather(*(following.read_if_due(notes.pk, NOW + DAY) for _ in range(4)))

    assert len(begun) == 1


def _counted(real, begun):
    async def live(self, launch):
        begun.append(launch)
        await real(self, launch)

    return live


async def test_one_that_cannot_be_asked_keeps_its_list_says_why_and_is_asked_less_and_less_often(owner):
    server = await look(server_of, owner, "Gone", url="http://127.0.0.1:9/mcp", tools=[listed()])
    at, pauses = NOW + DAY, []

    for _ in range(12):
        await following.read_due(at)
        row = await row_of(server)
        pauses.append(row.list_pause_until - row.list_failed_at)
        assert await look(following.due, row.list_pause_until - timedelta(seconds=1)) == []
        at = row.list_pause_until

    assert pauses[:3] == [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4)]
    assert pauses[-1] == DAY
    assert row.trouble["code"] == "unreachable"
    assert await names(server) == ["run"]


async def test_one_that_was_removed_is_never_asked(owner):
    await look(hostile_of, owner, "text", removed_at=NOW)

    assert await look(following.due, NOW + DAY) == []


async def test_a_session_that_opens_reads_the_list_before_its_first_call(owner, tmp_path):
    notes = await look(notes_of, owner, tmp_path / "notes")

    await tools.call(owner.pk, offered_by(notes, "write"), {"text": "Buy oats"})

    assert await names(notes) == ["write", "search", "surroundings", "fail"]


async def test_a_tool_that_describes_itself_otherwise_than_it_was_offered_is_not_called(owner, tmp_path):
    """decisions/0014."""
    notes = await look(notes_of, owner, tmp_path / "notes")
    notes.tools = [listed("write", "Write a note down, for nobody else.")]

    outcome = await tools.call(owner.pk, offered_by(notes, "write"), {"text": "Buy oats"})

    assert (outcome.failed, outcome.changed) == (True, True)
    assert outcome.text == "The tool isn’t any more what it was when this was asked. This call didn’t run."
    assert not (tmp_path / "notes").exists()
    assert (await row_of(notes)).trouble == {}


async def test_a_server_whose_list_cannot_be_read_is_not_called(owner):
    server = await look(hostile_of, owner, "endless")

    outcome = await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=20)

    assert outcome.failed
    assert outcome.text.endswith("This call didn’t run.")


async def test_reading_a_list_by_itself_keeps_no_session_open_longer(owner, monkeypatch):
    """A server that speaks of changes all the time would never end otherwise."""
    monkeypatch.setattr(following, "SETTLES", 0.0)
    monkeypatch.setattr(sessions, "IDLE", 0.5)
    server = await look(hostile_of, owner, "restless")

    await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=20)
    (session,) = sessions._pools[asyncio.get_running_loop()].values()
    await asyncio.wait({session._task}, timeout=20)

    assert session.over
