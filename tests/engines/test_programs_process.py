"""A program as a process: its lines, its bounds, and its end in every case. With programs of a few lines of our own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import uvloop

from conch.engines import cli_process
from conch.engines.base import EngineFault
from conch.engines.cli_process import CliProcess, Folder
from conch.engines.programs import scrubbed

REPEATS = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


async def started(script):
    return await CliProcess.start([sys.executable, "-c", script], scrubbed(), Folder())


def lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(pid, within=60):
    deadline = time.monotonic() + within
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not lives(pid)


async def test_it_is_told_and_tells_lines_of_json():
    process = await started(REPEATS)
    await process.send({"a": "é\ud83d\ude00"})
    assert await process.next_line() == {"a": "é😀"}
    folder = process.folder.path
    await process.ended()
    assert not folder.exists()


async def test_str_09_a_character_cut_between_two_pieces_is_whole():
    """STR-09: decoded a line at a time, however the bytes come."""
    text = "مرحبا 👨‍👩‍👧 🇨🇭"
    data = json.dumps({"text": text}, ensure_ascii=False).encode() + b"\n"
    script = (
        f"import sys; data = {data!r}\nfor byte in data: sys.stdout.buffer.write(bytes([byte])); sys.stdout.flush()"
    )
    process = await started(script)
    assert await process.next_line() == {"text": text}
    assert await process.next_line() is None
    await process.ended()


async def test_what_is_no_json_is_passed_over_and_endless_rubbish_given_up(monkeypatch):
    process = await started("print('Update available!'); print('[]'); print('{\"a\": 1}')")
    assert await process.next_line() == {"a": 1}
    await process.ended()
    endless = await started("while True: print('rubbish')")
    with pytest.raises(EngineFault):
        await endless.next_line()
    await endless.ended()


async def test_a_line_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(cli_process, "LONGEST_LINE", 200_000)
    process = await started("import sys\nwhile True: sys.stdout.write('x' * 65536)")
    with pytest.raises(EngineFault):
        await process.next_line()
    await process.ended()


async def test_one_that_says_nothing_is_given_up():
    process = await started("import time; time.sleep(60)")
    with pytest.raises(EngineFault) as raised:
        await process.next_line(0.2)
    assert raised.value.cut
    await process.ended()


async def test_one_that_dies_has_last_words():
    process = await started("import sys; sys.exit('no such option')")
    assert await process.next_line() is None
    assert process.last_words() == "no such option"
    await process.send({"too": "late"})
    await process.ended()


async def test_one_that_does_not_start_took_nothing():
    process = await CliProcess.start(["/nowhere/claude"], scrubbed(), Folder())
    assert await process.next_line() is None
    assert "/nowhere/claude" in process.last_words()
    await process.ended()


async def test_its_folder_is_empty_and_its_environment_bare(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-env")
    process = await started("import json, os; print(json.dumps({'env': dict(os.environ), 'files': os.listdir('.')}))")
    said = await process.next_line()
    assert said["files"] == []
    assert "sk-env" not in str(said["env"])
    await process.ended()


async def test_what_it_started_ends_with_it():
    """Its own process group, killed with the turn; one that doesn't listen is killed after a moment."""
    script = (
        "import json, signal, subprocess, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "print(json.dumps({'child': child.pid}), flush=True)\n"
        "time.sleep(600)"
    )
    process = await started(script)
    child = (await process.next_line())["child"]
    await process.ended()
    assert gone(child)
    assert gone(process.popen.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_conch_is_killed(tmp_path, number):
    """However the server ends: here it can't do anything about it any more."""
    script = (
        "import asyncio, sys\n"
        "from conch.engines.cli_process import CliProcess, Folder\n"
        "from conch.engines.programs import scrubbed\n"
        "async def main():\n"
        "    deaf = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)'\n"
        "    process = await CliProcess.start([sys.executable, '-c', deaf], scrubbed(), Folder())\n"
        "    print(process.popen.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    conch = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env=os.environ | {"CONCH_DATA": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path.cwd())},
    )
    pid = int(conch.stdout.readline())
    assert lives(pid)
    conch.send_signal(number)
    conch.wait(10)
    conch.stdout.close()
    assert gone(pid)
    kept = Folder()
    kept.path.rename(tmp_path / kept.path.name)
    cli_process.sweep(tmp_path)
    assert [path.name for path in tmp_path.glob("conch-*-*")] == [kept.path.name]  # a living one's stays


def test_no_file_of_anybody_elses_is_closed_with_a_program():
    """By the loop that Conch serves with: a descriptor closed twice is another's the second time."""

    async def ends_while_others_open_files():
        process = await started(REPEATS)
        process.end().result(10)  # the loop stands still meanwhile
        theirs = [end for _ in range(4) for end in os.pipe()]
        for _ in range(10):
            await asyncio.sleep(0)
        for end in theirs:
            os.fstat(end)
            os.close(end)

    uvloop.run(ends_while_others_open_files())


async def test_what_it_is_sent_goes_out_whole_however_many_send():
    """Longer than a pipe holds, and while it talks back."""
    process = await started(REPEATS)
    messages = [{"number": number, "text": "x" * 300_000} for number in range(4)]
    sending = [asyncio.create_task(process.send(message)) for message in messages]
    heard = [await process.next_line() for _ in messages]
    await asyncio.gather(*sending)
    assert sorted(heard, key=lambda message: message["number"]) == messages
    await process.ended()


async def test_whoever_waits_for_a_line_goes_on_when_it_is_ended():
    process = await started("import time; time.sleep(60)")
    waiting = asyncio.create_task(process.next_line())
    await asyncio.sleep(0)
    await process.ended()
    assert await waiting is None
    await process.send({"too": "late"})


async def test_many_end_at_once_without_holding_anybody_up():
    processes = await asyncio.gather(*(started(REPEATS) for _ in range(6)))
    pids = [process.popen.pid for process in processes]
    await asyncio.gather(*(process.ended() for process in processes))
    assert not any(lives(pid) for pid in pids)
