"""What the plans' own programs add to a turn (`python -m tests.bench.programs`): cold, warm, at a known limit; memory.

The real programs (requirements/clis.txt) against the simulator in a process of its own, through Conch as it serves,
beside a raw request to the simulator, and beside the program alone: the engine without Conch around it. A cold turn
starts its program; one by a spare finds it started; a warm one is the next message of a chat whose program was kept.
`asked` is when the request reaches the provider, the program's own part included.
"""

import asyncio
import os
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from tests.bench.measuring import spread, streamed
from tests.bench.place import REFUSAL, REPLY, Place
from tests.programs import STRAYS, named

COLD, SPARE, WARM = 4, 6, 25
READY_AFTER = 4.0  # seconds in which a spare is surely started
ANSWER = [{"do": "reply", "text": "Good morning to you, and a good day."}]
REFUSES = [{"do": "refuse", "name": "usage_limit"}]
PROGRAMS = {"claude-code": "sonnet", "codex-cli": "gpt-5.5"}
MESSAGES = {"model": "claude-sonnet-5-5", "max_tokens": 99, "stream": True}


class Programs(Place):
    """Conch with plans by both programs, each with a home of its own, and one over HTTP that is at its limit."""

    def __init__(self, folder):
        os.environ |= named() | STRAYS | {"HOME": str(folder)}
        super().__init__(folder)
        os.environ["CODEX_REFRESH_TOKEN_URL_OVERRIDE"] = f"{self.simulator}/oauth/token"
        self.plan("answers", [REPLY])
        self.plan("spent", [REFUSAL])
        for engine in PROGRAMS:
            for number in range(COLD):
                self._program(engine, f"{engine}-cold-{number}")
            self._program(engine, f"{engine}-next")

    def _order(self, slug):
        """Who carries on when `spent` is at its limit is chosen for each measurement."""
        from conch.models import Preferences

        Preferences.objects.filter(pk=self.person.pk).update(limit_order=[slug])

    def _program(self, engine, name):
        from conch.models import Account
        from tests.simulator.clock import Clock
        from tests.simulator.homes import write_claude_home, write_codex_home
        from tests.simulator.keys import Key

        claude = engine == "claude-code"
        facts = {"email": f"{name}@work.example", "account_id": f"acct-{name}", "user_id": f"user-{name}"}
        facts |= {"organization": f"org-{name}", "label": name}
        key = Key(f"sk-ant-oat01-{name}" if claude else f"tok-{name}", Clock(), **facts)
        home = (write_claude_home if claude else write_codex_home)(self.folder / "homes" / name, key)
        self.post(f"{self.simulator}/_script", {"key": key.secret, "plan": ANSWER, "facts": facts})
        Account.objects.create(
            person=self.person,
            engine=engine,
            slug=name,
            label=name,
            identity=f"org-{name}:{key.email}" if claude else f"{key.account_id}:{key.user_id}",
            whose=key.email,
            model=PROGRAMS[engine],
            known_models=[{"id": PROGRAMS[engine], "label": PROGRAMS[engine]}],
            home=str(home),
            base_url=self.simulator if claude else f"{self.simulator}/backend-api",
            connected_at=datetime.now(UTC),
        )

    async def order(self, slug):
        await asyncio.to_thread(self._order, slug)

    async def direct_to(self, engine):
        """A raw request to what the program speaks to: seconds to the first text."""
        if engine == "codex-cli":
            return (await self.direct())[0]
        body = MESSAGES | {"messages": [{"role": "user", "content": "hi"}]}
        headers = {"x-api-key": "sk-ant-oat01-claude-code-next", "anthropic-version": "2023-06-01"}
        return (await streamed(f"{self.simulator}/v1/messages", body, headers, b"text_delta"))[0]

    async def asked_after(self, chat, secret):
        """One more turn of the chat: seconds to that account's request at the provider, and to the first text."""
        began = time.time()
        first, _ = await self.turn(chat)
        return (await asyncio.to_thread(self.seen, secret))[-1]["at"] - began, first

    def programs(self):
        """Resident megabytes of every program that runs under Conch."""
        listed = subprocess.run(["ps", "-eo", "ppid=,rss=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()]
        ours = [(int(rss) / 1024, args.split()[0]) for ppid, rss, args in rows if int(ppid) == self.process.pid]
        return {name: [size for size, path in ours if Path(path).name == name] for name in ("claude", "codex")}


async def run(bench):
    """Measure and print."""
    await bench.turn(bench.chat("spent"))
    for engine in PROGRAMS:
        base = median([await bench.direct_to(engine) for _ in range(20)])
        print(f"{engine}: direct, first text {base * 1e3:.1f} ms; beyond it, through Conch:")
        cold = [(await bench.turn(bench.chat(f"{engine}-cold-{number}")))[0] - base for number in range(COLD)]
        print(f"  cold, the program is started        {spread(cold)}")
        await asyncio.sleep(READY_AFTER)
        await by_a_spare(bench, engine, base)
        chat = bench.chat(f"{engine}-next")
        firsts = [(await bench.turn(chat))[0] - base for _ in range(WARM + 1)][1:]
        print(f"  warm, the chat's own process        {spread(firsts)}")
        print(f"  warm, the program alone             {spread(await alone(bench, engine))}")
    await known_limit(bench)
    for name, sizes in bench.programs().items():
        print(f"{name}: {len(sizes)} that wait, {', '.join(f'{size:.0f}' for size in sizes)} MB")
    print(f"Conch itself: {bench.process.megabytes_alone:.0f} MB")


async def alone(bench, name):
    """The next messages of a chat by the engine alone: seconds to the first text."""
    from conch.engines.base import Access, Message, Request, Text
    from conch.engines.registry import engine
    from conch.models import Account

    row = await asyncio.to_thread(Account.objects.get, slug=f"{name}-next")
    access, said, firsts = Access(name, row.base_url, home=row.home), (), []
    for _ in range(WARM + 1):
        said, text, began = (*said, Message("user", "hi")), "", time.perf_counter()
        async for event in engine(name).reply(access, Request(row.model, said, conversation="alone")):
            if isinstance(event, Text):
                firsts += [] if text else [time.perf_counter() - began]
                text += event.text
        said = (*said, Message("assistant", text))
    await engine(name).close()
    return firsts[1:]


async def by_a_spare(bench, engine, base):
    """Another chat each time, after the program that the one before left ready is there."""
    await bench.turn(bench.chat(f"{engine}-next"))
    firsts = []
    for _ in range(SPARE):
        await asyncio.sleep(READY_AFTER)
        firsts.append((await bench.turn(bench.chat(f"{engine}-next")))[0] - base)
    print(f"  a new chat, by a spare              {spread(firsts)}")


async def known_limit(bench):
    """The chat's own account is at its limit, and known to be: how soon the next one is asked."""
    secrets = {"answers": "tok-answers", "codex-cli-next": "tok-codex-cli-next"}
    secrets["claude-code-next"] = "sk-ant-oat01-claude-code-next"
    print("a known limit, to the next account's request at the provider, and to its first text:")
    for slug, secret in secrets.items():
        await bench.order(slug)
        chat = bench.chat("spent")
        took = [await bench.asked_after(chat, secret) for _ in range(WARM + 1)][1:]
        print(
            f"  {slug:<18} asked {spread([asked for asked, _ in took])}  "
            f"first text {spread([first for _, first in took])}"
        )
    spent = await asyncio.to_thread(bench.seen, "tok-spent")
    print(f"  the spent one was asked {len(spent)} time in all")


def main():
    with tempfile.TemporaryDirectory(prefix="conch-bench-", ignore_cleanup_errors=True) as folder:
        bench = Programs(Path(folder))
        try:
            bench.start()
            asyncio.run(run(bench))
        finally:
            bench.stop()


if __name__ == "__main__":
    main()
