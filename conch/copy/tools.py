"""What is said of MCP servers and their tools: why one can't be reached, what came of a call. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from conch.copy.clock import Viewer, span

ASKS_BACK = "The tool asked for more than the call’s arguments. Conch doesn’t answer such questions, so it didn’t run."

CHANGED_MEANWHILE = (
    "A tool says something else of itself than when this page was shown, so it still asks. "
    "Look at it, then choose again."
)

_WHY: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "busy": lambda _: "Too many servers are busy right now. Try again in a while.",
    "changed": lambda _: "The tool isn’t any more what it was when this was asked.",
    "cut": lambda _: "It stopped before it had answered.",
    "ended": lambda trouble: _with_words("Its program ended by itself", trouble),
    "expired": lambda _: "It forgets its sessions at once.",
    "gone": lambda _: "This server isn’t connected any more.",
    "never": lambda _: "This tool is set to never run.",
    "no_program": lambda trouble: f"There is no program “{trouble['program']}” on this computer.",
    "no_start": lambda trouble: _with_words("Its program doesn’t start", trouble),
    "owner_only": lambda _: "Only the owner of this machine may start programs.",
    "redirected": lambda _: "It redirects elsewhere. Conch follows no redirect: connect the address that it leads to.",
    "refused": lambda trouble: _with_words("It answered with an error", trouble),
    "rubbish": lambda _: "It doesn’t answer as an MCP server does.",
    "sealed": lambda _: (
        "Its secrets were sealed under another CONCH_SECRET_KEY. "
        "Put that one into CONCH_OLD_SECRET_KEYS, or connect the server again."
    ),
    "signed_out": lambda trouble: (
        f"It doesn’t accept who asks ({trouble['status']}). Give it the header that it needs."
    ),
    "silent": lambda trouble: f"It didn’t answer within {trouble['seconds']} seconds.",
    "slow": lambda trouble: f"It wasn’t ready within {trouble['seconds']} seconds.",
    "status": lambda trouble: f"It answers with an error of its own ({trouble['status']}).",
    "too_much": lambda _: "It answered more than Conch reads.",
    "unreachable": lambda _: "It can’t be reached.",
}


def why(trouble: Mapping[str, Any]) -> str:
    """Why a server can't be used, in a sentence or two; nothing where nothing is wrong."""
    return _WHY[trouble["code"]](trouble) if trouble else ""


def call_failed(trouble: Mapping[str, Any], *, sent: bool) -> str:
    """What a call that came to nothing says. One that was sent may have done something by then."""
    if trouble["code"] == "refused":
        return why(trouble)
    after = "It isn’t known whether this call did anything." if sent else "This call didn’t run."
    return f"{why(trouble)} {after}"


def offers(tools: int, *, always: int, never: int) -> str:
    """How many tools a server offers, and what was said of them."""
    if not tools:
        return "No tools"
    count = "One tool" if tools == 1 else f"{tools:,} tools"
    said = [f"{number:,} {word}" for number, word in ((always, "always"), (never, "never")) if number]
    if not said:
        return f"{count}, which {'asks' if tools == 1 else 'ask'} first"
    rest = ", the rest ask" if always + never < tools else ""
    return f"{count}: {', '.join(said)}{rest}"


def listed(at: datetime | None, viewer: Viewer) -> str:
    """When a server was last asked for its tools."""
    return f"Listed {span(viewer.now - at)} ago" if at else ""


def connected(name: str, tools: int) -> str:
    """After connecting."""
    asks = " Each asks before it runs." if tools > 1 else " It asks before it runs." if tools else ""
    return f"{name} is connected, with {_count(tools)}.{asks}"


def checked(name: str, tools: int) -> str:
    """After *Check now*."""
    return f"{name} answers, with {_count(tools)}."


def _count(tools: int) -> str:
    return "no tools" if not tools else "one tool" if tools == 1 else f"{tools:,} tools"


def turned_on(names: Sequence[str]) -> str:
    """What the button of a chat's tools says."""
    return f"Tools: {', '.join(names)}" if names else "Tools: none"


def removing(*, chats: int, agents: int) -> list[str]:
    """What removing a server means."""
    said = ["Its tools are gone from every chat, and what you allowed them is forgotten."]
    if chats:
        said.append(f"{'One chat has' if chats == 1 else f'{chats:,} chats have'} it turned on: it is off there, too.")
    if agents:
        said.append(f"{'One agent has' if agents == 1 else f'{agents:,} agents have'} it: it is off there, too.")
    return [*said, "What its tools said in chats stays there."]


def left_out(kind: str, media_type: str, size: int) -> str:
    """A part of an outcome that isn't text: that it was there."""
    of = f" ({media_type[:60]}, {max(1, round(size / 1000)):,} kB)" if media_type else ""
    return f"[The tool returned {'an' if kind[0] in 'aeiou' else 'a'} {kind}{of}, which isn’t handed on.]"


def linked(title: str, address: str) -> str:
    """A file that an outcome only names."""
    return f"[{title}: {address}]"


def cut(more: int) -> str:
    """At the end of an outcome that was too long."""
    return f"\n\n[Cut here: {more:,} characters more.]"


def _with_words(what: str, trouble: Mapping[str, Any]) -> str:
    said = str(trouble.get("said") or "").rstrip(".")
    return f"{what}: {said}." if said else f"{what}."
