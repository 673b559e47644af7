"""A sign-in that several processes of Conch use is renewed once: a refresh token works once (LIM-20; design.md)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conch.engines.codex_home import read_tokens
from tests.simulator.homes import write_codex_home
from tests.simulator.keys import Key

PROCESSES = 6
ROOT = Path(__file__).resolve().parents[2]
# A program as far as a renewal sees it. It takes its time, and its refresh token works once, as ChatGPT's does.
PROGRAM = """#!{python}
import json, os, pathlib, sys, time
home = pathlib.Path(os.environ["CODEX_HOME"])
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "account/read":
        kept = json.loads((home / "auth.json").read_text())
        used = pathlib.Path({used!r})
        if kept["tokens"]["refresh_token"] in used.read_text().split():
            kept["tokens"]["access_token"] = "signed out"
        else:
            used.open("a").write(kept["tokens"]["refresh_token"] + "\\n")
            time.sleep(0.5)
            kept["tokens"] |= {{"access_token": "tok-new", "refresh_token": "refresh-2"}}
        (home / "auth.json").write_text(json.dumps(kept))
    if "id" in message:
        print(json.dumps({{"id": message["id"], "result": {{}}}}), flush=True)
"""
ONE = """
import sys
from pathlib import Path
from conch.engines import codex_renewal
from conch.engines.codex_home import read_tokens
home = Path(sys.argv[1])
codex_renewal.find_program = lambda: sys.argv[2]
refused = read_tokens(home)
print("ready", flush=True)
sys.stdin.readline()
print(codex_renewal.renew(home, refused).access_token, flush=True)
"""


@pytest.fixture
def home(tmp_path):
    folder = write_codex_home(tmp_path / "codex", Key("tok-ada", None, email="ada@work.example", account_id="acct-1"))
    kept = json.loads((folder / "auth.json").read_text())
    kept["tokens"]["refresh_token"] = "refresh-1"
    (folder / "auth.json").write_text(json.dumps(kept))
    return folder


def processes(home, tmp_path):
    """So many processes that have each been told that the token they read is refused, about to renew it."""
    used, program = tmp_path / "used", tmp_path / "codex-program"
    used.touch()
    program.write_text(PROGRAM.format(python=sys.executable, used=str(used)))
    program.chmod(0o700)
    environment = os.environ | {"CONCH_DATA": str(tmp_path / "data")}
    (tmp_path / "data").mkdir(mode=0o700)
    made = [
        subprocess.Popen(
            [sys.executable, "-c", ONE, str(home), str(program)],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    for process in made:
        assert process.stdout.readline() == "ready\n"
    return made, used


def test_many_processes_whose_token_is_refused_at_once_renew_it_once(home, tmp_path):
    """LIM-20: whoever comes second finds the new one, and nobody is signed out."""
    made, used = processes(home, tmp_path)

    for process in made:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60)[0].strip() for process in made]

    assert told == ["tok-new"] * PROCESSES
    assert used.read_text().split() == ["refresh-1"]
    assert read_tokens(home).access_token == "tok-new"


def test_a_process_that_is_killed_while_it_renews_leaves_the_lock_to_the_next(home, tmp_path):
    """What it had begun is not begun twice: the program ends its work first, and then the file is read again."""
    made, used = processes(home, tmp_path)
    made[0].stdin.write("\n")
    made[0].stdin.flush()
    while not used.read_text():  # until the program is at it
        assert made[0].poll() is None
    made[0].kill()

    for process in made[1:]:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60)[0].strip() for process in made[1:]]
    made[0].communicate()

    assert told == ["tok-new"] * (PROCESSES - 1)
    assert used.read_text().split() == ["refresh-1"]
