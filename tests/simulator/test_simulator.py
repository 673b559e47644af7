"""The simulator itself, asked by the official clients: what the other tests stand on has to be true."""

import json
import ssl
import subprocess
import sys
import time
import urllib.request

import anthropic
import openai
import pytest

from tests.simulator import scenarios
from tests.simulator.keys import Key
from tests.simulator.scripts import Refuse


@pytest.fixture
def claude(simulator):
    return anthropic.Anthropic(base_url=simulator.url, api_key="sk-ant-a", max_retries=0)


@pytest.fixture
def gpt(simulator):
    return openai.OpenAI(base_url=simulator.base_urls["openai"], api_key="sk-a", max_retries=0)


def codex_client(simulator, key):
    headers = {"ChatGPT-Account-ID": key.account_id}
    base_url = f"{simulator.base_urls['codex']}/codex"
    return openai.OpenAI(base_url=base_url, api_key=key.secret, max_retries=0, default_headers=headers)


def ask(client, text="hello", **more):
    facts = {"model": "claude-sonnet-5", "max_tokens": 500} | more
    return client.messages.create(messages=[{"role": "user", "content": text}], **facts)


def said_by_response(client, **more):
    text, last = "", None
    for event in client.responses.create(**{"model": "gpt-5.5", "input": "hello", "stream": True} | more):
        text += event.delta if event.type == "response.output_text.delta" else ""
        last = event
    return text, last


def codex_body():
    return {"input": [{"role": "user", "content": "hello"}], "store": False, "instructions": ""}


def test_a_messages_stream_is_what_the_official_client_reads(simulator, claude):
    simulator.key("sk-ant-a").replies("Good **morning**.", pieces=3, input_tokens=40, output_tokens=12)

    with claude.messages.stream(
        model="claude-sonnet-5", max_tokens=500, messages=[{"role": "user", "content": "hello"}]
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()

    assert text == "Good **morning**."
    assert (message.usage.input_tokens, message.usage.output_tokens) == (40, 12)
    assert message.stop_reason == "end_turn"
    assert simulator.billed("sk-ant-a").output_tokens == 12


def test_a_responses_stream_is_what_the_official_client_reads(simulator, gpt):
    simulator.key("sk-a").replies("One two three.", output_tokens=9, thinking="hm")

    text, last = said_by_response(gpt)

    assert text == "One two three."
    assert last.type == "response.completed"
    assert last.response.output_text == "One two three."
    assert last.response.usage.output_tokens == 9


def test_a_chat_stream_ends_with_usage_only_where_it_was_asked_for(simulator, gpt):
    simulator.key("sk-a").replies("Hello there.")
    messages = [{"role": "user", "content": "hi"}]

    def chunks(**more):
        return list(gpt.chat.completions.create(model="gpt-5.5", messages=messages, stream=True, **more))

    assert chunks()[-1].usage is None
    told = chunks(stream_options={"include_usage": True})
    assert told[-1].usage.completion_tokens == 3
    assert "".join(chunk.choices[0].delta.content or "" for chunk in told if chunk.choices) == "Hello there."


def test_openrouter_says_what_it_charged_and_takes_it_off_the_cap(simulator):
    key = simulator.key("sk-or-a").replies("Hi.", input_tokens=2000, output_tokens=500).capped(20, spent=12.6)
    client = openai.OpenAI(base_url=simulator.base_urls["openrouter"], api_key="sk-or-a", max_retries=0)

    messages = [{"role": "user", "content": "hi"}]
    *_, last = client.chat.completions.create(model="openai/gpt-5.5", messages=messages, stream=True)

    assert last.usage.model_extra["cost"] == pytest.approx(0.025)
    assert client.get("/key", cast_to=object)["data"]["limit_remaining"] == pytest.approx(7.375)
    assert key.billed.cost == pytest.approx(0.025)


def test_a_spent_cap_refuses_by_itself(simulator):
    simulator.key("sk-or-a").capped(5, spent=5, resets="monthly")
    client = openai.OpenAI(base_url=simulator.base_urls["openrouter"], api_key="sk-or-a", max_retries=0)

    with pytest.raises(openai.PermissionDeniedError, match=r"Key limit exceeded \(monthly limit\)"):
        client.chat.completions.create(model="openai/gpt-5.5", messages=[], stream=True)


def test_an_unknown_key_gets_401_on_every_wire(simulator, claude, gpt):
    with pytest.raises(anthropic.AuthenticationError):
        ask(claude)
    with pytest.raises(openai.AuthenticationError):
        said_by_response(gpt)
    with pytest.raises(openai.AuthenticationError):
        gpt.models.list()


def test_a_key_without_a_script_says_back_what_it_was_asked(simulator, claude):
    simulator.key("sk-ant-a")

    assert ask(claude, "are you there?").content[0].text == "You said: are you there?"


def test_steps_are_taken_in_order_and_the_last_one_stays(simulator, claude):
    simulator.key("sk-ant-a").refuses("overloaded").replies("first").replies("ever after")

    with pytest.raises(anthropic.APIStatusError) as refused:
        ask(claude)
    assert refused.value.status_code == 529
    assert [ask(claude).content[0].text for _ in range(3)] == ["first", "ever after", "ever after"]


def test_history_that_arrived_can_be_read(simulator, claude):
    simulator.key("sk-ant-a")
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": "three"},
    ]
    claude.messages.create(model="claude-sonnet-5", max_tokens=9, messages=messages, system="be kind")

    (seen,) = simulator.requests("sk-ant-a")
    assert seen.messages == (("user", "one"), ("assistant", "two"), ("user", "three"))
    assert seen.asked.instructions == "be kind"
    assert seen.outcome == "replied"


@pytest.mark.parametrize("provider", list(scenarios.SCENARIOS))
def test_every_scenario_of_every_provider_can_be_given(provider, simulator):
    for name in scenarios.names(provider):
        key = Key("sk-a", simulator.clock)
        refusal = scenarios.refusal_of(provider, key, Refuse(name))
        assert 400 <= refusal.status < 600
        assert json.dumps(refusal.body if not isinstance(refusal.body, bytes) else "page")


def test_a_limit_can_come_inside_http_200(simulator, gpt):
    simulator.key("sk-a").breaks("Well", "insufficient_quota", inside="failed")
    text, last = said_by_response(gpt)
    assert (text, last.type, last.response.error.code) == ("Well", "response.failed", "insufficient_quota")

    simulator.key("sk-a").forgets().refuses("insufficient_quota", inside="event")
    with pytest.raises(openai.APIError, match="exceeded your current quota"):
        said_by_response(gpt)


def test_a_stream_can_be_cut_or_end_early(simulator, gpt):
    simulator.key("sk-a").stops_short("Half of it").cuts("Then gone", pieces=1)

    text, last = said_by_response(gpt)
    assert text == "Half of it"
    assert last.type == "response.output_text.delta"
    with pytest.raises(openai.APIConnectionError):
        said_by_response(gpt)
    assert [seen.outcome for seen in simulator.requests()] == ["ended early", "cut"]


def test_a_held_reply_waits_for_its_release_and_a_client_that_leaves_is_noticed(simulator, gpt):
    key = simulator.key("sk-a").replies("one two three four", hold_after=2)
    stream = gpt.responses.create(model="gpt-5.5", input="hello", stream=True)
    deltas = (event.delta for event in stream if event.type == "response.output_text.delta")

    assert [next(deltas), next(deltas)] == ["one ", "two "]
    key.release()
    assert "".join(deltas) == "three four"

    second = gpt.responses.create(model="gpt-5.5", input="hello", stream=True)
    next(iter(second))
    second.close()
    wait_until(lambda: simulator.requests()[-1].outcome == "left")
    assert simulator.requests()[-1].said == len("one two ")


def wait_until(holds):
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_tool_call_is_what_the_official_clients_read(simulator, claude, gpt):
    simulator.key("sk-ant-a").calls_tool("search", {"query": "tide"})
    simulator.key("sk-a").calls_tool("search", {"query": "tide"})

    (block,) = ask(claude).content
    assert (block.name, block.input) == ("search", {"query": "tide"})
    _, last = said_by_response(gpt)
    (item,) = last.response.output
    assert (item.name, json.loads(item.arguments)) == ("search", {"query": "tide"})


def test_an_answer_is_cut_at_the_cap_that_was_asked_for(simulator, claude):
    simulator.key("sk-ant-a").replies("a word " * 100)

    message = ask(claude, max_tokens=10)

    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 10


def test_codex_windows_fill_with_use_refuse_and_reset(simulator, tmp_path):
    key = simulator.codex("ada@work.example", tmp_path / "ada").replies("Done.")
    key.window(300, per_reply=50, every=600)
    client = codex_client(simulator, key)

    assert said_by_response(client, **codex_body())[0] == "Done."
    assert said_by_response(client, **codex_body())[1].response.output == []
    with pytest.raises(openai.RateLimitError) as refused:
        said_by_response(client, **codex_body())
    error = refused.value.body
    assert error["type"] == "usage_limit_reached"
    assert 0 < error["resets_in_seconds"] <= 600
    assert refused.value.response.headers["x-codex-primary-used-percent"] == "100"
    assert key.full() is not None

    simulator.clock.forward(601)
    assert said_by_response(client, **codex_body())[0] == "Done."


def test_codex_says_its_windows_ahead_of_a_turn_and_resets_early(simulator, tmp_path):
    key = simulator.codex("ada@work.example", tmp_path / "ada")
    key.window(300, used=100, resets_in=900).window(10080, used=58, resets_in=9000)
    client = openai.OpenAI(base_url=simulator.base_urls["codex"], api_key=key.secret, max_retries=0)

    told = client.get("/wham/usage", cast_to=object)
    assert told["rate_limit"]["allowed"] is False
    assert told["rate_limit"]["primary_window"]["limit_window_seconds"] == 18000
    assert told["rate_limit"]["secondary_window"]["used_percent"] == 58

    key.resets_early()
    assert client.get("/wham/usage", cast_to=object)["rate_limit"]["allowed"] is True


def test_codex_refuses_another_account_and_what_it_does_not_take(simulator, tmp_path):
    key = simulator.codex("ada@work.example", tmp_path / "ada")
    client = codex_client(simulator, key)

    with pytest.raises(openai.BadRequestError) as refused:
        said_by_response(client, **codex_body(), temperature=0.5)
    assert "Unsupported parameter: temperature" in refused.value.response.text
    key.account_id = "acct-of-somebody-else"
    with pytest.raises(openai.AuthenticationError):
        said_by_response(client, **codex_body())


def test_a_made_up_codex_home_reads_like_a_real_one(simulator, tmp_path):
    key = simulator.codex("ada@work.example", tmp_path / "ada")

    path = tmp_path / "ada" / "auth.json"
    kept = json.loads(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept["tokens"]["access_token"] == key.secret
    assert kept["tokens"]["id_token"].count(".") == 2


def test_a_claude_plan_has_unified_headers_and_says_which_window_refused(simulator):
    key = simulator.key("sk-ant-oat01-bob").window(300, used=42, resets_in=600).window(10080, used=10, resets_in=9000)
    client = anthropic.Anthropic(base_url=simulator.url, auth_token=key.secret, api_key=None, max_retries=0)

    headers = client.messages.with_raw_response.create(
        model="claude-sonnet-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
    ).headers
    assert headers["anthropic-ratelimit-unified-5h-utilization"] == "0.42"

    key.window(300, used=100, resets_in=600)
    with pytest.raises(anthropic.RateLimitError) as refused:
        ask(client)
    told = refused.value.response.headers
    assert told["anthropic-ratelimit-unified-status"] == "rejected"
    assert told["anthropic-ratelimit-unified-representative-claim"] == "five_hour"


def test_a_made_up_claude_home_belongs_to_a_plan_that_is_known(simulator, tmp_path):
    key = simulator.claude("bob@home.example", tmp_path / "bob" / ".claude")

    signed_in = json.loads((tmp_path / "bob" / ".claude" / ".credentials.json").read_text())["claudeAiOauth"]
    assert signed_in["accessToken"] == key.secret
    assert signed_in["refreshToken"] is None
    client = anthropic.Anthropic(base_url=simulator.url, auth_token=key.secret, api_key=None, max_retries=0)
    assert ask(client, "hi").content[0].text == "You said: hi"


def test_a_websocket_is_declined_so_that_the_codex_program_speaks_http(simulator):
    asked = urllib.request.Request(f"{simulator.url}/backend-api/codex/responses", headers={"Upgrade": "websocket"})

    with pytest.raises(urllib.error.HTTPError) as declined:
        urllib.request.urlopen(asked)

    assert declined.value.code == 426


def test_the_clock_can_stand_at_a_moment_and_its_date_can_be_off(simulator, claude, now):
    """Times (product.md): which clock is off is told by the response's own Date."""
    simulator.key("sk-ant-a").refuses("usage_limit", resets_in=3600)
    simulator.clock.set(now, stands_still=True)
    simulator.clock.skew = 90

    with pytest.raises(anthropic.BadRequestError) as refused:
        ask(claude)

    assert refused.value.response.headers["date"] == "Fri, 09 Oct 2026 12:01:30 GMT"
    assert "regain access on 2026-10-09 at 13:00 UTC" in refused.value.message


def test_a_lone_surrogate_arrives_escaped_as_providers_send_it(simulator):
    simulator.key("sk-a").replies("\ud800 half", pieces=1)
    body = json.dumps({"model": "gpt-5.5", "input": "hi", "stream": True}).encode()
    asked = urllib.request.Request(f"{simulator.url}/v1/responses", body, {"Authorization": "Bearer sk-a"})

    with urllib.request.urlopen(asked) as answer:
        assert "\\ud800 half" in answer.read().decode()


def test_a_line_of_ten_megabytes_arrives_whole(simulator, gpt):
    simulator.key("sk-a").replies("", line_bytes=10_000_000)

    assert len(said_by_response(gpt)[0]) == 10_000_000


def test_an_endless_stream_goes_on_until_the_client_leaves(simulator, gpt):
    simulator.key("sk-a").never_ends("on and ")
    stream = gpt.responses.create(model="gpt-5.5", input="hello", stream=True)
    deltas = [event.delta for _, event in zip(range(500), stream, strict=False) if hasattr(event, "delta")]
    stream.close()

    assert set(deltas) == {"on ", "and "}

    wait_until(lambda: simulator.requests()[-1].outcome == "left")


def test_https_is_by_an_authority_of_its_own(tls_simulator):
    trusting = ssl.create_default_context(cafile=tls_simulator.ca_path)
    with urllib.request.urlopen(f"{tls_simulator.tls_url}/api/v1/models", context=trusting) as answer:
        assert json.load(answer)["data"]


def test_another_process_is_scripted_and_read_over_http():
    process = subprocess.Popen([sys.executable, "-m", "tests.simulator"], stdout=subprocess.PIPE)
    try:
        url = json.loads(process.stdout.readline())["url"]
        plan = [{"do": "refuse", "name": "insufficient_quota"}, {"do": "reply", "text": "Hi", "pieces": 2}]
        assert call(f"{url}/_script", {"key": "sk-a", "plan": plan}) == {"key": "sk-a"}
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-a", max_retries=0)
        with pytest.raises(openai.RateLimitError):
            said_by_response(client)
        assert said_by_response(client)[0] == "Hi"

        first, second = call(f"{url}/_requests?key=sk-a")
        assert (first["status"], second["outcome"]) == (429, "replied")
        assert call(f"{url}/_billed")["sk-a"]["requests"] == 1
        with pytest.raises(urllib.error.HTTPError):
            call(f"{url}/_script", {"key": "sk-a", "plan": [{"do": "dance"}]})
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def call(url, data=None):
    body = None if data is None else json.dumps(data).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
        return json.load(answer)
