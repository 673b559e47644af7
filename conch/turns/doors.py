"""What people and programs can do with chats and turns; the API and the pages call nothing else here.

Each raises NotHere for what isn't theirs, NotNow for what can't be done as things are, TooMuch for input over a limit.
"""

import asyncio
from decimal import Decimal
from typing import Any

from conch.db import look, step
from conch.engines.base import Image
from conch.models import Turn
from conch.turns import actions, calls, editing, waiting, worker
from conch.turns.accept import accept, checked
from conch.turns.clock import SYSTEM, Clock
from conch.turns.run import start, stop_here


async def send(
    person_id: int,
    conversation_id: int,
    text: str,
    *,
    images: tuple[Image, ...] = (),
    key: str | None = None,
    unattended: bool = False,
    clock: Clock = SYSTEM,
) -> Turn:
    """Take a message in and begin to answer it. The same key again: the same turn, nothing is sent again."""
    turn_id = await post(person_id, conversation_id, text, images=images, key=key, unattended=unattended, clock=clock)
    return await _turn(person_id, turn_id)


async def post(
    person_id: int,
    conversation_id: int,
    text: str,
    *,
    images: tuple[Image, ...] = (),
    key: str | None = None,
    unattended: bool = False,
    clock: Clock = SYSTEM,
) -> int:
    """The same for who needs no more than the turn's id."""
    text = checked(text, images)
    accepted = await step(
        accept, person_id, conversation_id, text, clock.now(), images=images, key=key, unattended=unattended
    )
    if accepted.created:
        start(accepted.turn_id, clock=clock)
        await asyncio.sleep(0)  # its route is asked while the answer to this call is made ready
    return accepted.turn_id


async def _turn(person_id: int, turn_id: int) -> Turn:
    from conch.turns.accept import turn_of

    return await look(turn_of, person_id, turn_id)


async def resend(person_id: int, turn_id: int, text: str, *, key: str | None = None, clock: Clock = SYSTEM) -> Turn:
    """*Edit and resend*: the new turn that stands in the place of that one, and of what came after it."""
    resent = await step(editing.resend, person_id, turn_id, text, clock.now(), key=key)
    for running in resent.running:
        stop_here(running)
    if resent.accepted.created:
        start(resent.accepted.turn_id, clock=clock)
    return await _turn(person_id, resent.accepted.turn_id)


async def stop(person_id: int, turn_id: int, clock: Clock = SYSTEM) -> Turn:
    """Stop the turn, in whatever state; one that has ended stays as it is."""
    following = await step(actions.stop, person_id, turn_id, clock.now())
    stop_here(turn_id)
    if following is not None:
        start(following, clock=clock)
    return await _turn(person_id, turn_id)


async def cancel(person_id: int, turn_id: int, clock: Clock = SYSTEM) -> Turn:
    """Take back a message that has not gone out: *Cancel*."""
    return await stop(person_id, turn_id, clock)


async def retry(person_id: int, turn_id: int, clock: Clock = SYSTEM) -> Turn:
    """Answer the turn anew, or ask the route of a waiting or capped one again. Pressed again: the same run."""
    waits = await step(actions.retry, person_id, turn_id, clock.now())
    start(turn_id, waking=waits, clock=clock)
    return await _turn(person_id, turn_id)


async def answer_with(person_id: int, turn_id: int, account: str, clock: Clock = SYSTEM) -> Turn:
    """That account answers this message now; for a key, a yes for this message alone (R27)."""
    if await step(actions.answer_with, person_id, turn_id, account, clock.now()):
        start(turn_id, clock=clock)
    return await _turn(person_id, turn_id)


async def allow(person_id: int, turn_id: int, call_id: int, word: str, clock: Clock = SYSTEM) -> Turn:
    """The person's word on a call that asks: "once", "always" or "no"; the turn goes on once every call has one."""
    if await step(calls.answer, person_id, turn_id, call_id, word, clock.now()):
        start(turn_id, waking=True, clock=clock)
    return await _turn(person_id, turn_id)


async def send_now(person_id: int, turn_id: int, clock: Clock = SYSTEM) -> Turn:
    """*Send now instead* (R35): the one before it is stopped, and this one goes."""
    for before in await look(actions.before, person_id, turn_id):
        await stop(person_id, before, clock)
    start(turn_id, clock=clock)
    return await _turn(person_id, turn_id)


async def switch_back(person_id: int, conversation_id: int, clock: Clock = SYSTEM) -> dict[str, Any]:
    """Switch back (R23) → {account, model, until}."""
    return await step(actions.switch_back, person_id, conversation_id, clock.now())


async def carry_on(person_id: int, conversation_id: int, clock: Clock = SYSTEM) -> None:
    """*Carry on*: end Switch back; a waiting turn asks again, first the one that carried it on (R23)."""
    waiting_turn, first = await step(actions.carry_on, person_id, conversation_id)
    if waiting_turn is not None:
        start(waiting_turn, waking=True, carry_on=first, clock=clock)


async def choose(person_id: int, conversation_id: int, account: str, model: str = "", clock: Clock = SYSTEM) -> None:
    """The chat's account and model from now on; ends Switch back, and a waiting turn asks its route again."""
    for turn_id in await step(actions.choose, person_id, conversation_id, account, model, clock.now()):
        start(turn_id, waking=True, clock=clock)


async def raise_cap(person_id: int, conversation_id: int, cap: Decimal | None, clock: Clock = SYSTEM) -> None:
    """The chat's own cap in USD, or none; a turn that it held asks its route again (R18)."""
    for turn_id in await step(actions.set_cap, person_id, conversation_id, cap):
        start(turn_id, waking=True, clock=clock)


async def asked_again(person_id: int, clock: Clock = SYSTEM) -> None:
    """Something has changed (preferences, budget, accounts, a reading): waiting turns ask their route at once (R16)."""
    if await step(waiting.ask_again, person_id, clock.now()):
        worker.wake()
