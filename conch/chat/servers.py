"""The tool servers that a chat has turned on, and those that it could."""

from collections.abc import Sequence
from dataclasses import dataclass

from conch import tools
from conch.copy import tools as copy


@dataclass(frozen=True, slots=True)
class Server:
    """One server in the menu: whether the chat has it, and what is in the way, in a sentence."""

    slug: str
    name: str
    on: bool
    trouble: str


@dataclass(frozen=True, slots=True)
class Servers:
    """The menu: every server of the person's; `says` is what its button says."""

    rows: tuple[Server, ...] = ()

    @property
    def on(self) -> int:
        """How many the chat has."""
        return sum(row.on for row in self.rows)

    @property
    def says(self) -> str:
        """Which those are."""
        return copy.turned_on([row.name for row in self.rows if row.on])


def servers_for(person_id: int, on: Sequence[str]) -> Servers:
    """The menu of a chat that has these turned on, in one query."""
    return Servers(
        tuple(
            Server(server.slug, server.name, server.slug in on, copy.why(server.trouble))
            for server in tools.connected(person_id)
        )
    )
