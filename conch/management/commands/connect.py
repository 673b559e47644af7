"""`manage.py connect`: connect an account and verify it."""

import asyncio
import json
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from conch.accounts.connect import CantConnect, Wish, connect
from conch.accounts.people import NoSuchPerson, person_named
from conch.engines.base import Billing, ConnectBy
from conch.engines.registry import UnknownEngine, engine, paths
from conch.management.base import Command as Base
from conch.management.base import add_user
from conch.models import Account


class Command(Base):
    """Connect one."""

    help = "Connect an account, verify it, and print it as one JSON object on one line, the last of stdout."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """A key is never an argument: others on this machine can read those."""
        parser.add_argument("engine", metavar="ENGINE", help=f"one of {', '.join(paths())}")
        add_user(parser)
        parser.add_argument("--slug", metavar="S", default="", help="what it is called in choices and in the API")
        parser.add_argument("--label", metavar="L", default="", help="what people read")
        parser.add_argument(
            "--identity", metavar="EMAIL", default="", help="whose it is, where it doesn't say so itself"
        )
        parser.add_argument("--base-url", metavar="URL", default="", help="as the provider's official client takes it")
        parser.add_argument("--model", metavar="M", default="", help="its default model")
        parser.add_argument("--home", metavar="DIR", default="", help="the folder that the provider's program keeps")
        key = parser.add_mutually_exclusive_group()
        key.add_argument("--key-env", metavar="VAR", help="the environment variable that holds the key")
        key.add_argument("--key-stdin", action="store_true", help="read the key from standard input")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Connect it and print it."""
        key = _key(options)
        _check_usage(options["engine"], key=bool(key))
        wish = Wish(
            engine=options["engine"],
            key=key,
            slug=options["slug"],
            label=options["label"].strip()[:100],
            identity=options["identity"],
            base_url=options["base_url"],
            model=options["model"],
            home=options["home"],
        )
        try:
            person = person_named(options["user"])
            account = asyncio.run(_connected(person, wish))
        except (CantConnect, NoSuchPerson) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(_shown(account)))


async def _connected(person: Any, wish: Wish) -> Account:
    try:
        return await connect(person, wish, timezone.now())
    finally:
        await engine(wish.engine).close()


def _key(options: dict[str, Any]) -> str:
    if options["key_stdin"]:
        return sys.stdin.readline().strip()
    name = options["key_env"]
    if not name:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise CommandError(f"The environment variable {name} is empty or not set.")
    return key


def _check_usage(engine_id: str, *, key: bool) -> None:
    """Raises CommandError with 2: the call itself is wrong."""
    try:
        asked = engine(engine_id)
    except UnknownEngine as error:
        raise CommandError(str(error), returncode=2) from error
    except (ImportError, AttributeError) as error:
        raise CommandError(f"The engine {engine_id!r} can't be loaded: {error}.") from error
    if asked.connect_by is ConnectBy.KEY and asked.billing is not Billing.LOCAL and not key:
        raise CommandError(f"{engine_id} needs its key: by --key-env VAR or --key-stdin.", returncode=2)
    if asked.connect_by is ConnectBy.SIGN_IN and key:
        raise CommandError(f"{engine_id} takes a sign-in, not a key.", returncode=2)


def _shown(account: Account) -> dict[str, Any]:
    return {
        "slug": account.slug,
        "engine": account.engine,
        "label": account.label,
        "identity": account.whose or account.identity or None,
        "model": account.model,
        "state": account.state,
    }
