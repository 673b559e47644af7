"""Play one step of a key's script on a wire: at its pace, to its end, recorded and billed."""

import asyncio
from dataclasses import dataclass
from typing import Any

from tests.simulator import scenarios
from tests.simulator.keys import Key
from tests.simulator.records import Seen
from tests.simulator.scripts import HangUp, Raw, Refuse, Reply, Silence, Step, split, tokens_of
from tests.simulator.server import Exchange
from tests.simulator.wire import Asked, Refusal, Stream, Usage

SAID = "You said: "
TOGETHER = 256
QUOTED = 80  # characters of what was asked, in a reply that quotes it


@dataclass(slots=True)
class Playing:
    """One request being answered, and all that answering it takes."""

    exchange: Exchange
    provider: str
    key: Key
    asked: Asked
    stream: Stream
    seen: Seen
    headers: dict[str, str]
    prelude: bytes = b""  # said before the stream's own opening
    price: Any = None  # (model, usage) → USD, where the provider says what it charged


def refuse(exchange: Exchange, refusal: Refusal, seen: Seen, name: str) -> None:
    """Answer with a refusal, whole."""
    seen.outcome = f"refused: {name}"
    seen.status = refusal.status
    exchange.answer(refusal.status, refusal.body, refusal.headers)


async def play(playing: Playing, step: Step) -> None:
    """Do what the step says. Cancelled when the client goes away: what it got until then is billed."""
    exchange, seen = playing.exchange, playing.seen
    if isinstance(step, Reply):
        await _reply(playing, step)
    elif isinstance(step, Refuse) and step.inside:
        await _reply(playing, Reply("", then="refuse", refusal=step))
    elif isinstance(step, Refuse):
        refuse(exchange, scenarios.refusal_of(playing.provider, playing.key, step), seen, step.name)
    elif isinstance(step, Raw):
        seen.outcome, seen.status = "answered as scripted", step.status
        body = step.body.encode() if isinstance(step.body, str) else step.body
        exchange.answer(step.status, body, {"date": playing.key.clock.date} | step.headers)
    elif isinstance(step, Silence):
        seen.outcome = "silent"
        await asyncio.Event().wait()
    elif isinstance(step, HangUp):
        seen.outcome = "hung up"
        exchange.cut()


def _usage(playing: Playing, step: Reply, text: str) -> Usage:
    asked = playing.asked
    counted = tokens_of("x" * asked.characters)
    usage = Usage(
        input_tokens=counted if step.input_tokens is None else step.input_tokens,
        output_tokens=tokens_of(text) if step.output_tokens is None else step.output_tokens,
        cached_tokens=step.cached_tokens,
        cost=step.cost,
    )
    if usage.cost is None and playing.price is not None:
        usage.cost = playing.price(asked.model, usage)
    return usage


def _text(playing: Playing, step: Reply) -> tuple[str, str]:
    """What is said and how it ends: cut where the cap on output tokens is smaller."""
    if step.line_bytes:
        return "x" * step.line_bytes, step.ending
    text = SAID + playing.asked.last if step.text is None else step.text
    if step.quotes:
        text = text.replace("{said}", " ".join(playing.asked.last.split())[:QUOTED])
    ending = "tool" if step.calls and step.ending == "stop" else step.ending
    cap = playing.asked.max_output
    if cap and step.output_tokens is None and tokens_of(text) > cap:
        return text[: cap * 4], "length"
    return text, ending


async def _reply(playing: Playing, step: Reply) -> None:
    text, ending = _text(playing, step)
    usage = _usage(playing, step, text)
    if step.wait:
        await asyncio.sleep(step.wait)
    if not playing.asked.stream and not step.then:
        _answer_whole(playing, step, text, usage, ending)
        return
    playing.seen.status = 200
    playing.exchange.begin({"date": playing.key.clock.date} | playing.headers | step.headers)
    said = 0
    try:
        if text or step.refusal is None or step.refusal.inside == "failed":  # an error event may come all alone
            playing.exchange.write(playing.prelude + playing.stream.opening(usage))
        if step.thinking:
            playing.exchange.write(playing.stream.thinking(step.thinking))
        async for pieces in _paced(playing, step, text):
            playing.exchange.write(b"".join(map(playing.stream.text, pieces)))
            said += sum(map(len, pieces))
    except asyncio.CancelledError:
        playing.seen.outcome = "left"
        _bill(playing, usage, said / max(1, len(text)), said=said)
        raise
    # Billed before the last words go out: whoever has them finds the bill written.
    _bill(playing, usage, said / max(1, len(text)) if step.then else 1.0, said=said)
    await _end(playing, step, usage, ending)


async def _paced(playing: Playing, step: Reply, text: str):
    """The pieces of the text, each at its time; many together where there is nothing to wait for."""
    pieces = [text] if step.line_bytes else split(text, step.pieces)
    if not step.delay and step.hold_after is None and step.then != "endless":
        for start in range(0, len(pieces), TOGETHER):
            await playing.exchange.ready()
            yield pieces[start : start + TOGETHER]
        return
    loop = asyncio.get_running_loop()
    start, number = loop.time(), 0
    while number < len(pieces) or step.then == "endless":
        if number:
            await asyncio.sleep(max(0.0, start + number * step.delay - loop.time()) if step.delay else 0)
        await playing.exchange.ready()
        yield (pieces[number % len(pieces)],)
        number += 1
        if number == step.hold_after:
            await playing.key.gate.passed()


async def _end(playing: Playing, step: Reply, usage: Usage, ending: str) -> None:
    exchange, seen, stream = playing.exchange, playing.seen, playing.stream
    seen.outcome = {"": "replied", "cut": "cut", "close": "ended early", "silent": "fell silent"}.get(step.then, "")
    if step.then == "refuse":
        refusal = step.refusal or Refuse("server_error")
        seen.outcome = f"refused in the stream: {refusal.name}"
        made = scenarios.refusal_of(playing.provider, playing.key, refusal)
        exchange.write(stream.refusal(made, refusal.inside or "event"))
    elif step.then == "cut":
        await asyncio.sleep(0.01)  # what was said is on its way before the connection breaks
        exchange.cut()
        return
    elif step.then == "silent":
        await asyncio.Event().wait()
    elif not step.then:
        exchange.write(b"".join(stream.call(call) for call in step.calls) + stream.closing(usage, ending))
    await exchange.ready()
    exchange.end()


def _answer_whole(playing: Playing, step: Reply, text: str, usage: Usage, ending: str) -> None:
    playing.seen.outcome, playing.seen.status = "replied", 200
    body = playing.stream.whole(text, tuple(step.calls), usage, ending)
    _bill(playing, usage, 1.0, said=len(text))
    playing.exchange.answer(200, body, {"date": playing.key.clock.date} | playing.headers | step.headers)


def _bill(playing: Playing, usage: Usage, share: float, *, said: int) -> None:
    """Bill the reply, or the share of it that was said; nothing was said: nothing is billed."""
    playing.seen.said = said
    if not share:
        return
    output = round(usage.output_tokens * share)
    cost = usage.cost
    if cost is not None and share < 1:
        cost = playing.price(playing.asked.model, Usage(usage.input_tokens, output)) if playing.price else cost * share
    playing.seen.billed = Usage(usage.input_tokens, output, usage.cached_tokens, cost)
    playing.key.bill(usage.input_tokens, output, cost, playing.asked.model)
