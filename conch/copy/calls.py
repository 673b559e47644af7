"""Calls of tools in words: who wants to run what, and what may be said to it (copy.md 4.2, *a tool asks*)."""

from collections.abc import Sequence

from conch.copy.sentences import ATTENTION, Button, Said, bold, listed, said

ONCE, ALWAYS, NO = "once", "always", "no"
STATES = {
    "asked": "asks",
    "allowed": "allowed",
    "running": "running",
    "done": "done",
    "failed": "failed",
    "declined": "declined",
}


def asks(label: str, tool: str) -> Said:
    """The line of a call that asks, with its three answers."""
    buttons = tuple(
        Button(words, "tool", amount=allow) for words, allow in (("Allow once", ONCE), ("Always", ALWAYS), ("No", NO))
    )
    return said(bold(label), " wants to run ", bold(tool), ".", tone=ATTENTION, icon="warn", buttons=buttons)


def asks_text(label: str, tools: Sequence[str]) -> str:
    """One sentence for all calls that ask."""
    return said(bold(label), " wants to run ", listed(list(dict.fromkeys(tools))), ".", tone=ATTENTION, icon="").text
