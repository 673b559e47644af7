"""The commands: what they print, where, and how they end (doors.md)."""

import io
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from django.core.management import execute_from_command_line
from django.utils import timezone

from conch.accounts import signin, tokens
from conch.models import Account, MonthTotal, Person, ToolServer
from tests.conftest import make_account, make_person
from tests.tools.site import library, server_of

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-made-up-0123456789abcdef4f2a"


@pytest.fixture
def manage(capsys, monkeypatch, transactional_db):
    """Run a command as from a shell: (exit status, stdout, stderr)."""

    def run(*argv, stdin="", **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        status = 0
        try:
            execute_from_command_line(["manage.py", *argv])
        except SystemExit as ended:
            status = ended.code or 0
        out, err = capsys.readouterr()
        return status, out, err

    return run


def refused(ended, status, *words):
    """It ended so, with one line on stderr and nothing on stdout."""
    code, out, err = ended
    assert (code, out) == (status, "")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    assert err.startswith("conch: ")
    assert all(word in err for word in words), err


def test_token_prints_a_token_and_nothing_else(manage):
    status, out, err = manage("token", "--name", "laptop")

    assert (status, err) == (0, "")
    assert re.fullmatch(r"conch_[\w-]{43}\n", out)
    assert tokens.person_of(out.strip(), timezone.now()) == Person.objects.get(is_owner=True).pk


def test_signin_prints_a_link_that_works_once(manage):
    status, out, _ = manage("signin")

    assert status == 0
    address, _, token = out.strip().rpartition("/signin/")
    assert address == "http://127.0.0.1:8765"
    assert signin.person_of_link(token, timezone.now()).is_owner
    assert signin.person_of_link(token, timezone.now()) is None


def test_new_makes_that_person_first_and_an_unknown_one_is_refused(manage):
    refused(manage("signin", "--user", "grace"), 1, "nobody called 'grace'")
    assert manage("signin", "--user", "grace", "--new")[0] == 0
    assert manage("signin", "--user", "grace")[0] == 0
    refused(manage("signin", "--user", "grace", "--new"), 1, "somebody of that name")
    refused(manage("signin", "--user", "a b/c", "--new"), 1, "can't be a name")
    refused(manage("signin", "--new"), 2, "--user")
    refused(manage("token", "--user", "nobody"), 1, "nobody called")
    assert not Person.objects.get(username="grace").has_usable_password()


def test_connect_prints_the_account_as_json_on_the_last_line(manage, simulator):
    simulator.key(KEY)

    status, out, err = manage(
        "connect",
        "openai",
        "--key-env",
        "MY_KEY",
        "--base-url",
        simulator.base_urls["openai"],
        "--slug",
        "work",
        "--label",
        "Work",
        "--identity",
        "ada@work.example",
        MY_KEY=KEY,
    )

    assert (status, err) == (0, "")
    shown = json.loads(out.splitlines()[-1])
    assert shown == {
        "slug": "work",
        "engine": "openai",
        "label": "Work",
        "identity": "ada@work.example",
        "model": Account.objects.get().model,
        "state": "ok",
    }
    assert KEY not in out


def test_a_key_may_come_by_standard_input(manage, simulator):
    simulator.key(KEY)

    status, out, _ = manage(
        "connect", "openai", "--key-stdin", "--base-url", simulator.base_urls["openai"], stdin=f"{KEY}\n"
    )

    assert status == 0
    assert json.loads(out)["slug"] == "openai"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], ["ENGINE"]),
        (["nosuch", "--key-env", "K"], ["nosuch", "openrouter"]),
        (["openai"], ["--key-env", "--key-stdin"]),
        (["openai", "--key-env", "K", "--key-stdin"], ["not allowed"]),
        (["openai", "--key", "sk-on-the-command-line"], []),
        (["codex", "--key-env", "K"], ["sign-in"]),
    ],
)
def test_a_call_that_is_wrong_ends_with_2(manage, argv, words):
    refused(manage("connect", *argv, K=KEY), 2, *words)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["openai", "--key-env", "NOT_SET"], ["NOT_SET"]),
        (["openai", "--key-env", "K", "--base-url", "ftp://x.example/v1"], ["http"]),
        (["openai", "--key-env", "K", "--base-url", "http://127.0.0.1:9/v1"], ["can’t be reached"]),
        (["openai", "--key-env", "K", "--user", "nobody"], ["nobody called"]),
        (["openai", "--key-env", "K", "--slug", "auto"], ["slug"]),
        (["local", "--key-env", "K"], ["always there"]),
        (["codex", "--home", "/nowhere/at/all"], ["no folder"]),
    ],
)
def test_what_cannot_be_connected_ends_with_1_and_says_why(manage, argv, words):
    refused(manage("connect", *argv, K=KEY), 1, *words)


def test_only_the_owner_may_point_a_base_url_inside(manage, simulator):
    """SEC-04."""
    make_person("guest")
    argv = ["openai", "--key-env", "K", "--base-url", simulator.base_urls["openai"], "--user", "guest"]

    refused(manage("connect", *argv, K=KEY), 1, "Only the owner")
    assert simulator.all_requests() == []


def test_disconnect_removes_the_account_and_keeps_its_row(manage, simulator):
    owner = make_person("owner", is_owner=True)
    make_account(owner, "openai", sealed_key="x")

    assert manage("disconnect", "openai") == (0, "", "")
    kept = Account.objects.get()
    assert kept.removed_at is not None
    assert kept.sealed_key == ""
    refused(manage("disconnect", "openai"), 1, "no account 'openai'")
    refused(manage("disconnect"), 2, "SLUG")


def test_doctor_finds_a_total_that_does_not_add_up_and_mends_it_when_told(manage):
    """R28: doctor checks the running total against the entries."""
    owner = make_person("owner", is_owner=True)
    MonthTotal.objects.create(person=owner, month="2026-10", account="", spent_nano=5_000_000_000)

    status, out, err = manage("doctor")
    assert status == 1
    assert "WRONG: The total of 2026-10" in out
    assert "--recount" in out
    assert err == "conch: One thing is wrong.\n"

    assert manage("doctor", "--recount")[0] == 0
    assert manage("doctor")[0] == 0


def test_doctor_says_who_answers_and_who_does_not(manage, simulator):
    from conch.accounts import seal

    owner = make_person("owner", is_owner=True)
    simulator.key(KEY)
    base_url = simulator.base_urls["openai"]
    make_account(owner, "openai", sealed_key=seal.seal(KEY), base_url=base_url)
    make_account(owner, "openai", "gone", sealed_key=seal.seal("sk-nobody-knows"), base_url=base_url)
    make_account(owner, "openai", "off", sealed_key=seal.seal(KEY), base_url="http://127.0.0.1:9/v1")
    make_account(owner, "openai", "lost", sealed_key="sealed under another secret")

    status, out, _ = manage("doctor")

    assert status == 1
    assert "ok: openai (Openai) of owner answers." in out
    assert "note: gone (Openai) of owner is signed out, or its key isn't accepted." in out
    assert "note: off (Openai) of owner can't be reached at http://127.0.0.1:9/v1." in out
    assert "WRONG: lost (Openai) of owner: its key can't be opened." in out
    assert simulator.requests() == []


def test_doctor_says_which_tool_servers_answer_and_why_others_do_not(manage):
    owner = make_person("owner", is_owner=True)
    with library(TOKEN="s3cret-for-it") as url:
        server_of(owner, "Library", url=url, secrets={"Authorization": "Bearer s3cret-for-it"})
        server_of(owner, "Closed", url=url)
        lost = server_of(owner, "Lost", url=url)
        server_of(owner, "Notes", command=["no-such-program-here"])
        ToolServer.objects.filter(pk=lost.pk).update(sealed_headers="sealed under another secret")

        status, out, _ = manage("doctor")

    assert status == 1
    assert "ok: The tool server library (Library) of owner answers, with 2 tools." in out
    assert "note: The tool server closed (Closed) of owner can't be used: It doesn’t accept who asks (401)." in out
    assert "WRONG: The tool server lost (Lost) of owner can't be used: Its secrets were sealed under another" in out
    assert "note: The tool server notes (Notes) of owner can't be used: There is no program" in out


# The whole thing, in a process and a folder of its own.


def started(folder, *argv, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CONCH_", "DJANGO_"))}
    return subprocess.Popen(
        [sys.executable, "manage.py", *argv],
        cwd=ROOT,
        env=clean | {"CONCH_DATA": str(folder), "PYTHONUNBUFFERED": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_up_serves_from_an_empty_folder_and_says_at_once_when_its_port_is_taken(tmp_path):
    folder = tmp_path / "data"
    up = started(folder, "up", "--port", "0")
    try:
        lines = [up.stdout.readline(), up.stdout.readline()]
        address = re.fullmatch(r"Conch is at (http://127\.0\.0\.1:\d+)\n", lines[0])[1]
        assert re.fullmatch(rf"Sign in: {address}/signin/[\w-]+\n", lines[1])
        with urllib.request.urlopen(f"{address}/readyz", timeout=30) as ready:
            assert json.load(ready) == {"status": "ok"}
        assert folder.stat().st_mode & 0o777 == 0o700

        link, _ = started(folder, "signin").communicate(timeout=60)
        assert link.startswith(f"{address}/signin/")

        taken = started(folder, "up", "--port", address.rpartition(":")[2])
        out, err = taken.communicate(timeout=60)
        assert (taken.returncode, out) == (1, "")
        assert re.fullmatch(r"conch: Port \d+ on 127\.0\.0\.1 is taken.*\n", err)
    finally:
        up.send_signal(signal.SIGTERM)
        _, err = up.communicate(timeout=60)
    assert (up.returncode, "Traceback" in err) == (0, False)


def test_the_database_is_its_owners_alone_also_in_a_folder_that_others_may_look_into(tmp_path):
    """A folder made beforehand, by a service manager or for a container, keeps the mode that it has."""
    tmp_path.chmod(0o755)

    _, err = started(tmp_path, "token").communicate(timeout=60)

    assert err == ""
    kept = sorted(path for path in tmp_path.iterdir() if path.name.startswith(("conch.sqlite3", "secret_key")))
    assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == [0o600] * len(kept)
    assert len(kept) >= 2


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"DATABASE_URL": "postgres://ada@127.0.0.1:9/conch"}, ["DATABASE_URL"]),
        ({"CONCH_PORT": "eighty"}, ["CONCH_PORT"]),
        ({"CONCH_DATA": "/dev/null/conch"}, ["CONCH_DATA"]),
        ({"DATABASE_URL": "garbage"}, ["DATABASE_URL"]),
        ({"CONCH_PORT": "²"}, ["CONCH_PORT"]),
        ({"CONCH_LOCAL_URL": "http://[::1"}, ["CONCH_LOCAL_URL"]),
        ({"CONCH_LOCAL_URL": "http://127.0.0.1:x/v1"}, ["CONCH_LOCAL_URL"]),
        ({"CONCH_LOCAL_KEY": "two words"}, ["CONCH_LOCAL_KEY"]),
        ({"CONCH_ALLOWED_HOSTS": "https://conch.example/"}, ["CONCH_ALLOWED_HOSTS"]),
    ],
)
def test_a_start_that_cannot_work_is_one_line_that_names_the_setting(tmp_path, environment, words):
    up = started(tmp_path / "data", "up", "--port", "0", **environment)

    out, err = up.communicate(timeout=60)

    assert (up.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1, err
    assert all(word in err for word in words)


def test_a_port_that_is_none_is_a_usage_error(manage):
    refused(manage("up", "--port", "eighty"), 2, "eighty")
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused(manage("up", "--port", str(other.getsockname()[1])), 1, "is taken")


def test_a_command_that_there_is_not_is_a_usage_error(tmp_path):
    asked = started(tmp_path / "data", "frobnicate")

    out, err = asked.communicate(timeout=60)

    assert (asked.returncode, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "frobnicate" in err
