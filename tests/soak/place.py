"""A Conch of its own in a temporary folder: real processes over one database, beside a simulator in another process."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120
_opener = build_opener(ProxyHandler({}))


class Process:
    """One process of Conch: how to reach it, and how to end it."""

    def __init__(self, command, environment, log):
        self.log = log
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.address = ""

    @property
    def pid(self):
        return self._process.pid

    def is_up(self):
        return self._process.poll() is None

    def wait_until_serving(self):
        """Wait for the address that it prints, and for its first answer. Raises RuntimeError where it ends instead."""
        line = self._process.stdout.readline()
        if not line.startswith("Conch is at "):
            raise RuntimeError(f"the server didn't start: {line!r}")
        self.address = line.split()[-1]
        return _ready(self)

    def send(self, number):
        self._process.send_signal(number)

    def kill(self):
        """kill -9, and wait until it is gone."""
        self._process.kill()
        self._ended()

    def end(self, patience=60):
        """SIGTERM, and wait for its end; its exit status."""
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        self._process.wait(patience)
        return self._ended()

    def _ended(self):
        self._process.wait()
        self._process.stdout.close()
        return self._process.returncode


class Fork:
    """A server that a nursery started: the same to its users as a process of ours."""

    def __init__(self, pid, address):
        self.pid = pid
        self.address = address

    def is_up(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def wait_until_serving(self):
        return _ready(self)

    def send(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """kill -9, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self._gone(30)

    def end(self, patience=60):
        """SIGTERM, and wait for its end."""
        self.send(signal.SIGTERM)
        self._gone(patience)

    def _gone(self, patience):
        until = time.monotonic() + patience
        while self.is_up():
            if time.monotonic() > until:
                raise TimeoutError(f"process {self.pid} doesn't end")
            time.sleep(0.01)


def _ready(process):
    """Wait for a server's first answer. Raises RuntimeError where none comes."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.is_up():
        try:
            _opener.open(f"{process.address}/readyz", timeout=10).close()
        except OSError:
            time.sleep(0.05)
        else:
            return process
    raise RuntimeError(f"the server at {process.address} didn't become ready")


class Provider:
    """The simulator in a process of its own, driven by its control doors."""

    def __init__(self):
        command = [sys.executable, "-m", "tests.simulator", "--no-bodies"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        told = json.loads(self._process.stdout.readline())
        self.url, self.base_urls = told["url"], told["base_urls"]

    def script(self, key, *plan, **facts):
        """What this key does, over and over."""
        self._post("/_script", {"key": key, "plan": plan, "facts": {"cycles": True} | facts})

    def _post(self, path, data):
        request = Request(self.url + path, json.dumps(data).encode(), {"content-type": "application/json"})
        with _opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def read(self, path):
        with _opener.open(self.url + path, timeout=120) as answer:
            return json.load(answer)

    def end(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


class Place:
    """One Conch's folder and database; processes are started on it, and all of them end with it."""

    def __init__(self, folder, *, database="", without="", begun_by=(), **environment):
        self.folder = Path(folder)
        self.without = without
        self.begun_by = begun_by or (("-m", "tests.soak.without", without) if without else ("manage.py",))
        self.log = (self.folder / "log").open("ab")
        self.processes = []
        self._nursery = None
        known = {name: value for name, value in os.environ.items() if not name.startswith(("CONCH_", "DATABASE_"))}
        self.environment = known | {
            "CONCH_DATA": str(self.folder / "data"),
            "DJANGO_SETTINGS_MODULE": "conch.settings",
            "CONCH_LOCAL_URL": "http://127.0.0.1:9",  # nobody: what can't be answered waits, or fails
            **({"DATABASE_URL": database} if database else {}),
            **environment,
        }

    def inside(self, what, **order):
        done = subprocess.run(
            [sys.executable, "-m", "tests.soak.inside", what],
            cwd=ROOT, env=self.environment, input=json.dumps(order), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout)

    def query(self, sql):
        """The rows that the database has for it, read beside the processes."""
        url = self.environment.get("DATABASE_URL", "")
        if url:
            import psycopg

            with psycopg.connect(url) as looked:
                return looked.execute(sql).fetchall()
        path = self.folder / "data" / "conch.sqlite3"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as looked:
            return looked.execute(sql).fetchall()

    def serve(self):
        """A serving process on a free port, with the worker beside; it is still starting."""
        return self._process("up", "--port", "0")

    def fork(self):
        """A serving process by the nursery: it is there in a moment."""
        if self._nursery is None:
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.nursery"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                text=True,
            )
        self._nursery.stdin.write("one more\n")
        self._nursery.stdin.flush()
        pid, address = self._nursery.stdout.readline().split()
        process = Fork(int(pid), address)
        self.processes.append(process)
        return process

    def work(self):
        """A worker by itself."""
        return self._process("worker")

    def _process(self, *command):
        process = Process([*self.begun_by, *command], self.environment, self.log)
        self.processes.append(process)
        return process

    def end(self):
        for process in self.processes:
            if process.is_up():
                process.kill()
        if self._nursery is not None:
            self._nursery.kill()
            self._nursery.communicate()
        self.log.close()

    def logged(self):
        return (self.folder / "log").read_text(errors="replace")
