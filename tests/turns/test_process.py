"""Whether the process that runs a turn still lives: by host, id and start time (design.md, A turn)."""

import os
import subprocess
import sys

from conch.turns.process import is_gone, this_process


def test_this_process_is_here():
    assert not is_gone(this_process())


def test_a_process_that_has_ended_is_gone():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = f"{this_process().rsplit('/', 2)[0]}/{child.pid}/1"
    child.communicate(b"\n")

    assert is_gone(owner)


def test_the_same_id_given_to_another_process_does_not_keep_a_turn_alive():
    host, pid, start = this_process().rsplit("/", 2)

    assert int(pid) == os.getpid()
    assert is_gone(f"{host}/{pid}/{start}1")


def test_of_another_hosts_process_only_the_lease_tells():
    assert not is_gone("another.example/1/1")
