"""What Conch adds to a turn (`python -m tests.bench.turns`): all of it on, beside a raw request to the same server.

The provider is the simulator in a process of its own; the client is raw asyncio; all three share this machine's cores.
Figures are printed side by side with the direct request of the same run, since machines differ and are noisy.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

CHUNKS = 40
ONE_BY_ONE, AT_ONCE, TOGETHER = 60, 16, 320
REFUSALS = 20
ANSWER = " ".join(f"word{number}" for number in range(CHUNKS))


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def milliseconds(values):
    return f"p50 {median(values) * 1e3:6.1f}  p95 {percentile(values, 0.95) * 1e3:6.1f} ms"


async def streamed(address, body, headers, sign):
    """One streaming POST over a connection of its own: seconds to `sign` (the first text) and to the end."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    payload = json.dumps(body).encode()
    head = {"Host": parts.netloc, "Content-Type": "application/json", "Content-Length": len(payload), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    start = time.perf_counter()
    writer.write(f"POST {parts.path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode() + payload)
    first, seen = None, b""
    while data := await reader.read(65536):
        seen += data
        if first is None and sign in seen:
            first = time.perf_counter() - start
    writer.close()
    assert first is not None, seen[-500:]
    return first, time.perf_counter() - start


class Bench:
    """The simulator and Conch, each a process of its own, with a person's accounts made beforehand."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.processes = []

    def start(self):
        simulator = self._run(sys.executable, "-m", "tests.simulator", "--port", "0")
        self.simulator = json.loads(simulator.stdout.readline())["url"]
        self._accounts()
        started = time.perf_counter()
        conch = self._run(sys.executable, "manage.py", "up", "--port", "0")
        self.conch = conch.stdout.readline().split()[-1]
        while True:
            try:
                urlopen(f"{self.conch}/healthz", timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        self.pid = conch.pid
        print(f"second start to the first page: {time.perf_counter() - started:.1f} s; memory {self.memory():.0f} MB")

    def _run(self, *command):
        environment = os.environ | {"CONCH_DATA": str(self.folder), "DJANGO_SETTINGS_MODULE": "conch.settings"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.processes.append(process)
        return process

    def memory(self):
        """Resident megabytes of the serving process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def processor_seconds(self):
        """What the serving process has used of the processor so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait(20)

    def _accounts(self):
        os.environ |= {"CONCH_DATA": str(self.folder), "DJANGO_SETTINGS_MODULE": "conch.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        from conch.accounts import tokens
        from conch.models import Person, Preferences

        person = Person.objects.create(username="owner", is_owner=True, is_staff=True)
        self.token = tokens.make(person, "bench", datetime.now(UTC))
        self._account(person, "answers", [{"do": "reply", "text": ANSWER}])
        self._account(person, "spent", [{"do": "refuse", "name": "usage_limit"}])
        for number in range(REFUSALS):
            self._account(person, f"refuses-{number}", [{"do": "refuse", "name": "usage_limit"}])
        Preferences.objects.update_or_create(person=person, defaults={"limit_order": ["answers"]})

    def _account(self, person, name, plan):
        from conch.models import Account
        from tests.simulator.clock import Clock
        from tests.simulator.homes import write_codex_home
        from tests.simulator.keys import Key

        facts = {"email": f"{name}@work.example", "account_id": f"acct-{name}", "user_id": f"user-{name}"}
        key = Key(f"tok-{name}", Clock(), **facts)
        home = write_codex_home(self.folder / "homes" / name, key)
        self.post(f"{self.simulator}/_script", {"key": key.secret, "plan": plan, "facts": facts})
        Account.objects.create(
            person=person,
            engine="codex",
            slug=name,
            label="Codex",
            identity=f"{key.account_id}:{key.user_id}",
            whose=key.email,
            model="gpt-5.5",
            home=str(home),
            base_url=f"{self.simulator}/backend-api",
            connected_at=datetime.now(UTC),
        )

    def post(self, address, body, headers=None):
        request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
        with urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    @property
    def signed(self):
        return {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"}

    def chat(self, account):
        return self.post(f"{self.conch}/api/conversations", {"account": account}, self.signed)["id"]

    async def turn(self, chat):
        address = f"{self.conch}/api/conversations/{chat}/messages"
        return await streamed(address, {"text": "hi"}, self.signed, b"event: delta")

    async def direct(self):
        body = {
            "model": "gpt-5.5",
            "stream": True,
            "store": False,
            "instructions": "",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        }
        headers = {"Authorization": "Bearer tok-answers", "ChatGPT-Account-ID": "acct-answers"}
        return await streamed(f"{self.simulator}/backend-api/codex/responses", body, headers, b"output_text.delta")

    def refused_to_next(self):
        """Seconds from each refused request's arrival to the arrival of the one that followed it."""
        seen = json.loads(urlopen(f"{self.simulator}/_requests", timeout=30).read())
        pairs = pairwise(seen)
        return [
            after["at"] - before["at"]
            for before, after in pairs
            if before["key"].startswith("tok-refuses") and after["key"] == "tok-answers"
        ]


async def run(bench):
    """Measure and print."""
    for _ in range(5):
        await bench.direct()
        await bench.turn(bench.chat("answers"))
    await bench.turn(bench.chat("spent"))
    floor = [await bench.direct() for _ in range(ONE_BY_ONE)]
    print(f"direct, one at a time            first text {milliseconds([first for first, _ in floor])}")
    base = median(first for first, _ in floor)
    for words, account in (("plain path", "answers"), ("a known limit", "spent")):
        chats = [bench.chat(account) for _ in range(ONE_BY_ONE)]
        firsts = [(await bench.turn(chat))[0] - base for chat in chats]
        print(f"Conch, {words:<14} beyond direct, first text {milliseconds(firsts)}")
    for number in range(REFUSALS):
        await bench.turn(bench.chat(f"refuses-{number}"))
    print(f"a refusal in the turn, to the next request    {milliseconds(bench.refused_to_next())}")
    await together(bench)
    print(f"memory after {ONE_BY_ONE * 2 + REFUSALS + TOGETHER} turns: {bench.memory():.0f} MB")


async def together(bench):
    chats = [bench.chat("answers") for _ in range(TOGETHER)]
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(chat):
        async with gate:
            return await bench.turn(chat)

    start, used = time.perf_counter(), bench.processor_seconds()
    took = await asyncio.gather(*(one(chat) for chat in chats))
    rate = TOGETHER / (time.perf_counter() - start)
    each = (bench.processor_seconds() - used) / TOGETHER * 1e3
    firsts = [first for first, _ in took]
    late = percentile(firsts, 0.99) * 1e3
    print(
        f"{AT_ONCE} at once: {rate:.0f} turns a second, first text p99 {late:.0f} ms, {each:.1f} ms of processor a turn"
    )


def main():
    with tempfile.TemporaryDirectory(prefix="conch-bench-", ignore_cleanup_errors=True) as folder:
        bench = Bench(folder)
        try:
            bench.start()
            asyncio.run(run(bench))
        finally:
            bench.stop()


if __name__ == "__main__":
    main()
