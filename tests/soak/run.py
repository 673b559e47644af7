"""One soak: a load, faults at random moments, and the verdict."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.simulator import homes
from tests.simulator.clock import Clock
from tests.simulator.keys import Key
from tests.soak import faults
from tests.soak.judge import ENDS, losses
from tests.soak.load import Load
from tests.soak.place import Place, Provider

PACE = {"do": "reply", "delay": 0.03}
ROUGH = [
    PACE,
    {"do": "reply", "delay": 0.02, "then": "cut"},
    {"do": "refuse", "name": "throttle", "facts": {"retry_after": 1}},
    PACE,
    {"do": "hang_up"},
    {"do": "reply", "then": "close"},
    {"do": "refuse", "name": "overloaded"},
]
LIMITED = [PACE, PACE, {"do": "refuse", "name": "usage_limit", "facts": {"resets_in": 3}}, PACE]
SETTLE_SECONDS = 240  # at most; a busy machine starts processes slowly
WHOLE_STARTS = 0.1  # the share of processes that begin by `manage.py up`; the others are forks of one that has begun


@dataclass
class Verdict:
    """What a soak did and found."""

    injected: Counter = field(default_factory=Counter)
    states: Counter = field(default_factory=Counter)
    turns: int = 0
    attempts: int = 0
    requests: int = 0
    watchers: int = 0
    broken: int = 0
    booked: int = 0
    estimated: int = 0
    seconds: float = 0.0
    found: list = field(default_factory=list)

    def __str__(self):
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.injected.items()))
        ends = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        return (
            f"{self.injected.total()} faults ({kinds}) in {self.seconds:.0f} s; {self.turns} turns ({ends}), "
            f"{self.attempts} attempts, {self.requests} requests at the provider, {self.watchers} watchers, "
            f"{self.broken} broken connections tried again; {self.booked} entries, {self.estimated} by estimate; "
            f"losses: {len(self.found)}"
        )


class Soak:
    """A place with a provider and people at work, ready to be hurt."""

    def __init__(self, folder, *, without="", seed=0, database="", begun_by=(), **environment):
        self.chance = random.Random(seed)
        self.provider = Provider()
        self.place = Place(folder, without=without, database=database, begun_by=begun_by, **environment)
        self.snapshots = set()
        self.verdict = Verdict()
        self.begun = time.monotonic()
        token = self.place.inside("prepare", accounts=self._accounts(), budget=1_000_000_000_000)["token"]
        self.load = Load(token, ["openai", "openai-2", "openrouter", "codex"], seed=seed)

    def _accounts(self):
        for key, plan in (("sk-even", [PACE]), ("sk-rough", ROUGH), ("sk-or-even", [PACE])):
            self.provider.script(key, *plan)
        plan = Key("tok-ada", Clock(), email="ada@work.example", account_id="acct-ada", user_id="user-ada")
        known = {"email": plan.email, "account_id": plan.account_id, "user_id": plan.user_id}
        self.provider.script(plan.secret, *LIMITED, **known)
        home = str(homes.write_codex_home(self.place.folder / "codex", plan))
        addresses = self.provider.base_urls
        return [
            {"engine": "openai", "slug": "openai", "key": "sk-even", "base_url": addresses["openai"]},
            {"engine": "openai", "slug": "openai-2", "key": "sk-rough", "base_url": addresses["openai"]},
            {"engine": "openrouter", "slug": "openrouter", "key": "sk-or-even", "base_url": addresses["openrouter"]},
            {"engine": "codex", "slug": "codex", "home": home, "base_url": addresses["codex"],
             "identity": f"{plan.account_id}:{plan.user_id}"},
        ]  # fmt: skip

    async def run(self, *, ending, passing, senders=5, least_seconds=0.0, most_seconds=600.0):
        """Hurt it so often, by faults that end a process and faults that pass; then let it settle, and judge."""
        begun = self.begun = time.monotonic()
        servers = [await _started(self.place.serve())]
        self.load.addresses = [servers[0].address]
        at_work = asyncio.create_task(self.load.run(senders))
        planned = [*(["ending"] * ending), *(["passing"] * passing)]
        self.chance.shuffle(planned)
        for sort in planned:
            if time.monotonic() - begun > most_seconds:
                break
            await asyncio.sleep(self.chance.uniform(0.2, 1.5))
            self.look()
            if sort == "ending":
                servers = [await self._replace(servers[0])]
            else:
                await self._hurt(servers[0])
        await asyncio.sleep(max(0.0, begun + least_seconds - time.monotonic()))
        return await self.conclude(at_work)

    def look(self):
        """Remember what is written down of every answer that runs: none of it may be lost."""
        self.snapshots |= set(self.place.query("SELECT id, run, answer FROM conch_turn WHERE state = 'running'"))

    async def conclude(self, at_work):
        """Let the people go, let everything settle, and judge."""
        self.load.stopping = True
        await at_work
        await self._settled()
        self.verdict.seconds = time.monotonic() - self.begun
        self._judge()
        return self.verdict

    async def _replace(self, old):
        """End a process. Its successor is there already, or comes after; nobody is told which."""
        overlaps = self.chance.random() < 0.7
        start = self.place.serve if self.place.without or self.chance.random() < WHOLE_STARTS else self.place.fork
        kind = "SIGTERM" if self.chance.random() < 0.1 else "kill -9"
        if overlaps:
            new = await _started(start())
            self.load.addresses = [old.address, new.address]
            await asyncio.sleep(self.chance.uniform(0.0, 1.0))
            self.look()
            await asyncio.to_thread(faults.ENDING[kind], old, self.place)
        else:
            await asyncio.to_thread(faults.ENDING[kind], old, self.place)
            new = await _started(start())
        self.load.addresses = [new.address]
        self.verdict.injected[kind] += 1
        return new

    async def _hurt(self, process):
        kind = self.chance.choice(sorted(faults.PASSING))
        await asyncio.to_thread(faults.PASSING[kind], process, self.place)
        self.verdict.injected[kind] += 1

    async def _settled(self):
        """Wait until every turn has ended and nothing is held, as long as recovery may take."""
        until = time.monotonic() + SETTLE_SECONDS
        while await asyncio.to_thread(self.unfinished) and time.monotonic() < until:  # noqa: ASYNC110  of other processes
            await asyncio.sleep(1)

    def unfinished(self):
        """How many turns have not ended, and holds that are not settled."""
        ends = ", ".join(f"'{end}'" for end in sorted(ENDS))
        turns = self.place.query(f"SELECT count(*) FROM conch_turn WHERE state NOT IN ({ends})")
        holds = self.place.query("SELECT count(*) FROM conch_entry WHERE state = 'held'")
        return turns[0][0] + holds[0][0]

    def _judge(self):
        dump = self.place.inside("dump")
        requests = self.provider.read("/_requests")
        told, verdict = self.load.told, self.verdict
        verdict.turns, verdict.attempts = len(dump["turns"]), len(dump["attempts"])
        verdict.states = Counter(turn["state"] for turn in dump["turns"])
        verdict.requests, verdict.watchers, verdict.broken = len(requests), len(told.watched), told.broken
        verdict.booked = len(dump["entries"])
        verdict.estimated = sum(entry["estimated"] for entry in dump["entries"])
        verdict.found = losses(told.sent, told.watched, dump, requests, self.snapshots) + told.faults

    def end(self):
        self.place.end()
        self.provider.end()


async def _started(process):
    return await asyncio.to_thread(process.wait_until_serving)
