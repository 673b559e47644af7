"""Nothing leaves the machine: the programs in a network namespace with no way out, look-ups of names written down."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.engines.network_trial import CONTROL
from tests.engines.profile_trial import HOST
from tests.programs import named

ROOT = Path(__file__).resolve().parent.parent.parent


def told_by(trial, folder):
    """What that module says, run in namespaces of its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "CONCH_DATA": str(folder),
        "PYTHONPATH": str(ROOT),
    }
    command = ["unshare", "--net", "--mount", "--user", "--map-root-user"]
    told = subprocess.run(
        [*command, sys.executable, "-m", f"tests.engines.{trial}", str(folder)],
        cwd=ROOT,
        env=environment | named(),
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert told.returncode == 0, (
        "this test needs a network namespace of its own (unshare --net --mount --user --map-root-user), as root or"
        f" where user namespaces are allowed: {told.stderr.decode()[-2000:]}"
    )
    return json.loads(told.stdout.decode().splitlines()[-1])


def test_no_name_is_looked_up_and_no_other_host_is_asked(tmp_path):
    """clis.md 4: an answer, a limit and a refused sign-in, without the dead proxy that the other tests have."""
    said = told_by("network_trial", tmp_path)
    assert said["came"] == ["Done", "LimitReached", "SignedOut"] * 2
    assert set(said["names"]) == {CONTROL}  # its own, at the end
    assert said["hosts"] == [f"127.0.0.1:{said['port']}"]


def test_claude_code_reads_its_windows_ahead_of_a_turn_where_its_sign_in_may(tmp_path):
    """R29: from Anthropic's own host, as it is; what it only says again is no evidence, and a failure no figure."""
    said = told_by("profile_trial", tmp_path)
    assert said["identity"] == "org-bob-at-home-example:bob@home.example"
    assert [window[:2] for window in said["first"]] == [["5-hour", 42], ["weekly", 7]]
    assert said["at once"] is None
    assert [window[:2] for window in said["later"]] == [["5-hour", 60], ["weekly", 7]]
    assert said["answer"] == "Done"
    # In mid-stream the program tells a limit from a throttle by nothing: the windows do, and until when.
    assert said["limit"] == [True, 3600]
    assert said["refused"] == "EngineFault"
    assert said["replies"] == 2
    assert said["hosts"] == [HOST]
