"""What a server of one's own says that its model takes (CONCH_LOCAL_URL): asked beside the serving, and kept."""

import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from conch.engines import local_models, local_told
from conch.engines.local import Local
from conch.engines.local_models import Setup
from conch.engines.local_told import FRESH, Server, Told, ask, ask_if_due
from conch.turns.clock import Clock
from conch.turns.worker import ask_local
from routing.known import forget_local, question_for_settings
from tests import weights
from tests.conftest import NOW, make_person

OLLAMA = {
    "/v1/models": {"object": "list", "data": [{"id": "llava:7b", "object": "model", "owned_by": "library"}]},
    "/api/show": {
        "capabilities": ["completion", "vision"],
        "parameters": 'stop "<|user|>"\nnum_ctx                        8192',
        "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
    },
    "/api/ps": {"models": []},
}
LOADED = {"models": [{"name": "llava:7b", "model": "llava:7b", "context_length": 4096}]}
LLAMA = {
    "/v1/models": {
        "data": [
            {
                "id": "qwen3-vl.gguf",
                "owned_by": "llamacpp",
                "architecture": {"input_modalities": ["text", "image"]},
                "meta": {"n_ctx": 16384, "n_ctx_train": 262144},
            }
        ]
    },
    "/props": {
        "default_generation_settings": {"n_ctx": 16384},
        "modalities": {"vision": True},
        "chat_template_caps": {"supports_tools": True},
    },
}
OLDER_LLAMA = {
    "/v1/models": {"data": [{"id": "old.gguf", "meta": {"n_ctx_train": 262144}}]},
    "/props": {"default_generation_settings": {"n_ctx": 4096}, "chat_template": "…"},
}
STUDIO = {
    "/v1/models": {"data": [{"id": "google/gemma-3-4b"}, {"id": "qwen/qwen3.5-9b"}]},
    "/api/v1/models": {
        "models": [
            {
                "key": "google/gemma-3-4b",
                "loaded_instances": [],
                "max_context_length": 131072,
                "capabilities": {"vision": True, "trained_for_tool_use": False},
            },
            {
                "key": "qwen/qwen3.5-9b",
                "loaded_instances": [{"id": "qwen/qwen3.5-9b", "config": {"context_length": 4096}}],
                "max_context_length": 262144,
                "capabilities": {"vision": False, "trained_for_tool_use": True},
            },
        ]
    },
}
VLLM = {"/v1/models": {"data": [{"id": "meta/llama", "max_model_len": 32768}]}}


@pytest.fixture
def server():
    """A server that answers what the test puts in, by path; its address, and what it was asked."""
    told, asked = {}, []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append((self.command, self.path, self.headers.get("Authorization"), sent))
            said = told.get(self.path)
            body = said if isinstance(said, bytes) else json.dumps(said or {"error": "not found"}).encode()
            self.send_response(301 if said == b"elsewhere" else 200 if said else 404)
            if said == b"elsewhere":
                self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/stolen")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815  as the library calls them

        def log_message(self, *args):
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield told, f"http://127.0.0.1:{running.server_port}/v1", asked
    running.shutdown()
    running.server_close()


def facts(folder, url, model=""):
    return local_models.facts(Setup(folder, url=url, model=model))


@pytest.mark.parametrize(
    ("says", "model", "answers", "tools", "images", "context"),
    [
        (OLLAMA, "", "llava:7b", False, True, 8192),
        (OLLAMA | {"/api/ps": LOADED}, "llava:7b", "llava:7b", False, True, 4096),
        (OLLAMA, "llava", "llava", False, True, 8192),
        (OLLAMA | {"/api/show": OLLAMA["/api/show"] | {"parameters": ""}}, "", "llava:7b", False, True, 131072),
        (LLAMA, "", "qwen3-vl.gguf", True, True, 16384),
        (OLDER_LLAMA, "", "old.gguf", None, None, 4096),
        (STUDIO, "", "google/gemma-3-4b", None, True, 131072),
        (STUDIO, "qwen/qwen3.5-9b", "qwen/qwen3.5-9b", True, False, 4096),
        (VLLM, "", "meta/llama", None, None, 32768),
        ({"/v1/models": {"data": [{"id": "plain"}]}}, "", "plain", None, None, None),
    ],
)
def test_each_kind_of_server_is_asked_in_its_own_way(tmp_path, server, says, model, answers, tools, images, context):
    """R9: what isn't said stays unknown, and is taken as able."""
    told, url, _ = server
    told.update(says)

    assert ask(tmp_path, Server(url, model), NOW)

    said = local_told.kept(tmp_path, url, model)
    assert (said.answers, said.tools, said.images, said.context) == (answers, tools, images, context)
    known = facts(tmp_path, url, model)
    assert (known.label, known.tools, known.images) == (answers, tools, images)
    assert known.context == (None if context is None else context - min(2048, context // 4))


def test_no_request_asks_for_a_reply_or_loads_a_model(tmp_path, server):
    told, url, asked = server
    told.update(STUDIO)

    ask(tmp_path, Server(url), NOW)

    assert {(method, path) for method, path, _, _ in asked} == {
        ("GET", "/v1/models"),
        ("GET", "/api/tags"),
        ("GET", "/props"),
        ("POST", "/api/show"),
        ("GET", "/api/v1/models"),
    }


def test_a_model_that_its_makers_cloud_runs_is_not_the_one_here(tmp_path, server):
    told, url, _ = server
    listing = {"data": [{"id": "gpt-oss:120b-cloud"}, *OLLAMA["/v1/models"]["data"]]}
    tags = {"models": [{"name": "gpt-oss:120b-cloud", "remote_host": "https://ollama.example"}, {"name": "llava:7b"}]}
    told.update(OLLAMA | {"/v1/models": listing, "/api/tags": tags})

    ask(tmp_path, Server(url), NOW)

    assert facts(tmp_path, url).label == "llava:7b"


def test_its_key_goes_to_it_and_nowhere_else(tmp_path, server):
    told, url, asked = server
    told.update({"/v1/models": b"elsewhere"})

    assert ask(tmp_path, Server(url, key="for-it-alone"), NOW) is None

    assert [(path, key) for _, path, key, _ in asked] == [("/v1/models", "Bearer for-it-alone")]
    assert not list(tmp_path.iterdir())


def test_what_it_said_is_asked_for_again_after_a_while_and_only_then(tmp_path, server):
    told, url, asked = server
    told.update(LLAMA)
    assert ask_if_due(tmp_path, Server(url), NOW)
    once = len(asked)

    assert not ask_if_due(tmp_path, Server(url), NOW + FRESH - timedelta(seconds=1))
    assert len(asked) == once
    assert not ask_if_due(tmp_path, Server(url), NOW + FRESH)
    assert len(asked) == 2 * once
    told["/v1/models"] = {"data": [{"id": "another.gguf"}]}
    assert ask_if_due(tmp_path, Server(url), NOW + 2 * FRESH)
    assert facts(tmp_path, url).label == "another.gguf"


def test_one_that_does_not_answer_is_left_alone_and_keeps_what_it_said(tmp_path, server, monkeypatch):
    told, url, asked = server
    seconds = [1000.0]
    monkeypatch.setattr(local_told.time, "monotonic", lambda: seconds[0])
    told.update(LLAMA)
    ask_if_due(tmp_path, Server(url), NOW)
    told.clear()
    asked.clear()

    for _ in range(100):
        seconds[0] += 30
        assert not ask_if_due(tmp_path, Server(url), NOW + FRESH)

    assert 4 <= len(asked) <= 9
    assert facts(tmp_path, url).context == 16384 - 2048


@pytest.mark.parametrize(
    "said",
    [
        b"<html>",
        b"[" * 100_000,
        {"data": [{"id": 7}, {"id": ""}, "x"]},
        {"data": None},
        [1, 2],
    ],
)
def test_a_server_that_speaks_otherwise_says_nothing(tmp_path, server, said):
    told, url, _ = server
    told["/v1/models"] = said

    assert ask(tmp_path, Server(url), NOW) is None
    assert facts(tmp_path, url).context is None


@pytest.mark.parametrize("odd", [-1, 0, True, "4096", 4096.5, 10**12, None, [], {}])
def test_a_length_that_is_none_is_none(tmp_path, server, odd):
    told, url, _ = server
    told.update({"/v1/models": {"data": [{"id": "x", "meta": {"n_ctx": odd}, "max_model_len": odd}]}})
    told["/props"] = {"default_generation_settings": {"n_ctx": odd, "params": {}}, "modalities": {"vision": "yes"}}

    ask(tmp_path, Server(url), NOW)

    said = local_told.kept(tmp_path, url, "")
    assert (said.context, said.images) == (None, None)


@pytest.mark.parametrize(
    "kept", [b"", b"{}", b"[]", b"[" * 100_000, b'{"url": 1, "model": "", "answers": "", "at": "x"}']
)
def test_what_is_kept_and_cannot_be_read_is_nothing(tmp_path, kept):
    (tmp_path / local_told.KEPT_IN).write_bytes(kept)

    assert local_told.kept(tmp_path, "http://127.0.0.1:1/v1", "") is None


def test_what_one_server_said_is_nothing_about_another(tmp_path, server):
    told, url, _ = server
    told.update(LLAMA)
    ask(tmp_path, Server(url, "qwen3-vl.gguf"), NOW)

    assert facts(tmp_path, url, "another").context is None
    assert facts(tmp_path, "http://127.0.0.1:9/v1", "qwen3-vl.gguf").context is None
    assert facts(tmp_path, url, "qwen3-vl.gguf").context is not None


async def test_the_real_llama_server_says_what_it_loaded(tmp_path):
    """llama.cpp itself, as a server of one's own: loaded with 4,096 tokens, it sees no images."""
    weights.put_into(tmp_path)
    engine = Local(Setup(tmp_path))
    try:
        await engine.warm()
        address = engine._process.address()
        ask(tmp_path, Server(address.url, "", address.key), NOW)
    finally:
        await engine.close()

    said = local_told.kept(tmp_path, address.url, "")
    assert (said.answers, said.images, said.context) == ("local", False, 4096)


@pytest.mark.django_db(transaction=True)
async def test_the_worker_asks_it_and_the_route_goes_by_it(tmp_path, server, monkeypatch):
    """R9, R15: a picture isn't carried to a model that says it sees none, nor more than it reads."""
    from conch.db import look

    told, url, _ = server
    told.update(OLLAMA | {"/api/show": {"capabilities": ["completion"]}, "/api/ps": LOADED})
    monkeypatch.setenv("CONCH_LOCAL_URL", url)
    monkeypatch.setenv("CONCH_DATA", str(tmp_path))
    forget_local()
    person = await look(make_person, "ada")

    await ask_local(Clock(now=lambda: NOW))
    forget_local()
    question = await look(question_for_settings, person.pk, "local", None, NOW)
    forget_local()

    model = question.local.model
    assert (model.label, model.tools, model.images, model.context) == ("llava:7b", False, False, 3072)


def test_what_it_said_is_readable_by_its_owner_alone_and_holds_no_key(tmp_path, server):
    told, url, _ = server
    told.update(LLAMA)
    ask(tmp_path, Server(url, key="for-it-alone"), NOW)

    file = tmp_path / local_told.KEPT_IN
    assert file.stat().st_mode & 0o077 == 0
    assert "for-it-alone" not in file.read_text()
    assert Told(**json.loads(file.read_text())).url == url
