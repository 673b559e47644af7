"""Both plans by their real programs, for tests that hold for either: `plan` is run once with each."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from conch.engines import cli_process_ready
from conch.engines.base import Access, Message, Request
from conch.engines.claude_code import ClaudeCode
from conch.engines.codex_cli import CodexCli
from tests.engines.provider import heard, text_of


@dataclass
class Plan:
    """An engine with a signed-in account at the simulator. `limit`: the simulator's name for its full window."""

    engine: Any
    key: Any
    access: Access
    model: str
    limit: str
    simulator: Any
    said: list[Message] = field(default_factory=list)

    def ask(self, text="Hello", *, chat="", **more):
        """A request that carries the chat so far."""
        return Request(self.model, (*self.said, Message("user", text)), conversation=chat, **more)

    def reply(self, text="Hello", **more):
        return self.engine.reply(self.access, self.ask(text, **more))

    async def turn(self, text="Hello", *, chat="1", **more):
        """A message and its answer, which the chat then has."""
        events = await heard(self.reply(text, chat=chat, **more))
        self.said += [Message("user", text), Message("assistant", text_of(events))]
        return events

    @property
    def asked(self):
        """The requests that the provider has had."""
        return self.simulator.requests(self.key.secret)

    def chat_of(self, seen):
        """What arrived of the chat: without what a program says itself."""
        return [
            (role, text.rpartition("</system-reminder>")[2].strip())
            for role, text in seen.messages
            if role in {"user", "assistant"}
        ]


@pytest.fixture
def no_spares(monkeypatch):
    """No program is started ahead: each takes as long as the test that would have no use for it."""
    monkeypatch.setattr(cli_process_ready, "SPARES", 0)


@pytest.fixture(params=["claude-code", "codex-cli"])
async def plan(request, real_programs, no_spares, simulator, tmp_path, monkeypatch):
    """A plan of each kind."""
    monkeypatch.setenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE", f"{simulator.url}/oauth/token")
    if request.param == "claude-code":
        key, engine, model, limit = (
            simulator.claude("bob@home.example", tmp_path / "bob"),
            ClaudeCode(),
            "sonnet",
            "session",
        )
    else:
        key, engine, model = simulator.codex("ada@work.example", tmp_path / "ada"), CodexCli(), "gpt-5.5"
        limit = "usage_limit"
    access = Access(request.param, simulator.base_urls[request.param], home=key.home)
    yield Plan(engine, key, access, model, limit, simulator)
    await engine.close()
