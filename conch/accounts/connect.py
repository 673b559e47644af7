"""Connecting an account, and removing it. What an engine takes is read off its attributes, never off its name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db.models import Q

from conch.accounts import addresses, lists, seal
from conch.accounts.room import keep_reading, record_failed_reading
from conch.db import look, step
from conch.engines.base import (
    Access,
    Billing,
    ConnectBy,
    Engine,
    EngineError,
    Identity,
    LimitReached,
    Model,
    Overloaded,
    Rejected,
    SignedOut,
    Throttled,
    Unreachable,
)
from conch.engines.registry import UnknownEngine, engine
from conch.models import Account, Person
from conch.turns import doors

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
TAKEN = ("auto", "wait", "local")


class CantConnect(Exception):
    """The account can't be connected; says in one line why and what to do."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person says of an account to connect; what is left empty is found out or chosen."""

    engine: str
    key: str = field(default="", repr=False)
    slug: str = ""
    label: str = ""
    identity: str = ""
    base_url: str = ""
    model: str = ""
    home: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What the provider said of it. `listed`: its models, as the engine gave them; none where it doesn't list any."""

    identity: Identity
    listed: Sequence[Model]
    model: str


async def connect(person: Person, wish: Wish, now: datetime) -> Account:
    """Connect an account: verify it, keep it, read its room. Raises CantConnect.

    Verifying asks for models or the key's facts, never for a reply. The same sign-in or key again gets the row and the
    slug that it had; while it is connected, the same key is refused, naming the account that has it (R1).
    """
    asked = _engine(wish.engine)
    wish = await _checked(asked, person, wish)
    if wish.key:
        await look(_refuse_known_key, person.pk, wish)
    access = Access(
        slug=wish.slug or wish.engine,
        base_url=wish.base_url,
        key=wish.key,
        home=wish.home,
        public_only=bool(wish.base_url) and not person.is_owner,
    )
    found = await _verified(asked, access, wish)
    account = await step(_keep, person, asked, wish, found, now)
    await _read_room(asked, replace(access, slug=account.slug, identity=account.identity), account, now)
    await doors.asked_again(person.pk)
    return await look(Account.objects.get, pk=account.pk)


async def disconnect(person_id: int, slug: str, now: datetime) -> None:
    """Remove an account: its key is wiped, its slug stays its own, its ledger stays. Raises CantConnect."""
    if not await step(_remove, person_id, slug, now):
        raise CantConnect(f"There is no account {slug!r}.")
    await doors.asked_again(person_id)


async def change_address(account: Account, base_url: str, key: str, now: datetime) -> None:
    """Another base URL, with the key again: a key never goes to a host that it wasn't given for. Raises CantConnect."""
    if not key:
        raise CantConnect("Changing the base URL asks for the key again.")
    asked = _engine(account.engine)
    wish = await _checked(asked, account.person, Wish(account.engine, key=key, base_url=base_url, model=account.model))
    access = Access(account.slug, wish.base_url, key, public_only=bool(wish.base_url) and not account.person.is_owner)
    picked = account.model if wish.base_url == account.base_url else ""
    found = await _verified(asked, access, wish, picked)
    await step(_readdress, account.pk, wish, found, now)
    await _read_room(asked, access, account, now)
    await doors.asked_again(account.person_id)


def _engine(engine_id: str) -> Engine:
    try:
        asked = engine(engine_id)
    except UnknownEngine as error:
        raise CantConnect(f"{str(error)[0].upper()}{str(error)[1:]}.") from error
    except (ImportError, AttributeError) as error:
        raise CantConnect(f"The engine {engine_id!r} can’t be loaded: {error}.") from error
    if asked.billing is Billing.LOCAL:
        raise CantConnect("The model on this computer is always there, as `local`; there is nothing to connect.")
    return asked


async def _checked(asked: Engine, person: Person, wish: Wish) -> Wish:
    """The wish with its address and home as they are kept. Raises CantConnect."""
    _check_words(asked, person, wish)
    if wish.base_url:
        try:
            base_url = await addresses.checked(wish.base_url, owner=person.is_owner)
        except addresses.BadAddress as error:
            raise CantConnect(str(error)) from error
        wish = replace(wish, base_url="" if base_url == asked.official_base_url.rstrip("/") else base_url)
    return replace(wish, home=_folder(wish.home)) if wish.home else wish


def _check_words(asked: Engine, person: Person, wish: Wish) -> None:
    """What can be told without asking anybody. Raises CantConnect."""
    if asked.connect_by is ConnectBy.SIGN_IN:
        if wish.key:
            raise CantConnect(f"{asked.label} takes a sign-in, not a key.")
        if not person.is_owner:
            raise CantConnect(f"Only the owner of this machine can connect {asked.label}: it uses a sign-in kept here.")
    elif not wish.key:
        raise CantConnect(f"{asked.label} needs its key.")
    elif not wish.key.isascii() or not wish.key.isprintable() or " " in wish.key:
        raise CantConnect("This isn’t a key: it has spaces or characters that no key has.")
    if wish.slug and (not SLUG.fullmatch(wish.slug) or wish.slug in TAKEN):
        raise CantConnect(f"{wish.slug!r} can’t be a slug: small letters, digits and dashes, and none of {TAKEN}.")


def _folder(home: str) -> str:
    folder = Path(home).expanduser().absolute()
    if not folder.is_dir():
        raise CantConnect(f"There is no folder {folder}.")
    return str(folder)


async def _verified(asked: Engine, access: Access, wish: Wish, picked: str = "") -> Found:
    """Whose it is and what it can answer with, asked of the provider. Raises CantConnect.

    `picked`: the model that the account has already; it stays, listed or not.
    """
    try:
        identity = await asked.identify(access)
        listed = await asked.models(access)
    except EngineError as error:
        raise CantConnect(_why(asked, access, error)) from error
    ids = [model.id for model in listed]
    if wish.model and ids and wish.model not in {*ids, picked}:
        some = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise CantConnect(f"{asked.label} has no model {wish.model!r}; it has {some}.")
    model = wish.model or preferred(asked.preferred_models, ids)
    if not model:
        raise CantConnect(f"{asked.label} lists no models. Name one (--model).")
    return Found(identity, listed, model)


def preferred(prefixes: Sequence[str], ids: Sequence[str]) -> str:
    """The default model (R12): the first listed of the engine's preferred ones, best first, else the first listed."""
    for prefix in prefixes:
        for exact in (True, False):
            for model in ids:
                if model == prefix or (not exact and model.startswith(prefix)):
                    return model
    return ids[0] if ids else ""


def _why(asked: Engine, access: Access, error: EngineError) -> str:
    """What went wrong in one line. Of an address of one's own the answer isn't quoted: it may be an inside one."""
    if isinstance(error, SignedOut):
        return _signed_out(asked, error)
    if isinstance(error, Rejected) and error.reason == "paying":
        return f"{error.said}. Nothing was connected: a plan’s account pays by the plan."
    if isinstance(error, Unreachable):
        return f"{asked.label} can’t be reached. Nothing was connected; try again."
    if isinstance(error, Throttled | Overloaded | LimitReached):
        return f"{asked.label} asks for a pause. Nothing was connected; try again in a while."
    said = "" if access.public_only else f" ({' '.join(error.said.split())[:200]})" if error.said else ""
    return f"{asked.label} answered something else than expected{said}. Is the base URL right?"


def _signed_out(asked: Engine, error: SignedOut) -> str:
    """What is missing: the program, with how to install or renew it, the sign-in, or another key."""
    if error.missing_program:
        return error.said or f"The program that signs in to {asked.label} isn’t installed."
    if asked.connect_by is not ConnectBy.SIGN_IN:
        return f"{asked.label} doesn’t accept this key."
    kind = getattr(asked, "program", None)
    command = f" ({kind.sign_in})" if kind is not None else ""
    return f"{asked.label} is signed out. Sign in with its own program{command}, then connect it again."


async def _read_room(asked: Engine, access: Access, account: Account, now: datetime) -> None:
    try:
        room = await asked.read_room(access)
    except EngineError:
        await step(record_failed_reading, account.pk, now)
        return
    if room is not None:
        await step(keep_reading, account.pk, room, now)


# Steps: database work only.


def _refuse_known_key(person_id: int, wish: Wish) -> None:
    known = _same_key(person_id, wish).filter(removed_at=None).first()
    if known is not None:
        raise CantConnect(f"This key is connected already, as {known.slug} ({known.label}).")


def _same_key(person_id: int, wish: Wish) -> Any:
    return Account.objects.filter(
        person_id=person_id,
        engine=wish.engine,
        base_url=wish.base_url,
        key_fingerprint__in=seal.fingerprints(wish.key),
    )


def _same(person_id: int, wish: Wish, identity: str) -> Account | None:
    """The row of this very key or sign-in, connected or removed."""
    if wish.key:
        of_key: Account | None = _same_key(person_id, wish).order_by("removed_at").first()
        return of_key
    mine = Account.objects.filter(person_id=person_id, engine=wish.engine)
    of_it = mine.filter(identity=identity) if identity else mine.filter(identity="", home=wish.home)
    return of_it.order_by("-removed_at").filter(Q(base_url=wish.base_url) | Q(removed_at=None)).first()


def _keep(person: Person, asked: Engine, wish: Wish, found: Found, now: datetime) -> Account:
    """Write the account down: its old row where it has one, else a new one. Raises CantConnect."""
    if wish.key:
        _refuse_known_key(person.pk, wish)
    facts = _facts(asked, wish, found) | lists.as_kept(found.listed, now)
    known = _same(person.pk, wish, facts["identity"])
    if known is None:
        slug = _free_slug(person.pk, wish)
        return Account.objects.create(
            person=person, slug=slug, engine=wish.engine, label=wish.label or asked.label, connected_at=now, **facts
        )
    if wish.slug and wish.slug != known.slug:
        raise CantConnect(f"This one has the slug {known.slug} already; a slug stays with its account.")
    if known.removed_at is not None:
        facts["connected_at"] = now
    elif known.model and not wish.model:
        facts["model"] = known.model
    if wish.label:
        facts["label"] = wish.label
    Account.objects.filter(pk=known.pk).update(state=Account.State.OK, removed_at=None, **facts)
    return Account.objects.get(pk=known.pk)


def _facts(asked: Engine, wish: Wish, found: Found) -> dict[str, Any]:
    """What is kept of it. What the person says stands for the identity only of a sign-in that has no other."""
    said = wish.identity.strip()[:254]
    identity = found.identity.identity
    if not identity and asked.connect_by is ConnectBy.SIGN_IN:
        identity = said.lower()
    return {
        "identity": identity[:400],
        "whose": (found.identity.whose or said)[:254],
        "plan": found.identity.plan[:60],
        "organization": found.identity.organization[:120],
        "key_hint": wish.key[-4:] if len(wish.key) >= 12 else "",
        "key_fingerprint": seal.fingerprint(wish.key) if wish.key else "",
        "sealed_key": seal.seal(wish.key),
        "base_url": wish.base_url,
        "home": wish.home,
        "model": found.model,
    }


def _free_slug(person_id: int, wish: Wish) -> str:
    """The slug asked for, else the engine's id, else that with a number; never one that another account had."""
    used = set(Account.objects.filter(person_id=person_id).values_list("slug", flat=True)) | set(TAKEN)
    if wish.slug:
        if wish.slug in used:
            raise CantConnect(f"The slug {wish.slug} belongs to another account. Choose another one.")
        return wish.slug
    if wish.engine not in used:
        return wish.engine
    return next(slug for slug in (f"{wish.engine}-{number}" for number in range(2, 10_000)) if slug not in used)


def _remove(person_id: int, slug: str, now: datetime) -> bool:
    there = Account.objects.filter(person_id=person_id, slug=slug, removed_at=None)
    return bool(there.update(removed_at=now, sealed_key=""))


def _readdress(account_id: int, wish: Wish, found: Found, now: datetime) -> None:
    account = Account.objects.filter(pk=account_id)
    account.update(
        base_url=wish.base_url,
        sealed_key=seal.seal(wish.key),
        key_fingerprint=seal.fingerprint(wish.key),
        key_hint=wish.key[-4:] if len(wish.key) >= 12 else "",
        model=found.model,
        state=Account.State.OK,
        **lists.as_kept(found.listed, now),
    )
