"""The simulator and Conch, each a process of its own, with a person's accounts made beforehand."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import Request, urlopen

from tests.bench.measuring import Watched, streamed

CHUNKS = 40
ANSWER = " ".join(f"word{number}" for number in range(CHUNKS))
REPLY = {"do": "reply", "text": ANSWER}
REFUSAL = {"do": "refuse", "name": "usage_limit"}


class Place:
    """A data folder, the simulator, and, once started, Conch as `make run` serves it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.processes = []
        simulator = self.run(sys.executable, "-m", "tests.simulator", "--port", "0")
        self.simulator = json.loads(simulator.stdout.readline())["url"]
        self._migrate()

    def run(self, *command, **environment):
        given = os.environ | {"CONCH_DATA": str(self.folder), "DJANGO_SETTINGS_MODULE": "conch.settings"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=given | environment)
        self.processes.append(process)
        return process

    def _migrate(self):
        os.environ |= {"CONCH_DATA": str(self.folder), "DJANGO_SETTINGS_MODULE": "conch.settings"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        from conch.accounts import tokens
        from conch.models import Person, Preferences

        self.person = Person.objects.create(username="owner", is_owner=True, is_staff=True, is_superuser=True)
        Preferences.objects.create(person=self.person, limit_order=["answers"])
        self.token = tokens.make(self.person, "bench", datetime.now(UTC))

    def start(self):
        """Start Conch; the seconds until its first page."""
        started = time.perf_counter()
        conch = self.run(sys.executable, "manage.py", "up", "--port", "0")
        self.conch = conch.stdout.readline().split()[-1]
        while True:
            try:
                urlopen(f"{self.conch}/signin", timeout=5).close()
                break
            except OSError:
                time.sleep(0.02)
        self.process = Watched(conch.pid)
        return time.perf_counter() - started

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait(20)

    def script(self, secret, plan, **more):
        """What that key does when it is asked."""
        self.post(f"{self.simulator}/_script", {"key": secret, "plan": plan, **more})

    def plan(self, name, steps):
        """A ChatGPT plan that does that."""
        from tests.simulator.clock import Clock
        from tests.simulator.homes import write_codex_home
        from tests.simulator.keys import Key

        facts = {"email": f"{name}@work.example", "account_id": f"acct-{name}", "user_id": f"user-{name}"}
        key = Key(f"tok-{name}", Clock(), **facts)
        home = write_codex_home(self.folder / "homes" / name, key)
        self.script(key.secret, steps, facts=facts)
        self._account(
            "codex", name, f"{self.simulator}/backend-api", home=str(home), identity=f"{key.account_id}:{key.user_id}"
        )

    def key(self, name, steps):
        """An OpenAI key that does that."""
        from conch.accounts.seal import seal

        self.script(f"sk-{name}", steps)
        self._account("openai", name, f"{self.simulator}/v1", sealed_key=seal(f"sk-{name}"), key_hint="key")

    def _account(self, engine, slug, base_url, **facts):
        from conch.models import Account

        Account.objects.create(
            person=self.person,
            engine=engine,
            slug=slug,
            label=engine.title(),
            whose=f"{slug}@work.example",
            model="gpt-5.5",
            base_url=base_url,
            connected_at=datetime.now(UTC),
            **facts,
        )

    def leave(self, slug):
        """Disconnect an account."""
        from conch.models import Account

        Account.objects.filter(slug=slug).update(removed_at=datetime.now(UTC))

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
        """Seconds to the first text of a message's answer, and to its end."""
        address = f"{self.conch}/api/conversations/{chat}/messages"
        return await streamed(address, {"text": "hi"}, self.signed, b"event: delta")

    async def direct(self):
        """The floor: the same of a raw request to the simulator, on the wire of the plan."""
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        body = {"model": "gpt-5.5", "stream": True, "store": False, "instructions": "", "input": [said]}
        headers = {"Authorization": "Bearer tok-answers", "ChatGPT-Account-ID": "acct-answers"}
        return await streamed(f"{self.simulator}/backend-api/codex/responses", body, headers, b"output_text.delta")

    def seen(self, secret=""):
        """The requests that have reached the simulator, of that key or all."""
        return json.loads(urlopen(f"{self.simulator}/_requests?key={secret}", timeout=30).read())
