"""A server chosen under This computer: kept for the machine, for every process, behind what the environment says."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from conch.engines import local_chosen, local_models
from conch.engines.local_chosen import Chosen
from tests import weights

OLLAMA = Chosen("http://127.0.0.1:11434/v1", "llama3.2:3b")


@pytest.fixture(autouse=True)
def data(monkeypatch, tmp_path):
    monkeypatch.setenv("CONCH_DATA", str(tmp_path))
    for name in ("CONCH_LOCAL_URL", "CONCH_LOCAL_KEY", "CONCH_LOCAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_chosen_server_comes_before_the_built_in_model_and_is_a_model_of_ones_own(data):
    """Preferences, offline_fallback: one chosen under This computer counts as the person's own."""
    weights.put_into(data)

    local_chosen.choose(data, OLLAMA)
    known = local_models.facts(local_models.setup())

    assert (known.present, known.own, known.tiny) == (True, True, False)
    assert (known.label, known.model_id, known.note) == (OLLAMA.model, OLLAMA.model, OLLAMA.url)


def test_going_back_leaves_what_there_was(data):
    weights.put_into(data)
    local_chosen.choose(data, OLLAMA)

    local_chosen.choose_none(data)
    local_chosen.choose_none(data)

    assert local_models.facts(local_models.setup()).tiny


def test_the_environment_still_comes_first_and_its_key_goes_to_no_other_server(data, monkeypatch):
    """doors.md: CONCH_LOCAL_URL, CONCH_LOCAL_KEY."""
    local_chosen.choose(data, OLLAMA)
    monkeypatch.setenv("CONCH_LOCAL_KEY", "sk-of-another-server")

    assert local_models.setup() == local_models.Setup(data, url=OLLAMA.url, model=OLLAMA.model, chosen=True)

    monkeypatch.setenv("CONCH_LOCAL_URL", "http://127.0.0.1:9/v1")
    given = local_models.setup()
    assert (given.url, given.key, given.chosen) == ("http://127.0.0.1:9/v1", "sk-of-another-server", False)


def test_a_chosen_server_comes_before_a_model_file_named_in_the_environment(data, monkeypatch):
    """local.md: a server before a file; a press that changed nothing would be a lie."""
    monkeypatch.setenv("CONCH_LOCAL_MODEL", str(data / "own.gguf"))
    local_chosen.choose(data, OLLAMA)

    assert local_models.setup().model == OLLAMA.model
    assert local_models.environment().model == str(data / "own.gguf")


@pytest.mark.parametrize(
    "kept",
    [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"url": 1, "model": "m"}', b'{"url": "http://127.0.0.1:1/v1"}'],
)
def test_a_choice_that_cant_be_read_is_none(data, kept):
    """Bad input: the file may have been written by anybody."""
    (data / local_chosen.KEPT_IN).write_bytes(kept)

    assert local_chosen.chosen(data) is None
    assert not local_models.setup().chosen


def test_a_choice_is_written_whole_for_its_owner_alone(data):
    local_chosen.choose(data, Chosen("http://127.0.0.1:1/v1", "old"))
    local_chosen.choose(data, OLLAMA)

    assert [path.name for path in data.glob("local_model*")] == [local_chosen.KEPT_IN]
    assert json.loads((data / local_chosen.KEPT_IN).read_text()) == {
        "url": OLLAMA.url,
        "model": OLLAMA.model,
        "tools": None,
        "images": None,
    }
    assert (data / local_chosen.KEPT_IN).stat().st_mode & 0o077 == 0


def test_another_process_of_conch_sees_it(data):
    local_chosen.choose(data, OLLAMA)

    code = "from conch.engines import local_models as m; print(m.facts(m.setup()).label)"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert said.stdout.strip() == OLLAMA.model


@pytest.fixture
def shows():
    """A server that answers as Ollama's does when it is asked about a model, with what the test puts in."""
    told = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path == "/api/show" and told.get(asked["model"])
            body = known if isinstance(known, bytes) else json.dumps(known or {"error": "not found"}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield told, f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("said", "tools", "images"),
    [
        ({"capabilities": ["completion", "tools"], "model_info": {}}, True, False),
        ({"capabilities": ["completion", "vision"]}, False, True),
        ({"capabilities": None}, None, None),
        ({"details": {}}, None, None),
        (b"<html>", None, None),
        (b"[" * 100_000, None, None),
        (None, None, None),
    ],
)
def test_what_a_servers_model_takes_is_known_where_it_says_so(data, shows, said, tools, images):
    """R9; bad input: a server that speaks otherwise says nothing."""
    told, url = shows
    told["llava:7b"] = said

    local_chosen.choose(data, local_chosen.asked(url, "llava:7b"))
    known = local_models.facts(local_models.setup())

    assert (known.model_id, known.tools, known.images) == ("llava:7b", tools, images)


def test_a_server_that_is_gone_says_nothing(shows):
    assert local_chosen.asked("http://127.0.0.1:9/v1", "x") == Chosen("http://127.0.0.1:9/v1", "x")
