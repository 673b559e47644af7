"""Which path speaks which wire; who is asking; what stands in the way before the key's script is asked."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.simulator import anthropic, chatgpt, openai, openrouter, scenarios
from tests.simulator.clock import Clock
from tests.simulator.keys import Key, Window
from tests.simulator.play import Playing, play, refuse
from tests.simulator.records import Records, Seen
from tests.simulator.scripts import Refuse
from tests.simulator.server import Exchange, Request
from tests.simulator.wire import Asked, Refusal, Stream, sse

Route = Callable[[Exchange, Seen, Key], Awaitable[None] | None]


def secret_of(request: Request) -> str:
    """The key or token that a request came with."""
    bearer = request.headers.get("authorization", "")
    return request.headers.get("x-api-key") or (bearer[7:].strip() if bearer[:7].lower() == "bearer " else "")


class App:
    """The providers: their keys, their clock, what they have seen."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.keys: dict[str, Key] = {}
        self.records = Records()
        self.renewed: dict[str, str] = {}  # refresh token → the access token it gives
        self.control: Callable[[Exchange], Awaitable[None]] | None = None
        self._open_paths: dict[tuple[str, str], Callable[[Exchange, Seen], None]] = {
            ("GET", "/api/v1/models"): lambda exchange, _: self._tell(exchange, openrouter.models()),
            ("GET", "/api/hello"): lambda exchange, _: self._tell(exchange, {}),
            ("HEAD", "/api/hello"): lambda exchange, _: self._tell(exchange, {}),
            ("HEAD", "/"): lambda exchange, _: self._tell(exchange, {}),
            ("POST", "/oauth/token"): self._renew,
        }
        self._routes: dict[tuple[str, str], tuple[str, Route]] = {
            ("POST", "/v1/messages"): (scenarios.ANTHROPIC, self._messages),
            ("POST", "/v1/messages/count_tokens"): (scenarios.ANTHROPIC, self._count),
            ("GET", "/api/oauth/usage"): (scenarios.ANTHROPIC, self._claude_usage),
            ("GET", "/api/oauth/profile"): (scenarios.ANTHROPIC, self._claude_profile),
            ("GET", "/v1/models"): (scenarios.OPENAI, self._models),
            ("POST", "/v1/responses"): (scenarios.OPENAI, self._responses),
            ("POST", "/v1/chat/completions"): (scenarios.OPENAI, self._chat),
            ("GET", "/v1beta/openai/models"): (scenarios.OPENAI, self._google_models),
            ("POST", "/v1beta/openai/chat/completions"): (scenarios.OPENAI, self._chat),
            ("GET", "/api/v1/key"): (scenarios.OPENROUTER, self._key_facts),
            ("GET", "/api/v1/credits"): (scenarios.OPENROUTER, self._credits),
            ("POST", "/api/v1/chat/completions"): (scenarios.OPENROUTER, self._openrouter_chat),
            ("POST", "/backend-api/codex/responses"): (scenarios.CHATGPT, self._codex),
            ("GET", "/backend-api/wham/usage"): (scenarios.CHATGPT, self._wham),
            ("GET", "/backend-api/wham/accounts/check"): (scenarios.CHATGPT, self._accounts_check),
            ("GET", "/backend-api/codex/models"): (scenarios.CHATGPT, self._catalog),
            ("GET", "/backend-api/wham/settings/user"): (scenarios.CHATGPT, self._settings),
            ("POST", "/codex/responses"): (scenarios.CHATGPT, self._codex),
            ("GET", "/api/codex/usage"): (scenarios.CHATGPT, self._wham),
        }

    async def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path.startswith("/_") and self.control is not None:
            await self.control(exchange)
            return
        seen = self.records.add(request, secret_of(request), self.clock.now())
        try:
            await self._answer(exchange, seen)
        finally:
            self.records.announce()

    async def _answer(self, exchange: Exchange, seen: Seen) -> None:
        request = exchange.request
        if opened := self._open_paths.get((request.method, request.path)):
            seen.outcome = "told"
            opened(exchange, seen)
            return
        if request.headers.get("upgrade", "").lower() == "websocket":  # the Codex program then speaks HTTP at once
            seen.outcome = "no websocket"
            exchange.answer(426, b"", {"upgrade": "HTTP/1.1"})
            return
        found = self._routes.get((request.method, request.path))
        if found is None:
            seen.outcome = "no such path"
            exchange.answer(404, {"error": {"message": f"no such path: {request.path}", "type": "not_found"}})
            return
        provider, route = found
        provider = scenarios.ANTHROPIC if "anthropic-version" in request.headers else provider
        key = self._admitted(request)
        if key is None:
            refuse(exchange, _unauthorized(provider, seen.key), seen, "unauthorized")
            return
        result = route(exchange, seen, key)
        if result is not None:
            await result

    def _admitted(self, request: Request) -> Key | None:
        """The key asking, unless it is unknown, signed out, or a sign-in used for another account."""
        key = self.keys.get(secret_of(request))
        account = request.headers.get("chatgpt-account-id")
        if key is None or key.signed_out or (account and key.account_id and account != key.account_id):
            return None
        return key

    # Replies

    async def _play(self, exchange: Exchange, seen: Seen, key: Key, provider: str, asked: Asked, **how: Any) -> None:
        seen.asked = asked
        self.records.announce()
        if (in_the_way := self._in_the_way(provider, key, asked)) is not None:
            refuse(exchange, scenarios.refusal_of(provider, key, in_the_way), seen, in_the_way.name)
            return
        await play(Playing(exchange, provider, key, asked, seen=seen, **how), key.next_step())

    def _in_the_way(self, provider: str, key: Key, asked: Asked) -> Refuse | None:
        """What this key would refuse by itself: a model it doesn't have, a spent cap, a full window."""
        if asked.model in key.lacks:
            return Refuse("model_gone")
        if provider == scenarios.OPENROUTER and key.cap.limit is not None and key.cap.spent >= key.cap.limit:
            return Refuse("key_limit", {"period": key.cap.resets})
        window = key.full(asked.model)
        if window is None:
            return None
        return key.refusal or _usual_limit(provider, key, window)

    def _complain(self, exchange: Exchange, seen: Seen, refusal: Refusal | None) -> bool:
        if refusal is None:
            return False
        refuse(exchange, refusal, seen, "bad_request")
        return True

    async def _messages(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        body = exchange.request.json
        if self._complain(exchange, seen, anthropic.complaint(body)):
            return
        asked = anthropic.asked(body)
        stream: Stream = anthropic.Stream(asked.model)
        headers = anthropic.headers(key)
        await self._play(exchange, seen, key, scenarios.ANTHROPIC, asked, stream=stream, headers=headers)

    async def _responses(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        asked = openai.asked_responses(exchange.request.json)
        stream = openai.ResponsesStream(asked.model, self.clock.now())
        await self._play(exchange, seen, key, scenarios.OPENAI, asked, stream=stream, headers=openai.headers(key))

    async def _chat(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        asked = openai.asked_chat(exchange.request.json)
        stream = openai.ChatStream(asked.model, self.clock.now(), usage_wanted=asked.usage_wanted)
        await self._play(exchange, seen, key, scenarios.OPENAI, asked, stream=stream, headers=openai.headers(key))

    async def _openrouter_chat(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        asked = openai.asked_chat(exchange.request.json)
        how = {"stream": openrouter.Stream(asked, self.clock.now()), "price": openrouter.cost_of}
        await self._play(exchange, seen, key, scenarios.OPENROUTER, asked, headers={}, **how)

    async def _codex(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        body = exchange.request.json
        if self._complain(exchange, seen, chatgpt.complaint(body)):
            return
        asked = openai.asked_responses(body)
        prelude = sse(chatgpt.rate_limits_event(key), "codex.rate_limits") if key.windows else b""
        how = {"stream": openai.ResponsesStream(asked.model, self.clock.now(), bare=True), "prelude": prelude}
        await self._play(exchange, seen, key, scenarios.CHATGPT, asked, headers=chatgpt.headers(key), **how)

    # What can be asked without a reply

    def _tell(self, exchange: Exchange, body: Any) -> None:
        exchange.answer(200, body, {"date": self.clock.date})

    def _models(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        spoken = anthropic if "anthropic-version" in exchange.request.headers else openai
        if key.list_status != 200:
            exchange.answer(key.list_status, {"error": {"message": "try again later"}}, {"date": self.clock.date})
            return
        shown = spoken.models()
        shown["data"] = [*key.lists, *(model for model in shown["data"] if model["id"] not in key.lacks)]
        exchange.answer(200, shown, {"date": self.clock.date} | spoken.headers(key))

    def _google_models(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        self._tell(exchange, openai.google_models())

    def _count(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        characters = anthropic.asked(exchange.request.json).characters
        self._tell(exchange, {"input_tokens": max(1, characters // 4)})

    def _key_facts(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        self._unless_failing(exchange, key, openrouter.key_facts(key))

    def _credits(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        refuse(exchange, openrouter.credits_refused(), seen, "not a management key")

    def _wham(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        self._unless_failing(exchange, key, chatgpt.usage(key))

    def _claude_usage(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        self._unless_failing(exchange, key, anthropic.usage(key))

    def _claude_profile(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        self._tell(exchange, anthropic.profile(key))

    def _unless_failing(self, exchange: Exchange, key: Key, body: Any) -> None:
        if key.usage_status == 200:
            self._tell(exchange, body)
        else:
            exchange.answer(key.usage_status, {"error": {"message": "try again later"}}, {"date": self.clock.date})

    def _accounts_check(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        self._tell(exchange, chatgpt.accounts_check(key))

    def _catalog(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        if key.catalog:
            self._tell(exchange, json.loads(key.catalog))
        else:
            exchange.answer(404, {"error": {"message": "nothing of the kind"}})

    def _settings(self, exchange: Exchange, seen: Seen, key: Key) -> None:
        """What the Codex program asks once: whether a commit of git is to name it. Where nobody tells, it asks anew."""
        self._tell(exchange, {"commit_attribution_enabled": False})

    def _renew(self, exchange: Exchange, seen: Seen) -> None:
        """A refresh token is turned into the access token set for it, once; unknown ones are refused."""
        given = exchange.request.json.get("refresh_token", "")
        token = self.renewed.pop(given, "")
        if not token:
            exchange.answer(401, {"error": {"code": "refresh_token_invalidated", "message": "Please sign in again."}})
            return
        self._tell(exchange, {"access_token": token, "refresh_token": f"{given}-next", "token_type": "Bearer"})


def _usual_limit(provider: str, key: Key, window: Window) -> Refuse:
    """How the provider says that this window is full; a plain key knows only limits that a person set."""
    left = None if window.resets_at is None else window.resets_at - key.clock.now()
    if provider == scenarios.CHATGPT:
        return Refuse("usage_limit", {"minutes": window.minutes, "resets_in": left})
    if provider != scenarios.ANTHROPIC:
        return Refuse("insufficient_quota" if provider == scenarios.OPENAI else "no_credit")
    if not anthropic.is_plan(key):
        return Refuse("usage_limit", {} if left is None else {"resets_in": left})
    name = "opus_weekly" if window.model else {300: "session"}.get(window.minutes, "weekly")
    return Refuse(name, {"resets_in": left} | ({"model": window.model} if window.model else {}))


def _unauthorized(provider: str, secret: str) -> Refusal:
    refusals: dict[str, Callable[[], Refusal]] = {
        scenarios.ANTHROPIC: anthropic.unauthorized,
        scenarios.OPENAI: lambda: openai.unauthorized(secret),
        scenarios.OPENROUTER: openrouter.unauthorized,
        scenarios.CHATGPT: chatgpt.unauthorized,
    }
    return refusals[provider]()
