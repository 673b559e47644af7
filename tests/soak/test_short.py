"""The soak in short: real processes, killed and hurt at random moments under load, and nothing is lost."""

import asyncio

from tests.soak.run import Soak

KILLS, OTHERS = 4, 2


def test_whatever_ends_a_process_every_message_is_there_once_with_one_end_and_the_ledger_is_the_bill(tmp_path):
    """Crash safety (design.md 4; R16, R26, R28, R35): `kill -9`, SIGTERM, a full disk, a locked database."""
    soak = Soak(tmp_path, seed=7)
    try:
        verdict = asyncio.run(soak.run(ending=KILLS, passing=OTHERS, senders=3, most_seconds=300))
    finally:
        soak.end()

    assert verdict.found == [], f"{verdict}\n" + "\n".join(verdict.found)
    assert verdict.injected.total() >= KILLS
    assert verdict.turns > KILLS
    assert "Traceback" not in soak.place.logged()
