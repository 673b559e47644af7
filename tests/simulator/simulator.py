"""The simulator as one thing: a loopback server in a thread of its own, and the hands to script and read it.

with Simulator() as simulator:
    simulator.key("sk-a").refuses("insufficient_quota")
    ...
    assert len(simulator.requests("sk-a")) == 1
"""

import asyncio
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

from tests.simulator import homes, tls
from tests.simulator.app import App
from tests.simulator.clock import Clock
from tests.simulator.control import Control
from tests.simulator.keys import Billed, Key
from tests.simulator.records import Seen
from tests.simulator.server import Connection

HOST = "127.0.0.1"


class Simulator:
    """All providers on one port of the loopback address (0: any free one), with TLS on a second where asked for.

    `stands_for`: hosts that a test's network leads here, for which the certificate is good as well.
    """

    def __init__(
        self, port: int = 0, *, with_tls: bool = False, tls_port: int = 0, stands_for: tuple[str, ...] = ()
    ) -> None:
        self.clock = Clock()
        self.app = App(self.clock)
        self.app.control = Control(self)
        self.port = port
        self.tls_port = tls_port
        self.ca_path: Path | None = None
        self._stands_for = stands_for
        # Of its certificates; one that speaks plain needs none, and leaves none behind when it is killed.
        self._folder = tempfile.TemporaryDirectory(prefix="conch-simulator-") if with_tls else None
        self._connections: set[Connection] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    # Life

    async def serve(self, *, announce: Any = None) -> None:
        """Serve until `stop`."""
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        servers = [await self._loop.create_server(self._connection, HOST, self.port, backlog=1024)]
        self.port = servers[0].sockets[0].getsockname()[1]
        if self._folder is not None:
            self.ca_path, context = tls.authority(Path(self._folder.name), *self._stands_for)
            listening = self._loop.create_server(self._connection, HOST, self.tls_port, ssl=context, backlog=1024)
            servers.append(await listening)
            self.tls_port = servers[1].sockets[0].getsockname()[1]
        self._ready.set()
        if announce is not None:
            announce(self)
        await self._ended.wait()
        for server in servers:
            server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    def _connection(self) -> Connection:
        return Connection(self.app, self._connections)

    def start(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="simulator", daemon=True)
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the simulator didn't start")
        return self

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=event_loop) as runner:
            runner.run(self.serve())

    def stop(self) -> None:
        if self._loop is not None and self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not None:
            self._thread.join(10)
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Addresses, as `--base-url` takes them (doors.md)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"https://{HOST}:{self.tls_port}"

    @property
    def base_urls(self) -> dict[str, str]:
        """Engine id → its base URL here."""
        return {
            "anthropic": self.url,
            "openai": f"{self.url}/v1",
            "openrouter": f"{self.url}/api/v1",
            "gemini": f"{self.url}/v1beta/openai",
            "codex": f"{self.url}/backend-api",
            "codex-cli": f"{self.url}/backend-api",
            "claude-code": self.url,
        }

    # Keys and people

    def key(self, secret: str, **facts: Any) -> Key:
        """The key of that name, made known at the first call; facts are fields of `Key`."""
        key = self.app.keys.get(secret)
        if key is None:
            key = self.app.keys[secret] = Key(secret, self.clock)
        for name, value in facts.items():
            setattr(key, name, value)
        return key

    def forget(self, secret: str) -> None:
        """The key is unknown from now on: 401."""
        self.app.keys.pop(secret, None)

    def codex(self, email: str, folder: Path, *, plan: str = "plus", account_id: str = "", token: str = "") -> Key:
        """A ChatGPT sign-in of that person: a home as the Codex program keeps it, and its token known here."""
        name = email.replace("@", "-at-").replace(".", "-")
        key = self.key(token or f"tok-{name}", email=email, plan=plan)
        key.account_id = account_id or f"acct-{name}"
        key.user_id = f"user-{name}"
        key.home = str(homes.write_codex_home(folder, key))
        return key

    def claude(self, email: str, folder: Path, *, plan: str = "pro", token: str = "") -> Key:
        """A claude.ai sign-in of that person, as the Claude Code program keeps it in its configuration folder."""
        name = email.replace("@", "-at-").replace(".", "-")
        key = self.key(token or f"sk-ant-oat01-{name}", email=email, plan=plan, label=f"{email}'s organization")
        key.user_id, key.organization = f"acc-{name}", f"org-{name}"
        key.home = str(homes.write_claude_home(folder, key))
        return key

    def renews(self, refresh_token: str, token: str) -> None:
        """`POST /oauth/token` turns this refresh token into that access token, once."""
        self.app.renewed[refresh_token] = token

    # What arrived

    def requests(self, key: str | None = None, path: str = "") -> list[Seen]:
        """The requests for a reply, of this key, in order of arrival."""
        return self.app.records.matching(key, path, replies_only=True)

    def all_requests(self, key: str | None = None, path: str = "") -> list[Seen]:
        """Every request, also for models, windows and the key's facts."""
        return self.app.records.matching(key, path)

    def wait_for(self, count: int, key: str | None = None, path: str = "", *, timeout_s: float = 60) -> list[Seen]:
        """Wait until so many requests for a reply have arrived. Raises TimeoutError."""
        return self.app.records.wait(count, key, path, replies_only=True, timeout_s=timeout_s)

    def billed(self, key: str) -> Billed:
        return self.key(key).billed

    def reset(self) -> None:
        """Forget keys, requests and the clock's offset."""
        self.app.keys.clear()
        self.app.records.clear()
        self.app.renewed.clear()
        self.clock.reset()


def event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed: the simulator must not be what a measurement measures."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
