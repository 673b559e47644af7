"""A person with accounts at the simulator, and the hands to send and wait."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from conch.accounts.seal import seal
from conch.db import look
from conch.models import Account, Conversation, Line, Preferences, Turn
from conch.turns import doors
from conch.turns.clock import SYSTEM, Clock
from conch.turns.run import all_ended
from conch.turns.worker import look_round, sweep
from tests.conftest import make_person


class StandingClock:
    """A clock that tests move; letting time pass moves it at once, and is remembered."""

    def __init__(self, simulated):
        self.simulated = simulated
        self.offset = timedelta(0)
        self.slept = []
        self.clock = Clock(self.now, self._sleep)

    def now(self):
        return datetime.now(UTC) + self.offset

    def moves(self, **span):
        """Time goes on for Conch and for the providers alike."""
        self.offset += timedelta(**span)
        self.simulated.forward(timedelta(**span).total_seconds())

    async def _sleep(self, seconds):
        self.slept.append(seconds)
        self.moves(seconds=seconds)
        await asyncio.sleep(0)


class World:
    """One person's Conch over the simulator, driven as the API and the pages drive it."""

    def __init__(self, person, simulator, tmp_path):
        self.person = person
        self.simulator = simulator
        self.folder = tmp_path
        self.time = StandingClock(simulator.clock)

    def account(self, engine, slug=None, secret="", **fields):
        """An account connected at the simulator; a plan gets a made-up sign-in, a key its secret."""
        slug = slug or engine
        given = {"label": engine.replace("-", " ").title(), "model": "gpt-5.5"}
        if engine in {"codex", "codex-cli"}:
            key = self.simulator.codex(f"{slug}@work.example", self.folder / slug)
            given |= {"home": key.home, "identity": f"{key.account_id}:{key.user_id}", "whose": key.email}
        else:
            key = self.simulator.key(secret or f"sk-{slug}")
            given |= {"sealed_key": seal(key.secret), "key_hint": key.secret[-4:]}
        row = Account.objects.create(
            person=self.person,
            engine=engine,
            slug=slug,
            base_url=self.simulator.base_urls[engine],
            connected_at=SYSTEM.now(),
            **({"known_models": [{"id": "gpt-5.5", "label": "GPT-5.5"}]} | given | fields),
        )
        return SimpleNamespace(row=row, key=key)

    def chat(self, account, **fields):
        now = SYSTEM.now()
        return Conversation.objects.create(
            person=self.person, account=account, created_at=now, updated_at=now, **fields
        )

    async def say(self, chat, text="hi", **how):
        """Send a message and wait until nothing runs; the turn as it is then."""
        turn = await doors.send(self.person.pk, chat.pk, text, clock=self.time.clock, **how)
        return await self.settled(turn)

    async def worker_looks(self):
        """One look of the worker, at the time that it is for this world."""
        await sweep(self.time.clock)
        await look_round(self.time.clock)
        await asyncio.wait_for(all_ended(), 60)

    async def prefers(self, **preferences):
        await look(Preferences.objects.filter(pk=self.person.pk).update, **preferences)

    async def settled(self, turn):
        await asyncio.wait_for(all_ended(), 60)
        return await look(Turn.objects.get, pk=turn.pk)

    async def lines(self, chat):
        rows = await look(lambda: list(Line.objects.filter(conversation=chat).order_by("pk")))
        return [(row.kind, row.data) for row in rows]


@pytest.fixture
def world(transactional_db, simulator, tmp_path):
    return World(make_person("ada", is_owner=True), simulator, tmp_path)
