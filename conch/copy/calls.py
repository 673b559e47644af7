"""Calls of tools in words: who wants to run what, and what may be said to it (copy.md 4.2, *a tool asks*)."""

from collections.abc import Sequence

from conch.copy.sentences import ATTENTION, Button, Said, bold, listed, said, sub

ONCE, ALWAYS, NO = "once", "always", "no"
CHANGED = "The tool says something else of itself than when this was asked before, so it asks again."
STATES = {
    "asked": "asks first",
    "allowed": "allowed",
    "running": "running",
    "done": "done",
    "failed": "failed",
    "declined": "not allowed",
}


def asks(label: str, tool: str, *, changed: bool = False) -> Said:
    """The line of a call that asks, with its three answers; `changed`: anew, as its tool describes itself otherwise."""
    buttons = tuple(
        Button(words, "tool", amount=allow) for words, allow in (("Allow once", ONCE), ("Always", ALWAYS), ("No", NO))
    )
    anew = sub(CHANGED) if changed else ""
    return said(bold(label), " wants to run ", bold(tool), ".", anew, tone=ATTENTION, icon="warn", buttons=buttons)


def asks_text(label: str, tools: Sequence[str]) -> str:
    """One sentence for all calls that ask."""
    return said(bold(label), " wants to run ", listed(list(dict.fromkeys(tools))), ".", tone=ATTENTION, icon="").text


def in_short(tool: str, state: str, seconds: float | None) -> str:
    """A call in a few words: "search in Notes: done in 0.4 s"."""
    took = "" if seconds is None or state == "declined" else f" in {_span(seconds)}"
    return f"{tool}: {STATES[state]}{took}"


def _span(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f}\u00a0s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}\u00a0min {rest}\u00a0s" if minutes else f"{rest}\u00a0s"
