"""A server of our own over stdio: notes in the file that NOTES_FILE names, so that a test sees what really ran.

`python -m tests.tools.servers.notes`; with KEEP_OUT in its environment it shows how little else is in there.
"""

import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("notes", title="Notes")


def _file():
    return Path(os.environ["NOTES_FILE"])


def _notes():
    return _file().read_text().splitlines() if _file().exists() else []


@server.tool(title="write a note")
def write(text: str) -> str:
    """Write a note down."""
    with _file().open("a") as file:
        file.write(text.replace("\n", " ") + "\n")
    return f"Note {len(_notes())} is written."


@server.tool(title="search")
def search(words: str) -> str:
    """Notes that hold these words."""
    found = [note for note in _notes() if words.lower() in note.lower()]
    return "\n".join(found) or "No note has them."


@server.tool(title="surroundings")
def surroundings() -> dict[str, str]:
    """What this program can see of where it runs."""
    seen = {name: os.environ[name] for name in sorted(os.environ)}
    return seen | {"cwd": str(Path.cwd()), "argv": " ".join(sys.argv), "pid": str(os.getpid())}


@server.tool(title="fail")
def fail(why: str) -> str:
    """Fail, saying why."""
    raise ToolError(why)


if __name__ == "__main__":
    server.run("stdio")
