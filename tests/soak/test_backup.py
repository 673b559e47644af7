"""A backup is taken while Conch is at work, and goes back whole (doors.md, `backup` and `restore`)."""

import asyncio
import stat
import subprocess
import sys
import tarfile
import time

import pytest

from tests.soak.place import ROOT, Place
from tests.soak.run import Soak

CONFIRMED = 5  # messages, before the backup is taken


def manage(place, *command, fails=False):
    done = subprocess.run(
        [sys.executable, "manage.py", *map(str, command)],
        cwd=ROOT, env=place.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def _running(dump):
    return [turn for turn in dump["turns"] if turn["state"] == "running"]


@pytest.fixture
def at_work(tmp_path):
    soak = Soak(tmp_path, seed=3)
    yield soak
    soak.end()


def test_a_backup_of_a_running_conch_goes_back_into_an_empty_folder(at_work, tmp_path):
    """Every message confirmed before it is in it, with what opens the keys; what is restored starts and adds up."""
    file, asked = tmp_path / "conch.tar.gz", {}

    async def take():
        server = at_work.place.serve().wait_until_serving()
        at_work.load.addresses = [server.address]
        working = asyncio.create_task(at_work.load.run(2))
        while sum(bool(one.turns) for one in at_work.load.told.sent.values()) < CONFIRMED:  # noqa: ASYNC110  they tell
            await asyncio.sleep(0.05)
        asked["before"] = {one.text for one in at_work.load.told.sent.values() if one.turns}
        asked["said"] = await asyncio.to_thread(manage, at_work.place, "backup", file)
        asked["refused"] = await asyncio.to_thread(manage, at_work.place, "restore", file, fails=True)
        await at_work.conclude(working)

    asyncio.run(take())
    (tmp_path / "elsewhere").mkdir()
    other = Place(tmp_path / "elsewhere")
    try:
        said = manage(other, "restore", file)
        server = other.serve().wait_until_serving()
        until = time.monotonic() + 60  # its worker's first look comes a moment after its first answer
        while _running(other.inside("dump")) and time.monotonic() < until:
            pass
        server.end()
        dump = other.inside("dump")
    finally:
        other.end()

    data = tmp_path / "elsewhere" / "data"
    assert asked["before"] <= {turn["text"] for turn in dump["turns"]}
    assert dump["differences"] == []
    assert not _running(dump)
    assert (data / "secret_key").read_text() == (tmp_path / "data" / "secret_key").read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "secret_key").stat().st_mode) == 0o600
    assert "conch.sqlite3" in asked["said"]
    assert "Stop it first" in asked["refused"]
    assert "before-restore-" in said  # the secret that looking at an empty folder had made
    assert list(data.glob("before-restore-*/secret_key"))


def test_what_is_no_backup_changes_nothing(tmp_path):
    """Bad input: nothing, garbage, and an archive of something else that would write outside."""
    place, file = Place(tmp_path), tmp_path / "file"
    place.inside("prepare", accounts=[])
    before = sorted(path.name for path in (tmp_path / "data").iterdir())
    for content in (b"", b"not a tar", None):
        if content is None:
            with tarfile.open(file, "w:gz") as tar:
                tar.add(__file__, "../outside")
        else:
            file.write_bytes(content)

        said = manage(place, "restore", file, fails=True)

        assert said.count("\n") == 1
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == before
        assert not (tmp_path / "outside").exists()
    place.end()
