"""What people would use instead, each installed in a folder of its own outside the project, never a dependency.

CONCH_BENCH_CACHE names the folder, ~/.cache/conch-bench where it is unset. They are installed by pip, once, at these
versions; where that can't be done they aren't measured.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.bench.measuring import Watched, streamed
from tests.bench.place import ANSWER, REPLY


class NotHere(Exception):
    """It can't be installed or started here; says why."""


class Other:
    """One of them, serving on a free port, over two accounts: one whose limit is reached, one that answers."""

    name = version = package = program = ""
    answers, spent = "", ""
    sign = b"word0"

    def __init__(self, place, folder):
        self.place = place
        self.folder = Path(folder) / self.program
        self.folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.prepare()
        environment = os.environ | {"HOME": str(self.folder)} | self.environment()
        self.running = subprocess.Popen(
            [str(self.installed() / "bin" / self.program), *self.arguments()],
            env={name: value for name, value in environment.items() if "DJANGO" not in name and "CONCH" not in name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        self.process = Watched(self.running.pid)
        self.until_up()

    @classmethod
    def installed(cls):
        """The virtual environment that it is in; made and filled where it isn't there yet."""
        cache = Path(os.environ.get("CONCH_BENCH_CACHE") or "~/.cache/conch-bench").expanduser()
        home = cache / f"{cls.program}-{cls.version}"
        if (home / "bin" / cls.program).exists():
            return home
        cache.mkdir(parents=True, exist_ok=True)
        install = [str(home / "bin" / "pip"), "install", "--quiet", f"{cls.package}=={cls.version}"]
        try:
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            subprocess.run(install, check=True)
        except (subprocess.CalledProcessError, OSError) as error:
            raise NotHere(f"version {cls.version} can't be installed here: {error}") from error
        return home

    def until_up(self):
        until = time.monotonic() + 120
        while True:
            try:
                urlopen(self.address + self.alive, timeout=2).close()
            except HTTPError:
                return  # it answers
            except OSError as error:
                if self.running.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise NotHere(f"it didn't start: {error}") from error
                time.sleep(0.2)
            else:
                return

    def stop(self):
        self.running.terminate()
        self.running.wait(30)

    def prepare(self):
        """Its configuration, and its keys at the simulator."""

    def environment(self):
        return {}

    def spent_asked(self):
        return len([seen for seen in self.place.seen(self.spent) if "models" not in seen["path"]])

    def refused_to_next(self):
        """Seconds from each refusal's request to the next one, where it finds a limit out anew in each turn."""
        from tests.bench.turns import between

        return between(self.place.seen(), self.spent, self.answers)


class LiteLLM(Other):
    """LiteLLM's proxy as its guide for production says, without its database: as many workers as Conch has."""

    name, program, package, version = "LiteLLM", "litellm", "litellm[proxy]", "1.108.7"
    answers, spent = "sk-litellm-answers", "sk-litellm-spent"
    alive = "/health/liveliness"

    def prepare(self):
        self.place.script(self.answers, [REPLY])
        self.place.script(self.spent, [{"do": "refuse", "name": "insufficient_quota"}])
        models = [
            {
                "model_name": name,
                "litellm_params": {"model": "openai/gpt-5.5", "api_base": f"{self.place.simulator}/v1", "api_key": key},
            }
            for name, key in (("answers", self.answers), ("spent", self.spent))
        ]
        settings = {
            "model_list": models,
            "litellm_settings": {
                "fallbacks": [{"spent": ["answers"]}],
                "num_retries": 0,
                "request_timeout": 600,
                "set_verbose": False,
                "json_logs": True,
            },
            "general_settings": {"master_key": "sk-master", "disable_error_logs": True},
        }
        (self.folder / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML too

    def environment(self):
        return {"LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def arguments(self):
        return ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(self.port), "--num_workers", "1"]

    async def direct(self):
        return await self._asked(f"{self.place.simulator}/v1", "gpt-5.5", self.answers)

    async def plain(self):
        return await self._asked(f"{self.address}/v1", "answers", "sk-master")

    async def limited(self):
        return await self._asked(f"{self.address}/v1", "spent", "sk-master")

    async def _asked(self, base, model, key):
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        return await streamed(f"{base}/chat/completions", body, {"Authorization": f"Bearer {key}"}, self.sign)


class Spillway(Other):
    """claude-spillway: a Claude plan, and Ollama's cloud where that is nearly used up. It keeps and books nothing."""

    name, program, package, version = "claude-spillway", "claude-spillway", "claude-spillway", "0.9.0"
    answers, spent, plan = "sk-spillway-answers", "sk-ant-oat01-spillway-spent", "sk-ant-oat01-spillway-plan"
    alive = "/_spillway/status"

    def prepare(self):
        self.place.script(self.answers, [REPLY])
        room = [{"minutes": 300, "used": 10, "resets_in": 9000}, {"minutes": 10080, "used": 10, "resets_in": 90000}]
        full = [{"minutes": 300, "used": 99, "resets_in": 9000}, {"minutes": 10080, "used": 10, "resets_in": 90000}]
        self.place.script(self.plan, [REPLY], windows=room)
        self.place.script(self.spent, [REPLY], windows=full)
        settings = {
            "anthropic": {"base_url": self.place.simulator},
            "ollama": {"base_url": self.place.simulator, "api_key": self.answers},
            "model_mapping": {"rules": [{"match": "*", "target": "claude-sonnet-5"}]},
        }
        (self.folder / "config.yaml").write_text(json.dumps(settings))

    def refused_to_next(self):
        return []  # it reads how much is used, and asks before anybody refuses

    def arguments(self):
        return ["serve", "--config", "config.yaml", "--port", str(self.port), "--log-level", "ERROR"]

    async def direct(self):
        return await self._asked(self.place.simulator, self.plan)

    async def plain(self):
        return await self._asked(self.address, self.plan)

    async def limited(self):
        return await self._asked(self.address, self.spent)

    async def _asked(self, base, key):
        body = {
            "model": "claude-sonnet-5",
            "max_tokens": 500,
            "stream": True,
            "messages": [{"role": "user", "content": "hi"}],
        }
        headers = {"Authorization": f"Bearer {key}", "anthropic-version": "2023-06-01"}
        return await streamed(f"{base}/v1/messages", body, headers, self.sign)


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


assert ANSWER.startswith("word0")
