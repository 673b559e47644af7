"""An Ollama lists models of its maker's cloud beside its own: those are not on this computer."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conch.engines import local
from conch.engines.base import Access, Message, Request, Text
from conch.engines.local_models import Setup

CLOUD = "gpt-oss:120b-cloud"
TAGS = {
    "models": [
        {"name": CLOUD, "model": CLOUD, "remote_model": "gpt-oss:120b", "remote_host": "https://cloud.example:443"},
        {"name": "llama3.2:3b", "model": "llama3.2:3b"},
    ]
}
CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1}


class Ollama(BaseHTTPRequestHandler):
    """As much of one as is asked here; remembers which models were asked to answer."""

    asked: list[str]

    def do_GET(self):
        if self.path == "/api/tags":
            self._say(json.dumps(TAGS))
        else:
            listed = [{"id": one["name"], "object": "model"} for one in TAGS["models"]]
            self._say(json.dumps({"object": "list", "data": listed}))

    def do_POST(self):
        model = json.loads(self.rfile.read(int(self.headers["content-length"])))["model"]
        self.asked.append(model)
        chunk = CHUNK | {
            "model": model,
            "choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}],
        }
        self._say(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", "text/event-stream")

    def _say(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_given):
        """Not to the terminal."""


@pytest.fixture
def ollama():
    asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Ollama,), {"asked": asked}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.asked = asked
    yield server
    server.shutdown()
    server.server_close()


async def test_a_model_of_its_cloud_is_not_offered_as_one_on_this_computer(ollama):
    [found] = await local.servers_here([ollama.server_port])

    assert found.models == ("llama3.2:3b",)


async def test_a_server_without_a_named_model_is_not_asked_for_one_of_its_cloud(ollama, tmp_path):
    """R27: what leaves the computer, and may be paid for, is nothing that the model on this computer does."""
    engine = local.Local(Setup(tmp_path, url=f"http://127.0.0.1:{ollama.server_port}/v1"))
    events = [event async for event in engine.reply(Access("local"), Request("", (Message("user", "hi"),)))]

    assert "".join(event.text for event in events if isinstance(event, Text)) == "Hi."
    assert ollama.asked == ["llama3.2:3b"]
    assert [model.id for model in await engine.models(Access("local"))] == ["llama3.2:3b"]
    await engine.close()
