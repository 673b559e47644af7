"""What a plan's program may do instead of answering, and what its provider may: the turn ends, with what it means.

The real programs throughout. Where one can't be made to misbehave, a wrapper stands before it that does: it hangs,
prints rubbish, or dies.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from conch.engines import claude_code, cli_process, codex_catalog, codex_cli_server
from conch.engines.base import EngineFault, LimitReached, Overloaded, SignedOut, Text, Throttled
from tests.engines.provider import heard, heard_until_refused, text_of
from tests.engines.test_programs_process import gone

ROOT = Path(__file__).resolve().parent.parent.parent
# A few lines before the real program. Its version is always its own.
BEFORE = """#!{python} -I
import os, subprocess, sys, time
if "--version" in sys.argv or "auth" in sys.argv:
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
{deed}
"""
DEEDS = {
    "hangs": "time.sleep(600)",
    "rubbish": "while True: print('rubbish, and rubbish again', flush=True)",
    "endless line": "while True: sys.stdout.write('x' * 65536)",
    "dies": "sys.exit('Killed: out of memory')",
    # The real one, with what isn't its own between its lines.
    "chatters": (
        "real = subprocess.Popen([{real!r}, *sys.argv[1:]], stdout=subprocess.PIPE)\n"
        "for line in real.stdout:\n"
        "    sys.stdout.buffer.write(b'Update available!\\n[]\\n\\xff\\n' + line)\n"
        "    sys.stdout.flush()"
    ),
}


@pytest.fixture
def stands_before(plan, tmp_path, monkeypatch):
    """Put a wrapper in the place of the plan's program."""

    def put(deed):
        variable, real = plan.engine.program.variable, os.environ[plan.engine.program.variable]
        wrapper = tmp_path / plan.engine.program.name
        wrapper.write_text(BEFORE.format(python=sys.executable, real=real, deed=DEEDS[deed].format(real=real)))
        wrapper.chmod(0o755)
        monkeypatch.setenv(variable, str(wrapper))

    return put


async def nothing_left(plan):
    """Its processes end, and the engine holds none."""
    assert plan.engine._open == set()
    with cli_process._guard:
        left = [popen.pid for popen in cli_process._living]
    assert all([await asyncio.to_thread(gone, pid) for pid in left])


@pytest.mark.parametrize("deed", ["hangs", "rubbish", "endless line", "dies"])
async def test_a_program_that_does_not_even_begin_took_nothing_and_leaves_nothing(
    plan, stands_before, monkeypatch, deed
):
    stands_before(deed)
    monkeypatch.setattr(claude_code, "STARTED_WITHIN", 1.0)
    monkeypatch.setattr(codex_cli_server, "ANSWERED_WITHIN", 1.0)
    monkeypatch.setattr(codex_catalog, "ASKED_WITHIN", 1.0)
    monkeypatch.setattr(cli_process.CliProcess, "longest_line", 1_000_000)
    said, error = await heard_until_refused(plan.reply())
    assert said == []
    assert isinstance(error, EngineFault)
    if deed == "dies":
        assert error.said == "Killed: out of memory"
        assert not error.accepted
    assert plan.asked == []
    await nothing_left(plan)


async def test_a_program_that_says_other_things_between_its_lines_answers_all_the_same(plan, stands_before):
    stands_before("chatters")
    plan.key.replies("Good morning.")
    assert text_of(await plan.turn()) == "Good morning."


async def test_a_program_that_hangs_in_mid_answer_is_given_up_with_what_arrived(plan, monkeypatch):
    """R30: cut; the process, though stopped, is ended."""
    plan.key.replies("one two three", pieces=3, hold_after=1)
    reply = plan.reply()
    while not isinstance(first := await anext(reply), Text):
        pass
    (process,) = plan.engine._open
    os.killpg(process.popen.pid, signal.SIGSTOP)
    monkeypatch.setattr(cli_process, "SILENCE", 0.3)
    said, error = await heard_until_refused(reply)
    assert text_of([first, *said]).strip() == "one"
    assert isinstance(error, EngineFault)
    assert error.cut
    assert error.accepted
    await process.ended()
    await nothing_left(plan)


async def test_a_provider_that_falls_silent_is_given_up(plan, monkeypatch):
    plan.key.falls_silent("one two", pieces=2)
    reply, said = plan.reply(), []
    while text_of(said) != "one two":
        said.append(await anext(reply))
    monkeypatch.setattr(cli_process, "SILENCE", 0.3)
    _, error = await heard_until_refused(reply)
    assert isinstance(error, EngineFault)
    assert error.cut
    assert len(plan.asked) == 1


async def test_a_connection_that_is_broken_off_is_a_cut_and_not_asked_again(plan):
    """R30, R34: what arrived is kept."""
    plan.key.cuts("one two three", pieces=3, hold_after=2)
    reply, said = plan.reply(), []
    while len(text_of(said).split()) < 2:
        said.append(await anext(reply))
    plan.key.release()
    _, error = await heard_until_refused(reply)
    assert isinstance(error, EngineFault)
    assert error.cut
    assert error.accepted
    assert len(plan.asked) == 1


async def test_a_limit_without_a_reset_has_none(plan):
    """R8: fifteen minutes, by the rule, and never shown as a reset."""
    plan.key.refuses(plan.limit, resets_in=None)
    _, error = await heard_until_refused(plan.reply())
    assert isinstance(error, LimitReached)
    assert (error.until, error.accepted) == (None, False)


@pytest.mark.parametrize(("scenario", "kind"), [("overloaded", Overloaded), ("server_error", EngineFault)])
async def test_a_provider_that_is_broken_is_no_limit(plan, scenario, kind):
    """R8: nor asked again by the program, unseen."""
    plan.key.refuses(scenario)
    _, error = await heard_until_refused(plan.reply())
    assert isinstance(error, kind)
    assert not isinstance(error, LimitReached | Throttled | SignedOut)
    assert len(plan.asked) == 1


SERVER = """
import asyncio, sys
from conch.engines.base import Access, Message, Request, Text
from conch.engines.registry import engine
name, base, home, model = sys.argv[1:]
async def main():
    access, one = Access(name, base, home=home), (Message("user", "One"),)
    async for _ in engine(name).reply(access, Request(model, one, conversation="1")):
        pass
    async for event in engine(name).reply(access, Request(model, one, conversation="2")):
        if isinstance(event, Text):
            told = [process.popen.pid for process in engine(name)._open]
            print(*told, *(idle.process.popen.pid for idle in engine(name)._ready._idle), flush=True)
asyncio.run(main())
"""


async def test_nothing_of_it_is_left_when_the_server_is_killed(plan, tmp_path):
    """In the middle of an answer, another process kept: the server can't do anything about it any more."""
    plan.key.replies("One.").replies("one two three", pieces=3, hold_after=1)
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, plan.access.slug, plan.access.base_url, plan.access.home, plan.model),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"CONCH_DATA": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )
    pids = [int(pid) for pid in (await asyncio.wait_for(server.stdout.readline(), 60)).split()]
    server.kill()
    await server.wait()
    assert len(pids) >= 2
    assert all([await asyncio.to_thread(gone, pid) for pid in pids])


async def test_a_chat_goes_on_after_each_of_them(plan):
    """Whatever became of one message, the next one starts afresh and is told the whole chat."""
    plan.key.replies("One.").cuts("Hal").refuses("throttle").replies("Two.")
    await plan.turn("First?")
    for _ in range(2):
        await heard_until_refused(plan.reply("Second?", chat="1"))
    assert text_of(await heard(plan.reply("Second?", chat="1"))) == "Two."
    assert plan.chat_of(plan.asked[-1]) == [("user", "First?"), ("assistant", "One."), ("user", "Second?")]
