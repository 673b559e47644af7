"""What `doctor` looks at: what is set up, what is reachable, what doesn't add up, and what to do about it."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.core.checks import ERROR, INFO, run_checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from conch.accounts.access import access_for
from conch.accounts.seal import CantUnseal
from conch.copy.tools import why
from conch.db import look
from conch.engines.base import Access, EngineError, SignedOut, Unreachable
from conch.engines.registry import UnknownEngine, engine
from conch.ledger import Difference, check
from conch.models import Account, Entry, Person, ToolServer, Turn
from conch.money import from_nano, plain
from conch.tools.launches import launch_of
from conch.tools.listing import listing_of
from conch.tools.trouble import ToolTrouble

SCARCE = 500 * 2**20  # bytes of disk left
PATIENCE = 20.0  # seconds for one account
OLD = timedelta(hours=1)


class Kind(StrEnum):
    """How a finding stands."""

    WELL = "ok"
    NOTE = "note"
    WRONG = "WRONG"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `help` is what to do."""

    kind: Kind
    said: str
    help: str = ""


def of_the_machine() -> Iterator[Finding]:
    """The folder, its disk, the database and its tables, the model on this computer, the engines."""
    for message in run_checks(tags=["conch"]):
        kind = Kind.WRONG if message.level >= ERROR else Kind.NOTE
        if message.level != INFO or message.msg:
            yield Finding(kind, message.msg, message.hint or "")
    free = shutil.disk_usage(settings.CONCH_DATA).free
    if free < SCARCE:
        yield Finding(Kind.WRONG, f"Only {free // 2**20} MiB are free where CONCH_DATA is.", "Make room.")
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        yield Finding(
            Kind.WRONG,
            f"The database lacks {len(missing)} migrations of this version.",
            "Run manage.py migrate, or start with manage.py up.",
        )
    else:
        yield Finding(Kind.WELL, f"The database ({connection.vendor}) answers and has this version's tables.")


def of_the_people() -> Iterator[Finding]:
    """Whether there is an owner, and who else."""
    people = Person.objects.filter(is_active=True).count()
    if Person.objects.filter(is_owner=True).exists():
        yield Finding(Kind.WELL, f"{people} {'person' if people == 1 else 'people'}, the owner among them.")
    else:
        yield Finding(Kind.NOTE, "There is no owner yet.", "manage.py up makes one and prints a sign-in link.")


def of_the_ledger(now: datetime) -> Iterator[Finding]:
    """Whether totals agree with the entries (R28), and holds or turns that nobody finishes."""
    differences = check()
    for found in differences:
        yield Finding(Kind.WRONG, _difference(found), "manage.py doctor --recount sets it to what the entries say.")
    if not differences:
        yield Finding(Kind.WELL, "The ledger adds up.")
    stale = Entry.objects.filter(state=Entry.State.HELD, at__lt=now - OLD).count()
    if stale:
        yield Finding(Kind.NOTE, f"{stale} holds are over an hour old.", "The worker settles them; is one running?")
    left = Turn.objects.filter(state=Turn.State.RUNNING, lease_until__lt=now - timedelta(minutes=1)).count()
    if left:
        yield Finding(Kind.NOTE, f"{left} turns were left by a process that is gone.", "Start manage.py up or worker.")


def _difference(found: Difference) -> str:
    spent, held, unpriced = found.kept
    really_spent, really_held, really_unpriced = found.counted
    what = f"chat {found.conversation}" if found.conversation is not None else f"{found.month} {found.account}".strip()
    return (
        f"The total of {what} (person {found.person_id}) says ${plain(from_nano(spent))} spent, "
        f"${plain(from_nano(held))} held, {unpriced} unpriced; the entries say ${plain(from_nano(really_spent))}, "
        f"${plain(from_nano(really_held))}, {really_unpriced}."
    )


async def of_the_accounts() -> AsyncIterator[Finding]:
    """Every connected account, asked whose it is: never for a reply."""
    accounts = await look(lambda: list(Account.objects.filter(removed_at=None).select_related("person")))
    for engine_id in {account.engine for account in accounts}:
        # Loading a client takes seconds on a small machine: not off the time in which another one is to connect.
        with contextlib.suppress(UnknownEngine, ImportError, AttributeError):
            engine(engine_id).prepare()
    for finding in await asyncio.gather(*(_of(account) for account in accounts)):
        yield finding
    if not accounts:
        yield Finding(Kind.NOTE, "No account is connected.", "manage.py connect, or Settings, Providers.")


async def _of(account: Account) -> Finding:
    who = f"{account.slug} ({account.label}) of {account.person.username}"
    try:
        asked, access = engine(account.engine), access_for(account)
        async with asyncio.timeout(PATIENCE):
            await asked.identify(access)
    except CantUnseal as error:
        return Finding(Kind.WRONG, f"{who}: its key can't be opened.", str(error))
    except (UnknownEngine, ImportError, AttributeError) as error:
        return Finding(Kind.WRONG, f"{who}: its engine isn't installed ({error}).", "Install it, or disconnect it.")
    except SignedOut:
        return Finding(Kind.NOTE, f"{who} is signed out, or its key isn't accepted.", "Sign in or connect it again.")
    except (Unreachable, TimeoutError):
        return Finding(
            Kind.NOTE, f"{who} can't be reached{_where(access)}.", "Is there a network? Is its base URL right?"
        )
    except EngineError as error:
        return Finding(Kind.NOTE, f"{who} answered something else than expected: {error.said[:200]}")
    return Finding(Kind.WELL, f"{who} answers.")


async def of_the_tools() -> AsyncIterator[Finding]:
    """Every connected tool server, asked for its tools; none is called."""
    rows = ToolServer.objects.filter(removed_at=None).select_related("person").order_by("pk")
    for finding in await asyncio.gather(*(_of_server(server) for server in await look(lambda: list(rows)))):
        yield finding


async def _of_server(server: ToolServer) -> Finding:
    who = f"The tool server {server.slug} ({server.name}) of {server.person.username}"
    try:
        found = await listing_of(launch_of(server))
    except ToolTrouble as trouble:
        kind = Kind.WRONG if trouble.code == "sealed" else Kind.NOTE
        return Finding(kind, f"{who} can't be used: {why(trouble.as_kept(), beside_it=True)}", "Settings, Tools.")
    return Finding(Kind.WELL, f"{who} answers, with {len(found.tools)} tools.")


def _where(access: Access) -> str:
    return f" at {access.base_url}" if access.base_url else ""
