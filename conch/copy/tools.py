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

# What is wrong with what a server's sign-in says of itself, or sends.
_ODD = {
    "client": "it wants Conch to show who it is in a way that it can’t",
    "issuer": "it says that it is another one than the server names",
    "metadata": "what it says of itself can’t be used",
    "pkce": "it doesn’t protect what it sends back (PKCE)",
    "resource": "the server says that it is another one than at this address",
    "tokens": "what it gives out can’t be used",
}
# Where signing in helps: what a server's page says beside its name, and what is to be done.
_TAGS = {"sign_in": "Not signed in", "sign_in_over": "Signed out", "sign_in_scope": "Sign in again"}
_DO_SO = {
    "sign_in": " Do so under Settings, Tools.",
    "sign_in_over": " Sign in again under Settings, Tools.",
    "sign_in_scope": " Sign in again under Settings, Tools.",
}

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
    "no_sign_in": lambda _: "It doesn’t say where to sign in.",
    "sign_in": lambda _: "It wants you to sign in.",
    "sign_in_address": lambda trouble: (
        f"Its sign-in leads to {trouble['address']}, where Conch doesn’t go: it goes by https, and no further inside "
        "a network than the server’s own address."
    ),
    "sign_in_insecure": lambda _: (
        "To sign in, open Conch by https, or in a browser on the computer that it runs on, at 127.0.0.1."
    ),
    "sign_in_late": lambda trouble: f"Its sign-in has run out, and can’t be renewed now: {_late(trouble)}.",
    "sign_in_odd": lambda trouble: f"Its sign-in isn’t to be trusted: {_ODD[trouble['what']]}.",
    "sign_in_over": lambda _: "You are signed out of it.",
    "sign_in_refused": lambda trouble: _with_words("Its sign-in said no", trouble),
    "sign_in_scope": lambda _: "It asks for more than you allowed when you signed in.",
    "sign_in_stranger": lambda trouble: _with_words("Its sign-in doesn’t take Conch in by itself", trouble),
    "sign_in_unreachable": lambda trouble: f"Its sign-in at {trouble['host']} can’t be reached.",
    "signed_out": lambda trouble: (
        f"It doesn’t accept who asks ({trouble['status']}). Give it the header that it needs."
    ),
    "silent": lambda trouble: f"It didn’t answer within {trouble['seconds']} seconds.",
    "slow": lambda trouble: f"It wasn’t ready within {trouble['seconds']} seconds.",
    "status": lambda trouble: f"It answers with an error of its own ({trouble['status']}).",
    "too_much": lambda _: "It answered more than Conch reads.",
    "unreachable": lambda _: "It can’t be reached.",
}


def why(trouble: Mapping[str, Any], *, beside_it: bool = False) -> str:
    """Why a server can't be used, in a sentence or two; nothing where nothing is wrong.

    `beside_it`: what can be done about it stands beside it on the page.
    """
    if not trouble:
        return ""
    return _WHY[trouble["code"]](trouble) + ("" if beside_it else _DO_SO.get(trouble["code"], ""))


def tag(trouble: Mapping[str, Any]) -> str:
    """The same in a word or two; nothing where nothing is wrong."""
    return _TAGS.get(trouble["code"], "Unreachable") if trouble else ""


def asks_to_sign_in(trouble: Mapping[str, Any]) -> bool:
    """Whether signing in is what there is to do."""
    return bool(trouble) and trouble["code"] in _TAGS


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


def signed_in(name: str, tools: int) -> str:
    """After a sign-in."""
    return f"You are signed in to {name}, which has {_count(tools)}."


def signed_out(name: str) -> str:
    """After signing out."""
    return f"You are signed out of {name}. Its tools stay listed, and can’t run until you sign in again."


def added(name: str) -> str:
    """After connecting one that is to be signed in to."""
    return f"{name} is added. It wants you to sign in."


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


def _late(trouble: Mapping[str, Any]) -> str:
    if "seconds" in trouble:
        return f"no answer within {trouble['seconds']} seconds"
    if "status" in trouble:
        return f"{trouble['host']} answers with an error ({trouble['status']})"
    return f"{trouble['host']} can’t be reached"


def _with_words(what: str, trouble: Mapping[str, Any]) -> str:
    said = str(trouble.get("said") or "").rstrip(".")
    return f"{what}: {said}." if said else f"{what}."
