"""The control doors for another process: script keys, read what arrived, move the clock. All under `/_`, all JSON.

POST /_script   {"key": "sk-a", "plan": [{"do": "refuse", "name": "insufficient_quota"}, {"do": "reply", "text": "Hi"}],
                 "facts": {"email": …}, "windows": [{"minutes": 300, "used": 40, "resets_in": 600}],
                 "cap": {"limit": 20, "spent": 12.6, "resets": "monthly"}, "forget": false}
GET  /_requests[?key=&path=&all=1]      POST /_clock  {"at": ISO} | {"forward": seconds} | {"skew": seconds}
GET  /_billed   key → what it was billed    POST /_release {"key"}    POST /_early {"key"}    POST /_reset
GET  /_scenarios  the names of refusals, by provider
"""

from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.simulator import scenarios
from tests.simulator.keys import Key
from tests.simulator.scripts import step_from
from tests.simulator.server import Exchange

if TYPE_CHECKING:
    from tests.simulator.simulator import Simulator

FACTS = {known.name for known in fields(Key)} - {"secret", "clock", "plan_steps", "windows", "cap", "billed", "gate"}


class Control:
    """Answers the paths under `/_`."""

    def __init__(self, simulator: "Simulator") -> None:
        self._simulator = simulator
        self._doors = {
            ("POST", "/_script"): self._script,
            ("GET", "/_requests"): self._requests,
            ("GET", "/_billed"): self._billed,
            ("GET", "/_scenarios"): self._scenarios,
            ("POST", "/_clock"): self._clock,
            ("POST", "/_release"): self._release,
            ("POST", "/_early"): self._early,
            ("POST", "/_reset"): self._reset,
        }

    async def __call__(self, exchange: Exchange) -> None:
        door = self._doors.get((exchange.request.method, exchange.request.path))
        if door is None:
            exchange.answer(404, {"error": f"there are {', '.join(path for _, path in self._doors)}"})
            return
        try:
            exchange.answer(200, door(exchange))
        except (KeyError, TypeError, ValueError) as error:
            exchange.answer(400, {"error": f"{type(error).__name__}: {error}"})

    def _script(self, exchange: Exchange) -> Any:
        data = exchange.request.json
        key = self._simulator.key(data["key"])
        if data.get("forget"):
            self._simulator.forget(data["key"])
            return {"key": key.secret}
        if "plan" in data:
            key.forgets().does(*(step_from(step) for step in data["plan"]))
        unknown = set(data.get("facts", {})) - FACTS
        if unknown:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        self._simulator.key(data["key"], **data.get("facts", {}))
        for window in data.get("windows", ()):
            key.window(**window)
        if "cap" in data:
            key.capped(**data["cap"])
        return {"key": key.secret}

    def _requests(self, exchange: Exchange) -> Any:
        query = exchange.request.query
        read = self._simulator.all_requests if query.get("all") else self._simulator.requests
        return [seen.as_json() for seen in read(query.get("key"), query.get("path", ""))]

    def _billed(self, exchange: Exchange) -> Any:
        return {secret: asdict(key.billed) for secret, key in self._simulator.app.keys.items()}

    def _scenarios(self, exchange: Exchange) -> Any:
        return {provider: scenarios.names(provider) for provider in scenarios.SCENARIOS}

    def _clock(self, exchange: Exchange) -> Any:
        data = exchange.request.json
        clock = self._simulator.clock
        if "at" in data:
            clock.set(datetime.fromisoformat(data["at"]), stands_still=bool(data.get("stands_still")))
        clock.forward(float(data.get("forward", 0)))
        clock.skew = float(data.get("skew", clock.skew))
        return {"now": clock.now()}

    def _release(self, exchange: Exchange) -> Any:
        self._simulator.key(exchange.request.json["key"]).release()
        return {}

    def _early(self, exchange: Exchange) -> Any:
        self._simulator.key(exchange.request.json["key"]).resets_early()
        return {}

    def _reset(self, exchange: Exchange) -> Any:
        self._simulator.reset()
        return {}
