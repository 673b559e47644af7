"""Claude Code with a sign-in that may read its windows (`user:profile`), told as one line of JSON.

Run by test_programs_network in namespaces of its own: there the name of Anthropic's own host leads to this process,
which answers for it over TLS, on the usual port, with a certificate of its own authority. So nothing of the program is
changed, nor where it asks.
"""

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.engines.network_trial import lead_here, raise_loopback

HOST = "api.anthropic.com"


def windows(room):
    """What was read, as plain values."""
    if room is None:
        return None
    return [[each.name, each.used_percent, each.resets_at and each.resets_at.timestamp()] for each in room.windows]


def ages(home, seconds):
    """What the program has fetched is so much older."""
    file = Path(home) / ".claude.json"
    kept = json.loads(file.read_text())
    kept["cachedUsageUtilization"]["fetchedAtMs"] -= seconds * 1000
    file.write_text(json.dumps(kept))


async def reading(claude, access):
    """What a reading comes to."""
    from conch.engines.base import EngineError

    try:
        return windows(await claude.read_room(access))
    except EngineError as error:
        return type(error).__name__


async def trial(key, claude, access):
    """Windows ahead of a turn, said again, fetched anew, and not to be had; a limit that only they can tell."""
    from conch.engines.base import EngineError, LimitReached, Message, Request

    told = {"identity": (await claude.identify(access)).identity, "first": await reading(claude, access)}
    key.windows[0].used = 60
    told["at once"] = await reading(claude, access)
    ages(access.home, 100)
    told["later"] = await reading(claude, access)
    ages(access.home, 100)
    request = Request("sonnet", (Message("user", "Hi"),))
    key.replies("Here.").breaks("Let me see. ", "session", resets_in=3600)
    told["answer"] = [type(event).__name__ async for event in claude.reply(access, request)][-1]
    try:
        told["limit"] = [type(event).__name__ async for event in claude.reply(access, request)]
    except LimitReached as error:
        told["limit"] = [error.accepted, round(error.until.timestamp() - datetime.now(UTC).timestamp(), -2)]
    except EngineError as error:
        told["limit"] = repr(error)
    key.usage_status = 429
    ages(access.home, 100)
    told["refused"] = await reading(claude, access)
    await claude.close()
    return told


def main():
    folder = Path(sys.argv[1])
    raise_loopback()
    lead_here(folder, HOST)
    from conch.engines.base import Access
    from conch.engines.claude_code import ClaudeCode
    from tests.simulator.homes import write_claude_home
    from tests.simulator.simulator import Simulator

    with Simulator(with_tls=True, tls_port=443, stands_for=(HOST,)) as simulator:
        os.environ["NODE_EXTRA_CA_CERTS"] = str(simulator.ca_path)
        key = simulator.claude("bob@home.example", folder / "bob")
        write_claude_home(folder / "bob", key, scopes=("user:inference", "user:profile"))
        key.window(300, used=42, resets_in=3600).window(10080, used=7, resets_in=90000)
        access = Access("claude-code", home=key.home)
        told = asyncio.run(trial(key, ClaudeCode(), access))
        told["paths"] = sorted({seen.path for seen in simulator.all_requests()})
        told["hosts"] = sorted({seen.headers.get("host", "") for seen in simulator.all_requests()})
        told["replies"] = len(simulator.requests(key.secret))
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
