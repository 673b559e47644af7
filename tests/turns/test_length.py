"""Long chats: what messages come to in tokens, what is left out for a short window, what replies teach (R9, R31)."""

import asyncio
import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conch.db import look
from conch.models import Ability, Entry, Turn
from conch.turns import doors, handoff, tokens
from conch.turns.clock import SYSTEM

NOVEL = "The tide came in over the flats, and the shells that it had left were gone by noon. "


def a_long_chat(world, account, messages, words, **fields):
    """A chat of so many messages, as it stands in the database of somebody who has used it for months."""
    chat = world.chat(account, **fields)
    long_ago = SYSTEM.now() - timedelta(days=90)
    Turn.objects.bulk_create(
        Turn(
            conversation=chat,
            text=f"{number} {words}",
            answer=f"{number}. {words}",
            account=account,
            model=fields.get("model", "gpt-5.5"),
            state="done",
            created_at=long_ago + timedelta(minutes=number),
        )
        for number in range(messages // 2)
    )
    return chat


def sent(world, key, at=-1):
    """The messages of a request, as its provider got them."""
    body = json.loads(world.simulator.requests(key.secret)[at].body)
    return [said for said in body.get("input") or body["messages"] if said.get("role") != "system"]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Hello, world!", 4, 4),
        ("def add(a, b):\n    return a + b\n", 10, 14),
        ("日本語のテキストです。", 6, 12),
        ("", 0, 0),
        # What three bytes a token would have counted too low: rare signs, and words that are none.
        ("龘靐齉龗" * 50, 400, 800),
        ("qzxkvjwq" * 50, 150, 300),
    ],
)
def test_a_message_is_counted_as_a_models_tokenizer_does(text, least, most):
    assert least <= tokens.count(text) - tokens.TOKENS_A_MESSAGE <= most


@pytest.mark.parametrize("text", ["x" * 200_000, " " * 200_000, "ab" * 1_000 + "\ud800", "<|endoftext|>", "\0"])
def test_no_text_takes_long_or_breaks_the_count(text):
    """Bad input: endless words, lone surrogates, and the vocabulary's own marks, which are words here."""
    began = tokens.count("")
    counted = tokens.count(text)

    assert began <= counted <= len(text) + 10
    assert tokens.count("<|endoftext|>") > tokens.TOKENS_A_MESSAGE + 1


def test_an_image_counts_by_its_pixels_and_never_without_bound():
    small, photo, unknown = tokens.of_image(100, 100), tokens.of_image(1_000, 1_000), tokens.of_image(None, None)

    assert small < photo < unknown == tokens.of_image(20_000, 20_000)


@pytest.mark.django_db(transaction=True)
async def test_a_message_is_counted_once_and_its_count_kept(world):
    """A chat of hundreds of messages is added up, not counted, at every turn."""
    codex = await look(world.account, "codex")
    codex.key.replies("Hello, world!", times=9)
    chat = await look(a_long_chat, world, "codex", 40, NOVEL)

    first = await world.say(chat, "Hello, world!")

    counts = await look(lambda: list(Turn.objects.order_by("pk").values_list("text_tokens", "answer_tokens")))
    assert all(text and answer for text, answer in counts)
    assert counts[-1] == (tokens.count("Hello, world!"),) * 2
    seen = []
    counting = tokens.count
    handoff.tokens.count = lambda text: seen.append(text) or counting(text)
    try:
        await look(handoff.history, first, {})
    finally:
        handoff.tokens.count = counting
    assert seen == []


@pytest.mark.django_db
def test_adding_up_a_chat_takes_as_many_queries_for_400_messages_as_for_four(world):
    def queries(messages):
        chat = a_long_chat(world, "codex", messages, NOVEL)
        turn = Turn.objects.create(conversation=chat, text="now", created_at=SYSTEM.now())
        handoff.history(turn, {})
        with CaptureQueriesContext(connection) as captured:
            handoff.history(turn, {})
        return len(captured)

    assert queries(4) == queries(400)


@pytest.mark.django_db(transaction=True)
async def test_a_chat_of_400_messages_goes_to_a_model_with_a_short_window(world):
    """R9, R31: at the limit nobody can take all of it; the oldest whole messages are left out, the line says so, and
    the newest message and the instructions go along.
    """
    codex, key = (
        await look(world.account, "codex"),
        await look(
            world.account,
            "openai",
            model="gpt-short",
            label="Short",
            known_models=[{"id": "gpt-short", "label": "Short 16k", "context": 16_000}],
        ),
    )
    codex.key.refuses("usage_limit")
    key.key.replies("In short: shells.")
    await world.prefers(limit_fallback="openai")
    chat = await look(a_long_chat, world, "codex", 400, NOVEL * 5, instructions="Answer in one line.")

    turn = await world.say(chat, "What was all this about? " + NOVEL * 3)

    assert (turn.state, turn.account, turn.answer) == ("done", "openai", "In short: shells.")
    went = sent(world, key.key)
    lines = await world.lines(chat)
    assert [kind for kind, _ in lines] == ["limit.routed", "handoff.shortened"]
    assert lines[1][1]["messages"] == len(went)
    assert 60 < len(went) < 300
    assert [said["role"] for said in went[:3]] == ["user", "assistant", "user"]
    assert "What was all this about?" in json.dumps(went[-1])
    assert NOVEL * 3 in json.dumps(went[-1])
    first = json.dumps(went[0]["content"])
    assert NOVEL * 5 in first  # a whole message
    body = json.loads(world.simulator.requests(key.key.secret)[0].body)
    assert "Answer in one line." in json.dumps(body)
    counted = sum(tokens.count(json.dumps(said)) for said in went)
    assert 8_000 < counted < 16_000
    assert 4_000 < body["max_output_tokens"] < 8_192  # what the context leaves
    entry = await look(Entry.objects.get)
    assert entry.state == "settled"


@pytest.mark.django_db(transaction=True)
async def test_a_message_that_alone_is_too_long_for_everybody_is_said_to_be_and_never_cut(world):
    """R9, R31."""
    listed = [{"id": "gpt-5.5", "label": "GPT-5.5", "context": 8_000}]
    codex = await look(world.account, "codex", known_models=listed)
    chat = await look(world.chat, "codex")

    turn = await world.say(chat, NOVEL * 1_000)

    assert (turn.state, turn.failure_code) == ("failed", "too_long")
    assert world.simulator.requests(codex.key.secret) == []


@pytest.mark.django_db(transaction=True)
async def test_what_a_provider_says_of_its_size_is_remembered_for_that_model(world):
    """R9, R31: shortened and asked once more in the same turn; the next turn is shortened before anything is sent."""
    key = await look(world.account, "openrouter", model="example/long", known_models=[])
    key.key.refuses("too_long").replies("Shortened.", times=2)
    chat = await look(a_long_chat, world, "openrouter", 400, NOVEL * 8, model="example/long")

    first = await world.say(chat, "And now?")
    second = await world.say(chat, "And now?")

    assert [turn.state for turn in (first, second)] == ["done", "done"]
    whole, shortened, again = (len(sent(world, key.key, at)) for at in range(3))
    assert whole == 401
    assert shortened < whole
    assert again < whole
    assert len(world.simulator.requests(key.key.secret)) == 3
    known = await look(Ability.objects.get)
    assert (known.model, known.fits) == ("example/long", 32_000 - 4_096)
    assert [kind for kind, _ in await world.lines(chat)] == ["handoff.shortened"]


@pytest.mark.django_db(transaction=True)
async def test_a_size_that_isnt_said_is_taken_for_half_of_what_didnt_fit(world):
    """R31."""
    codex = await look(world.account, "codex")
    codex.key.refuses("too_long").replies("Shortened.", times=2)
    chat = await look(a_long_chat, world, "codex", 100, NOVEL * 4)

    await world.say(chat, "And now?")
    await world.say(chat, "And now?")

    whole, shortened, again = (len(sent(world, codex.key, at)) for at in range(3))
    assert whole == 101
    assert abs(shortened - 50) < 8
    assert 40 < again < 80
    assert len(world.simulator.requests(codex.key.secret)) == 3


@pytest.mark.django_db(transaction=True)
async def test_how_a_provider_counts_corrects_what_fits_and_what_is_held(world):
    """R26: the next prompt is counted as that model's last one came to; a short prompt teaches nothing."""
    key = await look(world.account, "anthropic", model="claude-sonnet-4-5")
    await world.prefers(month_budget_nano=100 * 10**9)
    key.key.replies("Fine.", input_tokens=9).replies("One.", input_tokens=12_000).replies("Two.", hold_after=1)
    short = await look(world.chat, "anthropic", model="claude-sonnet-4-5")
    await world.say(short, "hi")
    assert not await look(Ability.objects.exists)
    chat = await look(a_long_chat, world, "anthropic", 100, NOVEL * 4, model="claude-sonnet-4-5")

    await world.say(chat, "And now?")
    known = await look(Ability.objects.get)
    turn = await look(Turn.objects.filter(conversation=chat).latest, "pk")
    counted = sum(one.tokens for one in await look(handoff.history, turn, {}))

    assert known.ratio == pytest.approx(12_000 / counted, rel=0.01)
    assert known.ratio != 1.0
    await doors.send(world.person.pk, chat.pk, "And then?", clock=world.time.clock)
    await asyncio.to_thread(world.simulator.wait_for, 3, key.key.secret)
    held = await look(lambda: Entry.objects.latest("pk"))
    assert (held.state, held.input_tokens) == ("held", pytest.approx(12_000, rel=0.02))
    key.key.release()
    await world.settled(turn)
