"""Lists of models read again by themselves: once a day an account, without a reply; what is picked stays so."""

import asyncio
from datetime import timedelta

import pytest
from django.test import Client

from conch.accounts import checking, lists
from conch.db import look
from conch.models import Ability, Account
from conch.turns import doors, worker
from conch.turns.worker import read_lists

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nobody_looks():
    lists.looking()


def asked(world):
    """Every request for a list that has arrived."""
    return [seen for seen in world.simulator.all_requests() if seen.path.endswith("/models")]


async def row_of(account):
    return await look(Account.objects.select_related("person").get, pk=account.row.pk)


async def listed(account):
    return [model["id"] for model in (await row_of(account)).known_models]


async def a_day_later(world, **more):
    world.time.moves(days=1, **more)
    await read_lists(world.time.clock)


async def test_a_model_that_came_and_one_that_went_are_followed_within_a_day(world):
    """R12: what is offered is what the provider lists, without a press and without a reply."""
    openai = await look(world.account, "openai", known_models=[{"id": "gpt-0", "label": "GPT-0"}])
    openai.key.lists = ({"id": "gpt-9", "context_length": 900_000},)
    openai.key.lacks = frozenset({"gpt-5.5"})

    await read_lists(world.time.clock)

    assert "gpt-9" in await listed(openai)
    assert not {"gpt-0", "gpt-5.5"} & set(await listed(openai))
    assert world.simulator.requests() == []
    assert {seen.method for seen in world.simulator.all_requests()} == {"GET"}


async def test_an_account_is_asked_once_a_day_however_often_it_is_looked_at(world):
    await look(world.account, "openai")
    for _ in range(3):
        await read_lists(world.time.clock)
    await read_lists(world.time.clock, people=[world.person.pk])
    once = len(asked(world))

    world.time.moves(hours=23)
    await read_lists(world.time.clock, people=[world.person.pk])
    early = len(asked(world))
    world.time.moves(hours=1)
    await read_lists(world.time.clock)

    assert (once, early, len(asked(world))) == (1, 1, 2)


async def test_two_processes_that_look_at_once_ask_once(world):
    openai = await look(world.account, "openai")

    await asyncio.gather(*(lists.read_if_due(openai.row.pk, world.time.now()) for _ in range(4)))

    assert len(asked(world)) == 1


@pytest.mark.parametrize("state", ["signed_out", "wrong_key", "disabled"])
async def test_an_account_that_is_signed_out_is_never_asked(world, state):
    """R36."""
    await look(world.account, "openai", state=state)

    await a_day_later(world)

    assert world.simulator.all_requests() == []


async def test_one_that_was_removed_is_never_asked(world):
    await look(world.account, "openai", removed_at=world.time.now())

    await a_day_later(world)

    assert world.simulator.all_requests() == []


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_list_that_cannot_be_read_stays_and_is_asked_for_less_and_less_often(world, status):
    openai = await look(world.account, "openai")
    openai.key.list_status = status
    before = await listed(openai)
    pauses = []

    for _ in range(14):
        await read_lists(world.time.clock)
        row = await row_of(openai)
        pauses.append(row.list_pause_until - row.list_failed_at)
        world.time.moves(seconds=pauses[-1].total_seconds() - 1)
        await read_lists(world.time.clock)
        world.time.moves(seconds=2)

    assert len(asked(world)) == 14
    assert pauses[:3] == [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4)]
    assert pauses[-1] == timedelta(days=1)
    assert await listed(openai) == before
    assert (await row_of(openai)).state == "ok"


async def test_a_list_that_is_read_again_is_due_a_day_later(world):
    openai = await look(world.account, "openai")
    openai.key.list_status = 500
    await read_lists(world.time.clock)
    openai.key.list_status = 200
    world.time.moves(minutes=2)

    await read_lists(world.time.clock)

    row = await row_of(openai)
    assert (row.list_failed_at, row.list_pause_until) == (None, None)
    assert await look(lists.due, world.time.now() + timedelta(hours=23, minutes=59)) == []
    assert await look(lists.due, world.time.now() + timedelta(days=1)) == [row.pk]


async def test_an_empty_list_overwrites_nothing(world):
    openai = await look(world.account, "openai")
    openai.key.lacks = frozenset(await every_model(world))

    await read_lists(world.time.clock)

    assert await listed(openai) == ["gpt-5.5"]
    assert (await row_of(openai)).list_failed_at is not None


async def every_model(world):
    """All that the simulated provider has."""
    other = await look(world.account, "openai", "other")
    await lists.read(await row_of(other), world.time.now())
    return await listed(other)


async def test_a_plan_that_gives_no_list_keeps_the_one_it_gave(world):
    """What Codex falls back to at connecting is no list of the provider's."""
    known = [{"id": "gpt-5.5", "label": "GPT-5.5"}, {"id": "gpt-5.5-mini", "label": "GPT-5.5 Mini"}]
    codex = await look(world.account, "codex", known_models=known)

    await read_lists(world.time.clock)

    assert await listed(codex) == ["gpt-5.5", "gpt-5.5-mini"]
    assert (await row_of(codex)).list_failed_at is not None


async def test_nothing_but_the_list_is_written(world):
    """What somebody changed while the provider was asked stays changed."""
    openai = await look(world.account, "openai", known_models=[])
    row = await row_of(openai)
    await look(Account.objects.filter(pk=row.pk).update, label="Work", model="gpt-5.5-mini", carries_on=False)

    await lists.read(row, world.time.now())

    after = await row_of(openai)
    assert (after.label, after.model, after.carries_on) == ("Work", "gpt-5.5-mini", False)
    assert after.known_models


@pytest.mark.parametrize("changed", [{"base_url": "http://127.0.0.1:9/v1"}, {"key_fingerprint": "another"}])
async def test_a_list_of_an_address_or_key_that_it_no_longer_has_is_not_kept(world, changed):
    openai = await look(world.account, "openai")
    row = await row_of(openai)
    await look(Account.objects.filter(pk=row.pk).update, **changed)

    assert not await lists.read(row, world.time.now())
    assert await listed(openai) == ["gpt-5.5"]


async def test_what_is_picked_stays_picked_and_the_turn_says_that_it_is_gone(world):
    """R12, copy 4.2: nothing is picked in its place, neither for the chat nor for the account."""
    openai = await look(world.account, "openai")
    chat = await look(world.chat, "openai", model="gpt-5.5")
    openai.key.lacks = frozenset({"gpt-5.5"})

    await a_day_later(world)
    turn = await world.say(chat)

    assert "gpt-5.5" not in await listed(openai)
    assert (await row_of(openai)).model == "gpt-5.5"
    assert (turn.state, turn.failure_code, turn.model) == ("failed", "model_gone", "gpt-5.5")


async def test_the_picker_of_a_chat_says_that_its_model_is_not_listed_any_more(world):
    openai = await look(world.account, "openai")
    chat = await look(world.chat, "openai", model="gpt-5.5")
    openai.key.lacks = frozenset({"gpt-5.5"})
    await a_day_later(world)

    page = await look(page_of, world.person, f"/c/{chat.pk}")

    assert '<option value="gpt-5.5" selected>gpt-5.5 (not in its list any more)</option>' in page


def page_of(person, path):
    client = Client()
    client.force_login(person)
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("path", ["/", "/settings/providers", "/settings/providers/openai", "/settings/agents/new"])
async def test_a_page_with_models_has_old_lists_read_after_it_and_asks_nobody_itself(world, path):
    await look(world.account, "openai")
    await look(page_of, world.person, path)
    meanwhile = world.simulator.all_requests()

    await read_lists(world.time.clock, people=lists.looking())

    assert meanwhile == []
    assert len(asked(world)) == 1
    assert lists.looking() == set()


async def test_the_worker_reads_what_a_page_showed(world, monkeypatch):
    monkeypatch.setattr(worker, "LOOK_SECONDS", 0.01)
    openai = await look(world.account, "openai")
    stop = asyncio.Event()
    working = asyncio.create_task(worker.work(stop, world.time.clock))

    await look(page_of, world.person, "/")

    async with asyncio.timeout(20):
        while (await row_of(openai)).listed_at is None:  # noqa: ASYNC110  a row tells: the worker writes it
            await asyncio.sleep(0.01)
    stop.set()
    await working
    assert len(asked(world)) == 1


async def test_what_the_list_tells_of_a_model_is_read_with_it(world):
    """R9: images, tools, length."""
    router = await look(world.account, "openrouter", model="example/free", known_models=[{"id": "example/free"}])

    await read_lists(world.time.clock)

    told = {model["id"]: model for model in (await row_of(router)).known_models}
    small = next(model for name, model in told.items() if name.startswith("example/"))
    large = next(model for name, model in told.items() if not name.startswith("example/"))
    assert (small["tools"], small["images"], small["context"]) == (False, False, 32_000)
    assert (large["tools"], large["images"], large["context"]) == (True, True, 400_000)
    assert large["input_price"] is not None


async def test_where_the_list_tells_otherwise_what_refusals_taught_of_that_is_over(world):
    """R9: it was learned of the model as it was. The person's own word and the count of tokens stay."""
    known = [{"id": "gpt-9", "context": 100_000, "tools": None, "images": None}]
    openai = await look(world.account, "openai", model="gpt-9", known_models=known)
    openai.key.lists = ({"id": "gpt-9", "context_length": 900_000},)
    learned = {"fits": 50_000, "images": False, "ratio": 1.2, "context_set": 70_000, "at": world.time.now()}
    await look(Ability.objects.create, account=openai.row, model="gpt-9", **learned)

    await read_lists(world.time.clock)

    after = await look(Ability.objects.get)
    assert (after.fits, after.images, after.ratio, after.context_set) == (None, False, 1.2, 70_000)


async def test_check_now_reads_the_list_at_once(world):
    openai = await look(world.account, "openai", listed_at=world.time.now())
    openai.key.lists = ({"id": "gpt-9"},)

    await checking.check(await row_of(openai), world.time.now())

    assert "gpt-9" in await listed(openai)


async def test_a_waiting_turn_asks_its_route_again_when_a_list_has_changed(world):
    """R16: somebody may take now what nobody could."""
    openai = await look(world.account, "openai")
    await world.prefers(limit_fallback="wait")
    codex = await look(world.account, "codex")
    codex.key.refuses("usage_limit", resets_in=36_000)
    chat = await look(world.chat, "codex")
    turn = await world.say(chat)
    woken_at = (await world.settled(turn)).wake_at

    openai.key.lists = ({"id": "gpt-9"},)
    await read_lists(world.time.clock)

    assert turn.state == "waiting"
    assert (await world.settled(turn)).wake_at < woken_at
    await doors.cancel(world.person.pk, turn.pk, clock=world.time.clock)
