"""What programs keep in their folders of CONCH_DATA goes into a backup and comes back, whatever they do meanwhile."""

import sqlite3
import tarfile
from contextlib import closing
from datetime import UTC, datetime

import pytest

from conch import backup

NOW = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    """As much of CONCH_DATA as a backup asks for, with a program's home in it."""
    data = tmp_path / "data"
    (data / "homes" / "codex-1").mkdir(parents=True)
    (data / "secret_key").write_text("secret")
    (data / "homes" / "codex-1" / "auth.json").write_text("{}")
    with closing(sqlite3.connect(data / backup.DATABASE)) as database, database:
        database.execute("CREATE TABLE conch_turn (state, lease_until, owner)")
    return data


def restored(file, tmp_path):
    there = tmp_path / "elsewhere"
    there.mkdir()
    backup.restore(file, there, NOW)
    return there


def test_a_program_s_links_to_elsewhere_keep_nothing_from_coming_back(folder, tmp_path):
    """Codex links its helpers to where it is installed, Claude Code its latest log by the whole path."""
    home = folder / "homes" / "codex-1"
    (home / "apply_patch").symlink_to("/usr/bin/env")
    (home / "up").symlink_to("../../../outside")
    (home / "latest").symlink_to("auth.json")
    file = tmp_path / "conch.tar.gz"

    backup.take(folder, file, embedded=True)
    there = restored(file, tmp_path) / "homes" / "codex-1"

    assert sorted(path.name for path in there.iterdir()) == ["auth.json", "latest"]
    assert (there / "latest").read_text() == "{}"


def test_a_backup_that_holds_such_links_already_comes_back_without_them(folder, tmp_path):
    (folder / "homes" / "codex-1" / "apply_patch").symlink_to("/usr/bin/env")
    file = tmp_path / "conch.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        for path in folder.iterdir():
            tar.add(path, path.name)

    there = restored(file, tmp_path)

    assert [path.name for path in (there / "homes" / "codex-1").iterdir()] == ["auth.json"]


def test_a_file_of_two_names_is_there_by_both(folder, tmp_path):
    home = folder / "homes" / "codex-1"
    (home / "also.json").hardlink_to(home / "auth.json")
    file = tmp_path / "conch.tar.gz"

    backup.take(folder, file, embedded=True)
    there = restored(file, tmp_path) / "homes" / "codex-1"

    assert [(there / name).read_text() for name in ("also.json", "auth.json")] == ["{}", "{}"]


def test_a_file_that_goes_away_while_the_backup_is_taken_breaks_nothing(folder, tmp_path, monkeypatch):
    home = folder / "homes" / "codex-1"
    (home / "passing").write_text("a moment")
    gone = tarfile.TarFile.gettarinfo

    def looked_at(tar, name=None, *given, **named):
        if str(name).endswith("passing"):
            (home / "passing").unlink()
        return gone(tar, name, *given, **named)

    monkeypatch.setattr(tarfile.TarFile, "gettarinfo", looked_at)
    file = tmp_path / "conch.tar.gz"

    backup.take(folder, file, embedded=True)

    assert [path.name for path in (restored(file, tmp_path) / "homes" / "codex-1").iterdir()] == ["auth.json"]


def test_a_backup_into_the_folder_itself_holds_nothing_of_itself(folder):
    file = folder / "conch.tar.gz"

    assert backup.take(folder, file, embedded=True) == [backup.DATABASE, "homes", "secret_key"]
    assert backup.take(folder, file, embedded=True) == [backup.DATABASE, "homes", "secret_key"]
