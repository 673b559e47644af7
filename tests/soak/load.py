"""People at work: they send, watch the answers, press Stop and Try again, and come back when the line breaks."""

import asyncio
import contextlib
import json
import random
import time
from dataclasses import dataclass, field

import httpx2 as httpx

MESSAGES_A_CHAT = 6
BROKEN = (httpx.HTTPError, OSError, ValueError)


@dataclass
class Sent:
    """One message as its sender knows it. `turns`: the ids that it was told, one unless something is wrong."""

    key: str
    chat: int
    text: str
    turns: set[int] = field(default_factory=set)


@dataclass
class Watched:
    """What somebody saw of one run of a turn, and when: (event id, kind, length of the text so far, time)."""

    turn: int
    ids: list[int] = field(default_factory=list)
    text: str = ""


@dataclass
class Told:
    """Everything that the load did and was told."""

    sent: dict[str, Sent] = field(default_factory=dict)
    watched: list[Watched] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)  # answers that say a fault of Conch's
    broken: int = 0  # connections that broke, each tried again
    pressed: int = 0


class Load:
    """Senders against whichever of the addresses answers."""

    def __init__(self, token, accounts, *, seed=0, words=40):
        self.chance = random.Random(seed)
        self.accounts = accounts
        self.words = words
        self.addresses = []
        self.told = Told()
        self.stopping = False
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(20, read=30), trust_env=False
        )

    async def run(self, senders):
        await asyncio.gather(*(self._sender(number) for number in range(senders)))
        await self._client.aclose()

    async def _call(self, method, path, **how):
        """The call's answer, from whichever process is there; tried until it is answered or the load stops."""
        while True:
            address = self.chance.choice(self.addresses) if self.addresses else ""
            try:
                answer = await self._client.request(method, address + path, **how)
            except BROKEN:
                self.told.broken += 1
                if self.stopping:
                    return None
                await asyncio.sleep(0.1)
                continue
            if answer.status_code == 503 and not self.stopping:
                await asyncio.sleep(0.2)
                continue
            if answer.status_code >= 500:
                self.told.faults.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return answer

    async def _sender(self, number):
        made = 0
        while not self.stopping:
            account = self.accounts[(number + made) % len(self.accounts)]
            answer = await self._call("POST", "/api/conversations", json={"account": account})
            if answer is None or answer.status_code != 201:
                continue
            chat, made = answer.json()["id"], made + 1
            for _ in range(MESSAGES_A_CHAT):
                if self.stopping:
                    return
                await self._one(chat, number)

    async def _one(self, chat, number):
        key = f"{number}-{len(self.told.sent)}"
        words = " ".join(f"w{self.chance.randrange(1000)}" for _ in range(self.chance.randrange(3, self.words)))
        sent = self.told.sent[key] = Sent(key, chat, f"message {key}: {words}")
        tabs = 2 if self.chance.random() < 0.2 else 1  # the same message from two tabs at once
        turns = await asyncio.gather(*(self._post(sent) for _ in range(tabs)))
        if turns[0] is not None:
            await self._then(chat, turns[0])

    async def _post(self, sent):
        body = {"text": sent.text, "idempotency_key": sent.key}
        answer = await self._call("POST", f"/api/conversations/{sent.chat}/messages", json=body)
        if answer is None or answer.status_code != 202:
            if answer is not None:
                self.told.faults.append(f"a message: {answer.status_code} {answer.text[:200]}")
            return None
        turn = answer.json()["id"]
        sent.turns.add(turn)
        return turn

    async def _then(self, chat, turn):
        """What people do next: watch to the end, leave at once, look for a moment, stop it, or try it again."""
        path = f"/api/conversations/{chat}/turns/{turn}"
        what = self.chance.random()
        if what < 0.6:
            await self._watch(f"{path}/events", turn)
        elif what < 0.75:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._watch(f"{path}/events", turn), self.chance.random())
        elif what < 0.82:
            await asyncio.sleep(self.chance.random())
            self.told.pressed += 1
            await self._call("POST", f"{path}/stop")
        state = await self._call("GET", f"/api/conversations/{chat}?limit=1")
        if state is None or state.status_code != 200 or not state.json()["turns"]:
            return
        latest = state.json()["turns"][-1]
        if latest["state"] in {"interrupted", "failed"} and self.chance.random() < 0.3:
            self.told.pressed += 1
            await self._call("POST", f"/api/conversations/{chat}/turns/{latest['id']}/retry")

    async def _watch(self, path, turn):
        """Follow the turn to its end; where the line breaks, take it up again from the last event."""
        seen = Watched(turn)
        self.told.watched.append(seen)
        until = time.monotonic() + 30
        while not self.stopping and time.monotonic() < until and self.addresses:
            headers = {"Last-Event-ID": str(seen.ids[-1])} if seen.ids else {}
            try:
                address = self.chance.choice(self.addresses)
                async with self._client.stream("GET", address + path, headers=headers) as answer:
                    if await _read(answer, seen):
                        return
            except BROKEN:
                self.told.broken += 1
                await asyncio.sleep(0.1)


async def _read(answer, seen):
    """Take the events in; True when the stream said its last."""
    event = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")
            continue
        if "id" in event:
            seen.ids.append(int(event["id"]))
            if event["event"] == "delta":
                seen.text += json.loads(event["data"])["text"]
            elif event["event"] in {"discard", "queued"}:
                seen.text = ""
        event = {}
    return answer.status_code == 200
