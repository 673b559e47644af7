"""Conch with one of its safeguards taken out, to show that the soak finds what is lost then. Never part of the product.

`python -m tests.soak.without lease up --port 0` is `manage.py up --port 0` without it.
"""

import os
import sys


def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")
    import django

    django.setup()
    {"lease": _no_lease, "claim": _no_claim, "key": _no_key, "settling": _no_settling}[sys.argv[1]]()
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[2:]])


def _no_lease():
    """Nobody looks at leases: what a dead process ran runs for ever."""
    from conch.turns import recovery

    recovery.lapsed = lambda _now: []


def _no_claim():
    """A lapsed turn is queued again and sent once more, instead of ended."""
    from conch.models import Turn
    from conch.turns import recovery

    def again(turn_id, _now):
        Turn.objects.filter(pk=turn_id, state="running").update(state="queued", owner="", lease_until=None)
        return turn_id

    recovery.interrupt = again


def _no_key():
    """A message sent twice is two messages."""
    from conch.turns import accept, doors

    kept = accept.accept

    def keyless(*given, key=None, **named):
        return kept(*given, **named)

    doors.accept = keyless


def _no_settling():
    """What an interrupted turn held is let go, as if it had cost nothing."""
    from conch import ledger
    from conch.models import Entry
    from conch.turns import recovery

    def let_go(turn, _now):
        for entry in Entry.objects.filter(turn=turn.pk, state="held"):
            ledger.release(entry.pk)
        turn.attempts.filter(ended_at=None).update(ended_at=_now, state="interrupted")

    recovery._settle = let_go


if __name__ == "__main__":
    main()
