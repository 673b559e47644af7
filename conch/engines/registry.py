"""Every engine, by id: a dotted path, imported on first use. The entry points "conch.engines" add more."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from conch.engines.base import Engine

ENGINES = {
    "claude-code": "conch.engines.claude_code:ClaudeCode",
    "codex": "conch.engines.codex:Codex",
    "codex-cli": "conch.engines.codex_cli:CodexCli",
    "anthropic": "conch.engines.anthropic:Anthropic",
    "openai": "conch.engines.openai:OpenAI",
    "openrouter": "conch.engines.openrouter:OpenRouter",
    "gemini": "conch.engines.gemini:Gemini",
    "local": "conch.engines.local:Local",
}


class UnknownEngine(LookupError):
    """No engine has that id; `known` are the ids there are."""

    def __init__(self, engine: str) -> None:
        self.known = tuple(paths())
        super().__init__(f"there is no engine {engine!r}; there are {', '.join(self.known)}")


@cache
def paths() -> dict[str, str]:
    """Engine id → dotted path, our own and those of installed entry points."""
    return ENGINES | {point.name: point.value for point in entry_points(group="conch.engines")}


_made: list[Engine] = []


@cache
def engine(engine_id: str) -> Engine:
    """The one engine of that id, made on first use. Raises UnknownEngine."""
    path = paths().get(engine_id)
    if path is None:
        raise UnknownEngine(engine_id)
    module, _, name = path.partition(":")
    made: Engine = getattr(import_module(module), name)()
    _made.append(made)
    return made


def engines() -> Iterator[Engine]:
    """All engines, in the registry's order (plans first)."""
    return (engine(engine_id) for engine_id in paths())


def engines_in_use() -> list[Engine]:
    """The engines that this process has made so far."""
    return list(_made)
