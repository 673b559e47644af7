"""What a model can take: by its list, by what it answered, by the person's word; who is passed over (R9-R11, R17)."""

import json
from io import BytesIO

import pytest
from PIL import Image as Pillow

from conch.accounts.checking import check
from conch.copy import lines
from conch.copy.clock import Viewer
from conch.db import look
from conch.models import Ability, Account, Attempt, Picture
from conch.pictures import picture
from conch.turns.clock import SYSTEM
from routing.facts import Run
from routing.known import question_for_turn
from tests.simulator.scripts import Raw

pytestmark = pytest.mark.django_db(transaction=True)


def a_picture(colour="red"):
    written = BytesIO()
    Pillow.new("RGB", (40, 30), colour).save(written, "PNG")
    return picture(written.getvalue())


def listed(**what):
    return [{"id": "gpt-5.5", "label": "GPT-5.5"} | what]


def images_in(seen):
    return seen.body.count(b"data:image/png;base64,")


NO_EYES = Raw(404, {"error": {"code": 404, "message": "No endpoints found that support image input"}})
NO_HANDS = Raw(404, {"error": {"code": 404, "message": "No endpoints found that support tool use."}})


async def test_a_chat_with_an_image_passes_over_a_model_without_eyes(world):
    """R9, R10, R17: the next in order that sees answers; the blind one is not asked, and the picture goes along."""
    first = await look(world.account, "codex", label="Codex")
    blind = await look(world.account, "codex", "codex-2", label="Codex at work", known_models=listed(images=False))
    sees = await look(world.account, "codex", "codex-3", label="Codex at home", known_models=listed(images=True))
    first.key.refuses("usage_limit")
    blind.key.replies("I see nothing.")
    sees.key.replies("A red square.")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat, "What is this?", images=(a_picture(),))

    assert (turn.state, turn.account, turn.answer) == ("done", "codex-3", "A red square.")
    assert world.simulator.requests(blind.key.secret) == []
    assert [images_in(one) for one in world.simulator.requests(sees.key.secret)] == [1]
    ((kind, data),) = await world.lines(chat)
    said = lines.text(kind, data, Viewer(SYSTEM.now()))
    assert kind == "limit.routed"
    assert said.startswith("Codex reached its limit until ")
    assert said.endswith(" Codex at home is answering.")


async def test_nobody_who_sees_is_said_with_the_words_for_it_and_waits(world):
    """R16: it waits for its own account, which sees; the blind one is no help."""
    first = await look(world.account, "codex", label="Codex")
    blind = await look(world.account, "codex", "codex-2", known_models=listed(images=False))
    first.key.refuses("usage_limit")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat, "What is this?", images=(a_picture(),))

    assert (turn.state, turn.waits_for) == ("waiting", "codex")
    assert world.simulator.requests(blind.key.secret) == []


async def test_the_chats_own_account_without_eyes_says_so_before_anything_is_sent(world):
    """R11: with who could; nothing is switched."""
    own = await look(world.account, "codex", label="Codex", known_models=listed(images=False))
    await look(world.account, "codex", "codex-2", label="Codex at home")
    chat = await look(world.chat, "codex")

    turn = await world.say(chat, "What is this?", images=(a_picture(),))

    assert (turn.state, turn.failure_code) == ("failed", "cannot_carry_images")
    assert [offer["slug"] for offer in turn.failure["offers"]] == ["codex-2"]
    assert world.simulator.requests(own.key.secret) == []


async def test_older_images_are_left_out_for_a_model_without_eyes_and_the_line_says_so(world):
    """R9."""
    first = await look(world.account, "codex", label="Codex")
    blind = await look(world.account, "codex", "codex-2", label="Codex at work", known_models=listed(images=False))
    first.key.replies("A red square.").refuses("usage_limit")
    blind.key.replies("It was red.")
    chat = await look(world.chat, "codex")
    await world.say(chat, "What is this?", images=(a_picture(),))

    turn = await world.say(chat, "Which colour was it?")

    assert (turn.state, turn.account) == ("done", "codex-2")
    assert images_in(world.simulator.requests(blind.key.secret)[0]) == 0
    assert "An image was here" in world.simulator.requests(blind.key.secret)[0].body.decode()
    kind, data = (await world.lines(chat))[-1]
    assert lines.text(kind, data, Viewer(SYSTEM.now())) == "Codex at work can’t see the earlier images of this chat."


async def test_a_model_that_turns_out_to_have_no_eyes_is_believed_from_then_on_until_check_now(world):
    """R9: not known is taken as able, and corrected by what the provider answers."""
    key = await look(world.account, "openrouter", model="example/blind", known_models=[])
    key.key.does(NO_EYES).replies("I see it.")
    chat = await look(world.chat, "openrouter", model="example/blind")

    first = await world.say(chat, "What is this?", images=(a_picture(),))
    second = await world.say(chat, "What is this?", images=(a_picture(),))

    assert [turn.failure_code for turn in (first, second)] == ["cannot_carry_images"] * 2
    assert len(world.simulator.requests(key.key.secret)) == 1
    await check(await look(Account.objects.select_related("person").get, slug="openrouter"), world.time.now())
    third = await world.say(chat, "What is this?", images=(a_picture(),))
    assert (third.state, third.answer) == ("done", "I see it.")


async def test_older_images_that_a_model_turns_out_not_to_see_are_left_out_in_the_same_turn(world):
    """R9, R31: nothing fails for what is past."""
    codex = await look(world.account, "codex")
    key = await look(world.account, "openrouter", label="OpenRouter", model="example/blind", known_models=[])
    codex.key.replies("A red square.").refuses("usage_limit")
    key.key.does(NO_EYES).replies("It was red.")
    await world.prefers(limit_fallback="openrouter")
    chat = await look(world.chat, "codex")
    await world.say(chat, "What is this?", images=(a_picture(),))

    turn = await world.say(chat, "Which colour was it?")

    assert (turn.state, turn.account, turn.answer) == ("done", "openrouter", "It was red.")
    assert [images_in(one) for one in world.simulator.requests(key.key.secret)] == [1, 0]
    states = await look(lambda: list(Attempt.objects.filter(turn=turn).order_by("pk").values_list("account", "state")))
    assert states == [("codex", "refused"), ("openrouter", "passed"), ("openrouter", "done")]
    assert (await world.lines(chat))[-1][0] == "handoff.images"
    assert (await look(Ability.objects.get)).images is False


async def test_a_model_that_carries_on_and_turns_out_blind_is_passed_over_and_remembered(world):
    """R17."""
    first = await look(world.account, "codex")
    blind = await look(world.account, "openai", model="gpt-x")
    sees = await look(world.account, "openrouter", model="example/sees", known_models=[])
    first.key.refuses("usage_limit")
    blind.key.does(Raw(400, {"error": {"message": "This model does not support image inputs.", "code": None}}))
    sees.key.replies("A red square.")
    await world.prefers(limit_paid=True)
    chat = await look(world.chat, "codex")

    turn = await world.say(chat, "What is this?", images=(a_picture(),))

    assert (turn.state, turn.account) == ("done", "openrouter")
    known = await look(Ability.objects.get)
    assert (known.account_id, known.model, known.images, known.tools) == (blind.row.pk, "gpt-x", False, None)


async def test_the_persons_word_goes_before_what_was_learned_and_listed(world):
    """R9: overridable, also a context."""
    row = (await look(world.account, "openai", known_models=listed(images=False, tools=False, context=8_000))).row
    await look(
        Ability.objects.create,
        account=row,
        model="gpt-5.5",
        images=False,
        fits=2_000,
        images_set=True,
        tools_set=True,
        context_set=64_000,
        at=SYSTEM.now(),
    )
    turn = await world.say(await look(world.chat, "openai"), "hi")

    model = (await look(question_for_turn, turn.pk, Run(), SYSTEM.now())).ways[0].model

    assert (model.images, model.tools, model.context, model.most_input) == (True, True, 64_000, None)


async def test_what_a_list_does_not_say_the_bundled_one_may(world):
    """R9: the size of a model's context; what no list has stays unknown."""
    await look(world.account, "anthropic", model="claude-sonnet-4-5", known_models=[])
    await look(world.account, "openai", model="nobody-knows-it", known_models=[])
    turn = await world.say(await look(world.chat, "openai", model="nobody-knows-it"), "hi")

    ways = (await look(question_for_turn, turn.pk, Run(), SYSTEM.now())).ways

    assert ways[0].model.context == 200_000
    # In tokens as they are counted here: another model's own are taken for more, until a reply shows how many.
    assert ways[0].model.most_input == int((200_000 - 4_096) / 1.4)
    assert (ways[1].model.context, ways[1].model.most_input, ways[1].ratio) == (None, None, 1.0)


async def test_the_same_picture_is_kept_once_for_each_person(world):
    """However often it is sent; another person's is another's."""
    codex = await look(world.account, "codex")
    codex.key.replies("Red.", times=9)
    chat = await look(world.chat, "codex")

    for _ in range(3):
        turn = await world.say(chat, "What is this?", images=(a_picture(), a_picture("blue")))

    assert await look(Picture.objects.count) == 2
    assert await look(turn.attachments.count) == 2
    body = json.loads(world.simulator.requests(codex.key.secret)[-1].body)
    assert json.dumps(body).count("input_image") == 6
