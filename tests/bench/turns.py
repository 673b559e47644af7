"""What Conch adds to a turn (`python -m tests.bench.turns`): all of it on, beside a raw request and what else there is.

The provider is the simulator in a process of its own; the client is raw asyncio; all share this machine's cores.
Figures are printed side by side with the direct request of the same run, since machines differ and are noisy.
"""

import asyncio
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import cycle, pairwise
from statistics import median

from tests.bench.measuring import at_once, one_by_one, percentile, spread
from tests.bench.others import LiteLLM, NotHere, Spillway
from tests.bench.place import REFUSAL, REPLY, Place

ONE_BY_ONE, AT_ONCE, TOGETHER = 60, 16, 320
REFUSALS, IDLE = 20, 7  # accounts
LONG = 200  # messages


def prepare(folder):
    """Ten accounts: one that answers, one whose limit is known, a key, and some that are never asked."""
    place = Place(folder)
    place.plan("answers", [REPLY])
    place.plan("spent", [REFUSAL])
    place.key("key", [REPLY])
    for number in range(IDLE):
        place.plan(f"idle-{number}", [REPLY])
    return place


async def conch(place, floor):
    """Conch's own figures, by their names."""
    for _ in range(5):
        await place.turn(place.chat("answers"))
    await place.turn(place.chat("spent"))
    asked_before = len(place.seen("tok-spent"))
    found = {}
    for words, account in (("plain path", "answers"), ("known limit", "spent")):
        chats = iter([place.chat(account) for _ in range(ONE_BY_ONE)])
        firsts = await one_by_one(ONE_BY_ONE, lambda chats=chats: place.turn(next(chats)))
        found[words] = [first - floor for first in firsts]
    for words, account in (("plain path", "answers"), ("known limit", "spent")):
        chats = iter([place.chat(account) for _ in range(TOGETHER)])
        used = place.process.processor_seconds
        found[f"{words} at once"] = await at_once(AT_ONCE, TOGETHER, lambda chats=chats: place.turn(next(chats)))
        found[f"{words} processor"] = (place.process.processor_seconds - used) / TOGETHER
    found["spent asked"] = len(place.seen("tok-spent")) - asked_before
    await refusals(place)
    found["refusal"] = between(place.seen(), "tok-refuses", "tok-answers")
    return found


async def refusals(place):
    """Turns whose own account refuses: each by an account that is connected for it, in the place of one never asked."""
    place.leave("idle-0")
    for number in range(REFUSALS):
        place.plan(f"refuses-{number}", [REFUSAL])
        await place.turn(place.chat(f"refuses-{number}"))
        place.leave(f"refuses-{number}")


def between(seen, refused, answered):
    """Seconds from each refused request's arrival to the arrival of the one that followed it."""
    return [
        after["at"] - before["at"]
        for before, after in pairwise(seen)
        if before["key"].startswith(refused) and after["key"] == answered
    ]


async def others(place, folder):
    """The same of what people would use instead; one that can't be installed here is left out, and said to be."""
    for made in (LiteLLM, Spillway):
        try:
            other = made(place, folder)
        except NotHere as error:
            print(f"{made.name}: not measured ({error})")
            continue
        try:
            await compared(other)
        finally:
            other.stop()


async def compared(other):
    floor = median(await one_by_one(ONE_BY_ONE, other.direct))
    for _ in range(10):
        await other.plain()
    plain = [first - floor for first in await one_by_one(ONE_BY_ONE, other.plain)]
    print(f"{other.name}, plain path           beyond direct, first text {spread(plain)}")
    before = other.spent_asked()
    for _ in range(5):
        await other.limited()
    begun = other.spent_asked()
    limited = [first - floor for first in await one_by_one(ONE_BY_ONE, other.limited)]
    asked = other.spent_asked() - begun
    print(f"{other.name}, a limit              beyond direct, first text {spread(limited)}; {asked} requests to it")
    refusals = other.refused_to_next()
    if refusals:
        print(f"{other.name}, a refusal in the turn, to the next request     {spread(refusals)}")
    for words, ask in (("plain path", other.plain), ("a limit", other.limited)):
        rate, firsts = await at_once(AT_ONCE, TOGETHER, ask)
        late = percentile(firsts, 0.99) * 1e3
        print(f"{other.name}, {AT_ONCE} at once, {words}: {rate:.1f} turns a second, first text p99 {late:.0f} ms")
    print(f"{other.name}: {other.process.megabytes:.0f} MB; asked {other.spent_asked() - before} times what was spent")


async def long_chat(place):
    """The first text in a chat of many messages beside one of two, in turns, so that both have the same noise."""
    short, long = place.chat("answers"), place.chat("answers")
    for chat, turns in ((short, 1), (long, LONG // 2)):
        _said(chat, turns)
    firsts = {short: [], long: []}
    for chat, _ in zip(cycle((short, long)), range(40), strict=False):
        firsts[chat].append((await place.turn(chat))[0])
        _forget_last(chat)
    more = median(firsts[long]) - median(firsts[short])
    print(f"a chat of {LONG} messages: first text {more * 1e3:.1f} ms more than one of 2 (at most 5)")


def _said(chat, turns):
    from conch.models import Turn
    from conch.turns import tokens

    answer, text, now = "An answer of some sentences. " * 20, "A question of one sentence.", datetime.now(UTC)
    Turn.objects.bulk_create(
        Turn(
            conversation_id=chat,
            text=text,
            answer=answer,
            account="answers",
            state="done",
            created_at=now - timedelta(minutes=turns - number),
            text_tokens=tokens.count(text),
            answer_tokens=tokens.count(answer),
        )
        for number in range(turns)
    )


def _forget_last(chat):
    from conch.models import Turn

    Turn.objects.filter(conversation_id=chat).order_by("-pk").first().delete()


async def left_alone(place):
    """Turns whose posters leave at once: what they leave behind."""
    from conch.models import Turn

    chats = [place.chat("answers") for _ in range(130)]

    async def leave(chat):
        address = f"{place.conch}/api/conversations/{chat}/messages"
        from tests.bench.measuring import pieces

        async for _ in pieces(address, {"text": "hi"}, place.signed):
            break

    async def until_over():
        unfinished = Turn.objects.exclude(state__in=Turn.ENDS)
        while await asyncio.to_thread(unfinished.all().exists):  # noqa: ASYNC110  it is another process that ends them
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)

    await asyncio.gather(*(leave(chat) for chat in chats[:10]))
    await until_over()
    before = place.process.threads_and_files
    for chat in chats[10:]:
        await leave(chat)
    await until_over()
    grown = [after - had for had, after in zip(before, place.process.threads_and_files, strict=True)]
    print(f"120 turns whose posters left: {grown[0]:+d} threads, {grown[1]:+d} open files")


def say(found, floor):
    print(f"direct, one at a time                first text p50 {floor * 1e3:.1f} ms")
    print(f"Conch, plain path         beyond direct, first text {spread(found['plain path'])}")
    print(f"Conch, a known limit      beyond direct, first text {spread(found['known limit'])} (at most 10, 15)")
    print(f"Conch, a refusal in the turn, to the next request   {spread(found['refusal'])} (at most 8)")
    print(f"Conch, requests to an account known to be spent: {found['spent asked']}")
    for words in ("plain path", "known limit"):
        rate, firsts = found[f"{words} at once"]
        each, late = found[f"{words} processor"] * 1e3, percentile(firsts, 0.99) * 1e3
        print(
            f"Conch, {AT_ONCE} at once, {words}: {rate:.0f} turns a second, first text p99 {late:.0f} ms (at most 300),"
            f" {each:.1f} ms of processor a turn"
        )


async def run(place, folder):
    """Measure and print."""
    for _ in range(20):
        await place.direct()
    floor = median(await one_by_one(ONE_BY_ONE, place.direct))
    say(await conch(place, floor), floor)
    await long_chat(place)
    await left_alone(place)
    for account in ("answers", "key"):
        chats = iter([place.chat(account) for _ in range(50)])
        await at_once(AT_ONCE, 50, lambda chats=chats: place.turn(next(chats)))
    print(f"memory after these turns, on two engines: {place.process.megabytes:.0f} MB")
    await others(place, folder)


def main():
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the rows of a chat are made between two measurements
    with tempfile.TemporaryDirectory(prefix="conch-bench-", ignore_cleanup_errors=True) as folder:
        place = prepare(folder)
        try:
            place.start()
            place.processes.pop().terminate()
            time.sleep(3)
            took = place.start()
            print(
                f"second start to the first page: {took:.1f} s (at most 4); "
                f"{place.process.megabytes:.0f} MB (at most 120)"
            )
            asyncio.run(run(place, folder))
        finally:
            place.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
