"""One key or sign-in of the simulator: whose it is, what it will do, what is left of it, what it was billed.

    simulator.key("sk-a").replies("Good morning.", pieces=3)
    simulator.key("sk-b").refuses("insufficient_quota").replies("Paid up.")
    simulator.key("tok-ada").window(minutes=300, used=40, resets_in=600, per_reply=30)

Each call adds a step; the last step is taken again and again. A key without steps says back what it was asked.
"""

from dataclasses import dataclass, field
from typing import Any, Self

from tests.simulator.clock import Clock
from tests.simulator.gate import Gate
from tests.simulator.scripts import Call, HangUp, Raw, Refuse, Reply, Silence, Step


@dataclass
class Window:
    """A metered span of a plan. With `every` (seconds) it starts anew after its reset, at its next use."""

    minutes: int
    used: float
    resets_at: float | None
    per_reply: float = 0.0
    every: float | None = None
    model: str = ""  # it covers this model only; "" all

    def roll(self, now: float) -> None:
        if self.resets_at is not None and self.resets_at <= now:
            self.used, self.resets_at = 0.0, None

    def use(self, now: float) -> None:
        if self.resets_at is None and self.every is not None:
            self.resets_at = now + self.every
        self.used = min(100.0, self.used + self.per_reply)

    def reset_shown(self, now: float) -> float | None:
        """The reset, or when it would be were the window begun now."""
        return self.resets_at if self.resets_at is not None or self.every is None else now + self.every


@dataclass
class Billed:
    """What a key was billed: requests that were answered (also in part), tokens, USD."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


@dataclass
class Cap:
    """OpenRouter's limit of a key, in USD; None: no cap. `resets`: daily, weekly, monthly or None."""

    limit: float | None = None
    spent: float = 0.0
    resets: str | None = None
    free_requests: tuple[int, int] | None = None  # used, limit


@dataclass
class Key:
    """A key or access token and everything the simulator knows of it. `at_limit` None: its windows decide."""

    secret: str
    clock: Clock
    email: str = ""
    account_id: str = ""
    user_id: str = ""
    plan: str = "plus"
    label: str = ""
    organization: str = ""
    home: str = ""
    plan_steps: list[Step] = field(default_factory=list)
    cycles: bool = False
    windows: list[Window] = field(default_factory=list)
    cap: Cap = field(default_factory=Cap)
    billed: Billed = field(default_factory=Billed)
    refusal: Refuse | None = None  # how it refuses once a window is full; None: its provider's usual limit
    signed_out: bool = False
    lacks: frozenset[str] = frozenset()  # models this key doesn't have
    catalog: str = ""  # what the Codex program is told of the plan's models, JSON; "" tells nothing
    usage_status: int = 200  # what asking for its windows answers
    list_status: int = 200  # what asking for its models answers
    lists: tuple[dict[str, Any], ...] = ()  # models that it lists before the others
    _taken: int = 0
    gate: Gate = field(default_factory=Gate)

    # What it will do.

    def does(self, *steps: Step) -> Self:
        self.plan_steps.extend(steps)
        return self

    def replies(self, text: str | None = None, *, times: int = 1, **how: Any) -> Self:
        """Answer with this text (None: what was asked is said back); `how` as in `scripts.Reply`."""
        return self.does(*[Reply(text, **how)] * times)

    def calls_tool(self, name: str, arguments: dict[str, Any], **how: Any) -> Self:
        return self.does(Reply(how.pop("text", ""), calls=(Call(name, arguments),), **how))

    def refuses(self, name: str, *, times: int = 1, inside: str = "", **facts: Any) -> Self:
        """Refuse as `scenarios` names it."""
        return self.does(*[Refuse(name, facts, inside)] * times)

    def breaks(self, text: str, name: str, *, inside: str = "event", pieces: int | None = None, **facts: Any) -> Self:
        """Say this much and then refuse, all under HTTP 200."""
        return self.does(Reply(text, pieces=pieces, then="refuse", refusal=Refuse(name, facts, inside)))

    def cuts(self, text: str, **how: Any) -> Self:
        """Say this much, then the connection breaks."""
        return self.does(Reply(text, then="cut", **how))

    def stops_short(self, text: str, **how: Any) -> Self:
        """Say this much, then end the stream without its terminal event."""
        return self.does(Reply(text, then="close", **how))

    def falls_silent(self, text: str = "", **how: Any) -> Self:
        """Say this much, then nothing more, the connection open."""
        return self.does(Reply(text, then="silent", **how))

    def never_ends(self, text: str = "and on ", **how: Any) -> Self:
        return self.does(Reply(text, then="endless", **how))

    def stays_silent(self) -> Self:
        return self.does(Silence())

    def hangs_up(self) -> Self:
        return self.does(HangUp())

    def answers(self, status: int, body: Any = b"", headers: dict[str, str] | None = None) -> Self:
        """Exactly this HTTP answer."""
        return self.does(Raw(status, body, headers or {}))

    def forgets(self) -> Self:
        """Drop all steps: it says back what it was asked."""
        self.plan_steps.clear()
        self._taken = 0
        return self

    def next_step(self) -> Step:
        if not self.plan_steps:
            return Reply()
        last = len(self.plan_steps) - 1
        place = self._taken % (last + 1) if self.cycles else min(self._taken, last)
        self._taken += 1
        return self.plan_steps[place]

    # Gates: a reply with `hold_after` waits for release().

    def release(self) -> None:
        self.gate.release()

    # What is left of it.

    def window(
        self,
        minutes: int,
        *,
        used: float = 0.0,
        resets_in: float | None = None,
        per_reply: float = 0.0,
        every: float | None = None,
        model: str = "",
    ) -> Self:
        """Meter it by a window of this length, replacing the one of the same length and model."""
        at = None if resets_in is None else self.clock.now() + resets_in
        kept = [each for each in self.windows if (each.minutes, each.model) != (minutes, model)]
        self.windows = [*kept, Window(minutes, used, at, per_reply, every, model)]
        return self

    def resets_early(self) -> None:
        """The provider gives everything back before the time it named."""
        for window in self.windows:
            window.used = 0.0
            if window.every is not None:
                window.resets_at = None

    def capped(self, limit: float | None, *, spent: float = 0.0, resets: str | None = None) -> Self:
        self.cap = Cap(limit, spent, resets)
        return self

    def full(self, model: str = "") -> Window | None:
        """The full window that a request for this model meets; of several the one that resets last."""
        now = self.clock.now()
        for window in self.windows:
            window.roll(now)
        met = [each for each in self.windows if each.used >= 100 and (not each.model or each.model in model)]
        return max(met, key=lambda each: each.resets_at or now, default=None)

    def bill(self, input_tokens: int, output_tokens: int, cost: float | None, model: str = "") -> None:
        """Count a reply, whole or in part."""
        self.billed.requests += 1
        self.billed.input_tokens += input_tokens
        self.billed.output_tokens += output_tokens
        self.billed.cost += cost or 0.0
        self.cap.spent += cost or 0.0
        for window in self.windows:
            if not window.model or window.model in model:
                window.use(self.clock.now())
