"""The demonstration, started as a person starts it: one command, a link, three messages, and the main job is seen."""

import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from conch import demo

ROOT = Path(__file__).resolve().parent.parent


class Demonstration:
    """`manage.py demo` in a process of its own, and a browser's cookies to visit it with."""

    def __init__(self, data):
        self.data = data
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONCH_", "DJANGO_"))}
        self.environment = kept | {"CONCH_DATA": str(data), "DATABASE_URL": "postgres://nobody@127.0.0.1:1/real"}
        self.taken = socket.create_server(("127.0.0.1", 0))  # as by a Conch that runs already
        self.port = self.taken.getsockname()[1]
        self.process = self.manage("demo", CONCH_PORT=str(self.port))
        self.said = [self.process.stdout.readline() for _ in range(4)]
        self.address = self.said[0].split()[-1] if self.said[0] else ""
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.browser = urllib.request.build_opener(cookies)
        self.token = ""

    def manage(self, *words, **more):
        command = [sys.executable, "manage.py", *words]
        environment = self.environment | more
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    def visit(self, path, data=None):
        body = None if data is None else urllib.parse.urlencode(data).encode()
        with self.browser.open(self.address + path, body) as answer:
            return answer.read().decode()

    def sign_in(self):
        link = self.said[3].split()[-1].removeprefix(self.address)
        page = self.visit(link)
        form = dict(re.findall(r'name="(csrfmiddlewaretoken)" value="([^"]+)"', page))
        return self.visit(link, form)

    def ask(self, path, data=None, accept="application/json"):
        if not self.token:
            folder = self.data / "demo"
            of_demo = {"CONCH_DATA": str(folder), "DATABASE_URL": f"sqlite:///{folder / 'conch.sqlite3'}"}
            self.token = self.manage("token", **of_demo).communicate()[0].strip()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "Accept": accept}
        body = None if data is None else json.dumps(data).encode()
        with urllib.request.urlopen(urllib.request.Request(self.address + path, body, headers)) as answer:
            said = answer.read().decode()
        return said if accept == "text/event-stream" else json.loads(said)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)
        self.taken.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    demonstration = Demonstration(tmp_path_factory.mktemp("data"))
    yield demonstration
    demonstration.end()


def test_one_command_prints_where_it_is_that_it_is_simulated_and_a_link(running):
    assert running.said[0].startswith("The demonstration of Conch is at http://127.0.0.1:")
    assert "simulated" in running.said[1]
    assert running.said[3].startswith(f"Sign in: {running.address}/signin/")


def test_three_messages_show_a_limit_and_who_carries_on_in_the_same_turn(running):
    """R17, R22: the first plan refuses, the second answers, one line says so; both are simulated and say so."""
    chat = running.ask("/api/conversations", {})
    path = f"/api/conversations/{chat['id']}"
    for text in ("one", "two", "three"):
        running.ask(f"{path}/messages", {"text": text}, accept="text/event-stream")

    seen = running.ask(path)
    assert [(turn["account"], turn["state"]) for turn in seen["turns"]] == [
        ("codex", "done"),
        ("codex", "done"),
        ("codex-2", "done"),
    ]
    assert [attempt["account"] for attempt in seen["turns"][2]["attempts"]] == ["codex", "codex-2"]
    assert all("simulated reply" in turn["answer"] for turn in seen["turns"])
    (line,) = seen["lines"]
    assert line["kind"] == "limit.routed"
    assert "ada@home.example" in line["text"]


def test_two_plans_and_two_keys_are_connected_and_keys_wait_for_a_yes(running):
    """R13: pay-per-use keys are off until the person says so, also here."""
    accounts = running.ask("/api/accounts")
    choices = running.ask("/api/fallback?engine=codex")["choices"]

    assert [account["slug"] for account in accounts] == ["codex", "codex-2", "anthropic", "openrouter", "local"]
    assert [account["identity"] for account in accounts[:2]] == ["ada@work.example", "ada@home.example"]
    assert {choice["id"]: (choice["skip"] or {}).get("code") for choice in choices if choice["kind"] == "key"} == {
        "anthropic": "paid_off",
        "openrouter": "paid_off",
    }


def test_every_page_is_marked_as_simulated(running):
    assert "Simulated" in running.visit("/signin")
    assert "Simulated" in running.sign_in()
    paths = [f"/settings/{page}" for page in ("providers", "usage", "computer", "you")]
    marked = {
        path: "Simulated" in running.visit(path) for path in (*paths, "/settings/connect", "/admin/", "/api/docs")
    }

    assert marked == dict.fromkeys(marked, True)


def test_beside_a_conch_that_runs_already_it_takes_a_free_port(running):
    assert running.address.startswith("http://127.0.0.1:")
    assert not running.address.endswith(f":{running.port}")


def test_a_second_demonstration_in_the_same_folder_is_refused(running):
    second = running.manage("demo", "--port", "0")

    assert second.communicate()[0] == ""
    assert second.returncode == 1


def test_it_keeps_everything_in_a_folder_of_its_own_and_no_other_database(running):
    assert (running.data / "demo" / "conch.sqlite3").is_file()
    assert not (running.data / "conch.sqlite3").exists()


def test_an_old_demonstration_leaves_nothing_behind(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "conch.sqlite3").write_text("of yesterday")
    (tmp_path / "conch.sqlite3").write_text("real")

    assert list(demo.fresh_folder(tmp_path).iterdir()) == []
    assert (tmp_path / "conch.sqlite3").read_text() == "real"


def test_without_its_checkout_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tests.simulator.simulator", None)

    with pytest.raises(demo.DemoMissing, match="come with a checkout of Conch"):
        demo.simulated_providers()
