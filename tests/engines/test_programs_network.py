"""Nothing leaves the machine: the programs in a network namespace with no way out, look-ups of names written down."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.engines.network_trial import CONTROL
from tests.programs import named

ROOT = Path(__file__).resolve().parent.parent.parent


def test_no_name_is_looked_up_and_no_other_host_is_asked(tmp_path):
    """clis.md 4: an answer, a limit and a refused sign-in, without the dead proxy that the other tests have."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CONCH_DATA": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    command = ["unshare", "--net", "--mount", "--user", "--map-root-user"]
    told = subprocess.run(
        [*command, sys.executable, "-m", "tests.engines.network_trial", str(tmp_path)],
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
    said = json.loads(told.stdout.decode().splitlines()[-1])
    assert said["came"] == ["Done", "LimitReached", "SignedOut"] * 2
    assert set(said["names"]) == {CONTROL}  # its own, at the end
    assert said["hosts"] == [f"127.0.0.1:{said['port']}"]
