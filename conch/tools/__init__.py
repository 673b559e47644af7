"""Tools by MCP: the servers that a person connected, what they offer a chat, and calls that are really run.

A turn uses only what stands here. A tool's outcome is data: it is shown as such, and can't approve anything.
"""

from conch.tools.calling import Outcome, call
from conch.tools.offers import Offered, allow_always, connected, known, offered

__all__ = ["Offered", "Outcome", "allow_always", "call", "connected", "known", "offered"]
