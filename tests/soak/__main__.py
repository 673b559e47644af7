"""`python -m tests.soak`: faults at random for up to ten minutes, then the verdict; exit 1 where anything was lost."""

import argparse
import asyncio
import re
import sys
import tempfile
from collections import Counter

from tests.soak.run import Soak


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="faults that end a process")
    parser.add_argument("--others", type=int, default=30, help="faults that pass")
    parser.add_argument("--seconds", type=float, default=480, help="no further fault after so many")
    parser.add_argument("--senders", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="", choices=["", "lease", "claim", "key", "settling"])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="conch-soak-") as folder:
        soak = Soak(folder, without=chosen.without, seed=chosen.seed)
        try:
            verdict = asyncio.run(
                soak.run(
                    ending=chosen.kills, passing=chosen.others, senders=chosen.senders, most_seconds=chosen.seconds
                )
            )
            said = Counter(re.findall(r"^(?:[\w.]+Error|[\w.]+Exception)\b.*$", soak.place.logged(), re.MULTILINE))
        finally:
            soak.end()
    told = [str(verdict), f"Errors in the log: {dict(said)}", *(f"- {one}" for one in verdict.found[:40])]
    sys.stdout.write("\n".join(told) + "\n")
    return 1 if verdict.found else 0


if __name__ == "__main__":
    sys.exit(main())
