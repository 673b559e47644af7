"""Many answers at once, 20 pieces a second each (`python -m tests.bench.streams`): lost, late, memory, and how many."""

import asyncio
import os
import re
import sys
import tempfile
import time
from itertools import pairwise

from tests.bench.measuring import percentile, pieces
from tests.bench.place import Place

STREAMS, SECONDS, EACH = 200, 30, 20  # pieces a second
MOST_EXTRA, MOST_MEMORY = 100.0, 250.0  # milliseconds; megabytes
TRIED_SECONDS = 10
STEP, LARGEST = 50, 600
DELTA = re.compile(rb'"text":"([^"]*)"|"delta":"([^"]*)"')


def words(seconds):
    return [f"w{number}" for number in range(seconds * EACH)]


class Streams:
    """So many answers of so many seconds, begun within a second."""

    def __init__(self, place, many, seconds):
        self.place, self.many, self.seconds = place, many, seconds
        self.text = " ".join(words(seconds))
        place.script("tok-streams", [{"do": "reply", "text": self.text, "delay": 1 / EACH}])
        self.gaps, self.lost, self.memory = [], 0, 0.0

    async def conch(self):
        chats = [self.place.chat("streams") for _ in range(self.many)]
        await self._all(
            [
                (f"{self.place.conch}/api/conversations/{chat}/messages", {"text": "hi"}, self.place.signed)
                for chat in chats
            ]
        )
        return self

    async def direct(self):
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        body = {"model": "gpt-5.5", "stream": True, "store": False, "instructions": "", "input": [said]}
        headers = {"Authorization": "Bearer tok-streams", "ChatGPT-Account-ID": "acct-streams"}
        asked = (f"{self.place.simulator}/backend-api/codex/responses", body, headers)
        await self._all([asked] * self.many)
        return self

    async def _all(self, requests):
        watching = asyncio.create_task(self._watch())
        await asyncio.gather(*(self._one(number, *asked) for number, asked in enumerate(requests)))
        watching.cancel()

    async def _watch(self):
        while True:
            self.memory = max(self.memory, self.place.process.megabytes)
            await asyncio.sleep(0.5)

    async def _one(self, number, address, body, headers):
        await asyncio.sleep(number / self.many)
        came, rest, text = [], b"", []
        try:
            async for piece in pieces(address, body, headers):
                now, (rest, whole) = time.perf_counter(), _events(rest + piece)
                for match in DELTA.finditer(whole):
                    text.append(match[1] or match[2] or b"")
                    came.append(now)
        except OSError:
            pass
        self.lost += b"".join(text).decode() != self.text
        self.gaps += [(after - before) * 1e3 for before, after in pairwise(came)]

    @property
    def late(self):
        """The longest gap between two pieces but for one in a hundred, in milliseconds."""
        return percentile(self.gaps, 0.99) if self.gaps else float("inf")


def _events(data):
    """What isn't whole yet, and the events that are: the deltas alone, since the whole text is repeated at the end."""
    whole, mark, rest = data.rpartition(b"\n\n")
    kept = [event for event in (whole + mark).split(b"\n\n") if b"delta" in event]
    return rest, b"\n\n".join(kept)


async def run(place):
    floor = (await Streams(place, STREAMS, TRIED_SECONDS).direct()).late
    used = place.process.processor_seconds
    full = await Streams(place, STREAMS, SECONDS).conch()
    used = place.process.processor_seconds - used
    extra = full.late - floor
    print(
        f"{STREAMS} streams, {EACH} pieces a second, {SECONDS} s: {full.lost} lost or out of order, gap p99"
        f" {extra:.0f} ms more than direct (at most {MOST_EXTRA:.0f}), longest {max(full.gaps):.0f} ms,"
        f" {full.memory:.0f} MB (at most {MOST_MEMORY:.0f}), {used:.0f} s of processor"
    )
    holds = STREAMS if not full.lost and extra <= MOST_EXTRA else 0
    while holds and holds < LARGEST:
        tried = await Streams(place, holds + STEP, TRIED_SECONDS).conch()
        if tried.lost or tried.late - floor > MOST_EXTRA or tried.memory > MOST_MEMORY:
            break
        holds += STEP
    print(f"the largest number that holds this, in steps of {STEP}: {holds}")
    return not holds


def main():
    with tempfile.TemporaryDirectory(prefix="conch-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        place = Place(folder)
        place.plan("answers", [{"do": "reply", "text": "hi"}])
        place.plan("streams", [{"do": "reply", "text": "hi"}])
        try:
            place.start()
            return int(asyncio.run(run(place)))
        finally:
            place.stop()


if __name__ == "__main__":
    sys.exit(main())
