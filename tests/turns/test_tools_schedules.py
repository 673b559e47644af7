"""Random turns with tools: rounds, refusals, breaks, stops, words of the person, budgets and consent that change.

Whatever happens, a call runs at most once, and the ledger says what the provider billed (R17, R26, R27).
"""

import asyncio
import os
from contextlib import suppress
from decimal import Decimal
from random import Random

import pytest

from conch import ledger as money
from conch.db import look
from conch.models import Entry, MonthTotal, ToolCall, Turn
from conch.money import to_nano
from conch.turns import doors
from conch.turns.errors import NotNow
from tests.simulator.scripts import Call, Refuse, Reply
from tests.turns.tools import SERVER, Ledger, asking

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = int(os.environ.get("CONCH_SCHEDULES", "40"))
KEYS = {"openai": "gpt-5.5", "anthropic": "claude-sonnet-4-5", "openrouter": "openai/gpt-5.5"}
TOOLS = ("look_up", "write_down", "fail", "shout")
ENDS = ("", "", "", "", "cut", "close", "refuse")
REFUSALS = {"openai": ("throttle", "insufficient_quota", "bad_request", "server_error")}
REFUSALS |= {"anthropic": ("throttle", "credit_too_low", "bad_request", "overloaded")}
REFUSALS |= {"openrouter": ("throttle", "bad_request")}
RESTS = {"waiting", "capped"}


def reply(random, place, engine):
    """What a key does at one request: it says something, asks for some tools, and ends well or not."""
    if random.random() < 0.12:
        return Refuse(random.choice(REFUSALS[engine]))
    whats = [random.choice(("one", "two", "three")) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    calls = tuple(Call(f"{SERVER}__{random.choice(TOOLS)}", {"what": f"{place}-{what}"}) for what in whats)
    then = random.choice(ENDS)
    return Reply(
        random.choice(("", "Let me look. ", "Some words of an answer.")) or ("" if calls else "Well."),
        calls=calls if then in {"", "refuse"} else (),
        input_tokens=random.choice((40, 900, 20_000)),
        output_tokens=random.choice((5, 300, 6_000)),
        then=then,
        refusal=Refuse(REFUSALS[engine][0]) if then == "refuse" else None,
    )


class Schedule:
    """One person with three keys and a plan, and what happens to their chats."""

    def __init__(self, world, ledger, seed):
        self.world, self.ledger, self.random = world, ledger, Random(seed)
        self.accounts = {}

    async def connects(self):
        for engine, model in KEYS.items():
            known = [{"id": model, "label": model}]
            self.accounts[engine] = await look(self.world.account, engine, model=model, known_models=known)
        self.accounts["codex"] = await look(self.world.account, "codex")

    async def changes(self):
        """Preferences and permissions, as they may be pressed at any time."""
        budget = self.random.choice((None, None, 1, 5, 1000))
        await self.world.prefers(
            limit_paid=self.random.random() < 0.7,
            limit_fallback=self.random.choice(("auto", "auto", "wait", "openrouter")),
            month_budget_nano=None if budget is None else to_nano(Decimal(budget)),
        )
        await look(self.ledger.permits, self.random.choice(("always", "always", "ask")), self.random.choice(TOOLS))

    async def one(self, place):
        random, world = self.random, self.world
        for engine in KEYS:
            key = self.accounts[engine].key
            key.forgets().does(*[reply(random, place, engine) for _ in range(random.randint(1, 5))]).replies("The end.")
        self.accounts["codex"].key.forgets().replies("By the plan.")
        await self.changes()
        cap = random.choice((None, None, None, to_nano(Decimal("0.2"))))
        chat = await look(world.chat, random.choice(list(KEYS)), tools=[SERVER], spend_cap_nano=cap)
        turn = await doors.send(world.person.pk, chat.pk, f"Message {place}", clock=world.time.clock)
        if random.random() < 0.3:
            await asyncio.sleep(random.random() / 20)
            await self.changes()
        if random.random() < 0.2:
            await asyncio.sleep(random.random() / 10)
            await doors.stop(world.person.pk, turn.pk, world.time.clock)
        turn = await world.settled(turn)
        for _ in range(6):
            if turn.state not in RESTS:
                break
            turn = await self.presses(chat, turn)
        if turn.state in RESTS:
            await doors.stop(world.person.pk, turn.pk, world.time.clock)
            turn = await world.settled(turn)
        assert turn.state in Turn.ENDS
        assert turn.failure_code != "internal", turn.failure

    async def presses(self, chat, turn):
        """Something that a person presses on a turn that rests."""
        random, world = self.random, self.world
        asks = await asking(turn)
        if asks:
            word = random.choice(("once", "always", "no"))
            tabs = [doors.allow(world.person.pk, turn.pk, asks[0], word, world.time.clock) for _ in range(2)]
            await asyncio.gather(*tabs)
        elif turn.state == "capped":
            await doors.raise_cap(world.person.pk, chat.pk, random.choice((None, Decimal(1))), world.time.clock)
        else:
            with suppress(NotNow):
                await doors.answer_with(world.person.pk, turn.pk, random.choice(list(KEYS)), world.time.clock)
        return await world.settled(turn)


def booked(account):
    rows = Entry.objects.filter(account=account).order_by("pk")
    return list(rows.values_list("input_tokens", "output_tokens", "estimated", "state"))


@pytest.mark.parametrize("seed", [int(os.environ.get("CONCH_SEED", "7"))])
async def test_no_schedule_runs_a_call_twice_or_books_what_was_not_billed(world, tmp_path, seed):
    ledger = await look(Ledger, world.person, tmp_path)
    await look(ledger.permits, "always")
    schedule = Schedule(world, ledger, seed)
    await schedule.connects()

    for place in range(TURNS):
        await schedule.one(place)
        assert len(ledger.ran) == len(set(ledger.ran)), place
        world.time.moves(hours=9)  # what was refused may be asked again

    started = await look(lambda: ToolCall.objects.exclude(started_at=None).count())
    assert len(ledger.ran) <= started
    assert not await look(lambda: ToolCall.objects.filter(state__in=["asked", "allowed", "running"]).exists())
    for engine in KEYS:
        account = schedule.accounts[engine]
        billed = [seen.billed for seen in world.simulator.requests(account.key.secret) if seen.billed is not None]
        entries = await look(booked, engine)
        assert {state for *_, state in entries} <= {"settled"}
        whole = sorted((put, out) for put, out, estimated, _ in entries if not estimated)
        theirs = sorted((each.input_tokens, each.output_tokens) for each in billed)
        for each in whole:
            assert each in theirs, (engine, each)
            theirs.remove(each)
        # What broke off was billed in part, and is booked as an estimate.
        assert len(theirs) <= sum(estimated for _, _, estimated, _ in entries)
    assert await look(lambda: set(MonthTotal.objects.values_list("held_nano", flat=True))) <= {0}
    assert await look(money.check) == []
