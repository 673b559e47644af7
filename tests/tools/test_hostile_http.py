"""What an address may answer, over real connections: bounded, told in words, nothing followed, nothing run twice."""

import pytest

from conch import tools
from conch.db import look
from tests.tools.servers.raw_http import raw
from tests.tools.site import offered_by, server_of

pytestmark = pytest.mark.usefixtures("_ended")
UNKNOWN = "It isn’t known whether this call did anything."


async def called(owner, url, seconds=20.0):
    server = await look(server_of, owner, "Raw", url=url, secrets={"X-Key": "for-it-alone"})
    return await tools.call(owner.pk, offered_by(server, "run"), {}, seconds=seconds)


@pytest.mark.parametrize("how", ["json", "sse"])
async def test_lone_surrogates_and_nul_are_taken_out_however_it_answers(owner, how):
    async with raw(how) as (url, asked):
        outcome = await called(owner, url)

    assert (outcome.text, outcome.failed) == ("a\ufffdz!", False)
    assert {headers["x-key"] for _, _, headers in asked} == {"for-it-alone"}
    assert {method for method, _, _ in asked} <= {"POST", "DELETE"}


@pytest.mark.parametrize("how", ["endless-json", "endless-sse", "chatter", "bomb"])
async def test_more_than_conch_reads_is_not_read(owner, how):
    """A body without end, an event without end, chatter without end, and one that would grow when it is unpacked."""
    async with raw(how) as (url, asked):
        outcome = await called(owner, url)

    assert outcome.failed
    assert outcome.text.endswith(UNKNOWN)
    assert "within 20 seconds" not in outcome.text
    assert len(calls_in(asked)) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("page", "It answered with an error: Unexpected content type: text/html."),
        ("broken", f"It answers with an error of its own (503). {UNKNOWN}"),
        ("refuses", "It doesn’t accept who asks (403). Give it the header that it needs. This call didn’t run."),
        ("not-found", "It answered with an error: Not Found."),
    ],
)
async def test_what_is_no_answer_is_said_and_not_asked_again(owner, how, said):
    async with raw(how) as (url, asked):
        outcome = await called(owner, url)

    assert (outcome.text, outcome.failed) == (said, True)
    assert len(calls_in(asked)) == 1


async def test_an_answer_that_breaks_off_again_and_again_is_taken_up_so_many_times(owner):
    """It asks to be called again at once, each time: the call itself goes out once."""
    async with raw("breaks-off") as (url, asked):
        outcome = await called(owner, url, seconds=15)

    assert outcome.failed
    assert outcome.text.endswith(UNKNOWN)
    assert len(calls_in(asked)) == 1
    assert 1 < sum(method == "GET" for method, _, _ in asked) <= 20


def calls_in(asked):
    """Posts with a call in them: of a session's opening and its list are four others, its goodbye none."""
    posts = [headers for method, _, headers in asked if method == "POST"]
    return posts[4:]
