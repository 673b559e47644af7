"""Refusals of a hostile provider that are long, or packed so that they become long: little is read of them."""

import gzip
import zlib

import pytest

from conch.engines.base import Access, EngineError, Message, Rejected, Request
from conch.engines.openai import OpenAI
from conch.engines.refusals import Answer, Speaks, refusal
from conch.engines.refusals_told import LONGEST, tell
from conch.engines.wire_transport import LONGEST_REFUSAL
from tests.conftest import NOW

SAID = b'{"error": {"message": "No such tool.", "type": "invalid_request_error", "code": null, "param": null}}'
BOMB = b" " * 50_000_000


async def refused(simulator, body, **headers):
    """What comes of asking for a reply, and the text that was made of the body."""
    simulator.key("sk-a").answers(400, body, {"content-type": "application/json", **headers})
    engine = OpenAI()
    try:
        access = Access("openai", base_url=simulator.base_urls["openai"], key="sk-a")
        reply = engine.reply(access, Request("gpt-5.5", (Message("user", "hi"),)))
        with pytest.raises(EngineError) as found:
            await anext(reply)
    finally:
        await engine.close()
    return found.value, found.value.__cause__.response.text


@pytest.mark.parametrize(
    ("packed", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("x-gzip", gzip.compress)]
)
async def test_a_small_body_that_unpacks_to_fifty_megabytes_is_read_no_further_than_a_refusal_goes(
    simulator, packed, pack
):
    error, text = await refused(simulator, pack(BOMB), **{"content-encoding": packed})

    assert isinstance(error, Rejected)
    assert len(text) <= LONGEST_REFUSAL


async def test_a_body_of_eight_megabytes_is_read_no_further_either(simulator):
    error, text = await refused(simulator, b"x" * 8_000_000)

    assert isinstance(error, Rejected)
    assert len(text) <= LONGEST_REFUSAL


@pytest.mark.parametrize("packed", ["gzip", "br", "identity, gzip", "nonsense"])
async def test_what_is_packed_otherwise_than_it_says_is_a_refusal_all_the_same(simulator, packed):
    error, _ = await refused(simulator, SAID, **{"content-encoding": packed})

    assert isinstance(error, EngineError)


async def test_a_packed_refusal_is_understood(simulator):
    error, _ = await refused(simulator, gzip.compress(SAID), **{"content-encoding": "gzip"})

    assert error.said == "No such tool."


def test_a_message_of_seven_megabytes_inside_a_stream_is_looked_through_no_further_than_one_goes():
    told = {"error": {"type": "invalid_request_error", "message": "try again in " * 600_000}}

    answer = Answer(200, {}, told, in_stream=True)

    assert len(tell(answer).message) == LONGEST
    assert isinstance(refusal(Speaks.COMPATIBLE, answer, NOW), Rejected)
