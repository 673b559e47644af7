"""How many people a Conch carries, and what gives out first: a model that can be run again (docs/scale.md).

`python scripts/scale.py [--messages-a-day 20] [--seed 0]`. Standard library only. The figures of MEASURED come from the
machine that docs/scale.md names; put yours in their place and run it again.
"""

import argparse
import heapq
import math
import random
import sys
from dataclasses import dataclass

MEASURED = {
    "cpu_ms_a_turn": 30.0,  # accept, route, request, settle, over the API, with the client's share of the machine
    "cpu_ms_a_chunk": 0.56,  # one piece of text, from the provider to the one who watches
    "kb_a_stream": 98.0,  # memory of one turn under way, with its watcher
    "mb_a_process": 112.0,  # memory of a serving process at rest
    "rows_a_turn": 6.5,  # turn, 3.3 events, 1.1 attempts, 1 ledger entry, lines
    "kb_a_turn": 5.3,  # of database with its indexes, without long texts
    "commit_ms": 0.29,  # SQLite, synchronous=FULL, this disk (one writer thread commits waiting steps together)
    "commits_a_turn": 3.0,  # accept, begin, settle
    "flushes_a_second": 4.0,  # of one process, for all of its turns together
}
# What people do. A busy hour has this share of the day, and its worst minute so many times its mean.
BUSY_HOUR, WORST_MINUTE = 0.15, 3.0
ANSWER_SECONDS, CHUNKS_A_SECOND = 15.0, 20.0
KB_OF_TEXT = 2.0
BUSY_AT_MOST = 0.7  # of a core, so that queues stay short
SIMULATED_SECONDS = 120.0


@dataclass(frozen=True)
class Load:
    """One worst minute: how many turns begin and how many are under way."""

    people: int
    a_second: float
    together_mean: float
    together_p99: int


def simulated(people: int, messages_a_day: float, chance: random.Random) -> Load:
    """Let people write for two of their worst minutes; exponential gaps, answers of gamma-distributed length."""
    rate = people * messages_a_day * BUSY_HOUR / 3600 * WORST_MINUTE
    ends: list[float] = []
    seen: list[int] = []
    # Beyond this rate a part stands for the whole: the spread of the whole is narrower, so p99 is no less than it is.
    thin = max(1.0, rate / 250)
    now = 0.0
    while now < SIMULATED_SECONDS:
        now += chance.expovariate(rate / thin)
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        heapq.heappush(ends, now + chance.gammavariate(2.0, ANSWER_SECONDS / 2))
        if now > ANSWER_SECONDS * 2:
            seen.append(len(ends))
    seen = sorted(seen) or [1]
    p99 = seen[min(len(seen) - 1, math.ceil(len(seen) * 0.99) - 1)]
    return Load(people, rate, sum(seen) / len(seen) * thin, round(p99 * thin))


def needed(load: Load, messages_a_day: float) -> dict[str, float]:
    """What that load takes: cores, memory, commits, and what a year leaves behind."""
    per_turn = MEASURED["cpu_ms_a_turn"] + MEASURED["cpu_ms_a_chunk"] * ANSWER_SECONDS * CHUNKS_A_SECOND
    cores = max(0.05, load.a_second * per_turn / 1000 / BUSY_AT_MOST)
    processes = math.ceil(cores)
    commits = load.a_second * MEASURED["commits_a_turn"] + processes * MEASURED["flushes_a_second"]
    turns_a_year = load.people * messages_a_day * 365
    return {
        "cores": cores,
        "gb": (processes * MEASURED["mb_a_process"] + load.together_p99 * MEASURED["kb_a_stream"] / 1024) / 1024,
        "commits": commits,
        "writer": commits * MEASURED["commit_ms"] / 1000,
        "million_rows": turns_a_year * MEASURED["rows_a_turn"] / 1e6,
        "tb": turns_a_year * (MEASURED["kb_a_turn"] + KB_OF_TEXT) / 1024**3,
    }


def main() -> None:
    """Print the table of docs/scale.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages-a-day", type=float, default=20.0, help="of one person")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    chance = random.Random(chosen.seed)  # noqa: S311  a simulation
    head = (
        "| people | turns a second | under way, mean / p99 | cores | memory, GB | commits a second "
        "| one SQLite writer waits for the disk | rows a year, millions | database a year, TB |"
    )
    lines = [
        head,
        "| ---: " * 9 + "|",
    ]
    for people in (100, 1_000, 10_000, 100_000, 1_000_000):
        load = simulated(people, chosen.messages_a_day, chance)
        takes = needed(load, chosen.messages_a_day)
        lines.append(
            f"| {people:,} | {load.a_second:,.2f} | {load.together_mean:,.0f} / {load.together_p99:,} | "
            f"{takes['cores']:,.1f} | {takes['gb']:,.1f} | {takes['commits']:,.0f} | {takes['writer']:.0%} | "
            f"{takes['million_rows']:,.1f} | {takes['tb']:,.2f} |"
        )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
