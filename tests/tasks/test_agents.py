"""Agents: their pages, chats that start with one, what is said when its account is gone (R24, R36)."""

import pytest
from django.test import AsyncClient, Client

from conch.db import look
from conch.models import Account, Agent, Conversation, Routine
from conch.turns.run import all_ended
from tests.conftest import NOW, make_account, make_person

MODELS = [{"id": "gpt-5.5", "label": "GPT-5.5"}, {"id": "gpt-5.5-mini", "label": "GPT-5.5 mini"}]


@pytest.fixture
def ada(transactional_db):
    person = make_person("ada", is_owner=True)
    make_account(person, "codex", label="Codex", known_models=MODELS)
    return person


@pytest.fixture
def as_ada(ada):
    client = Client()
    client.force_login(ada)
    return client


def an_agent(person, **fields):
    given = {"name": "Reviewer", "instructions": "Be brief.", "account": "codex", "created_at": NOW} | fields
    return Agent.objects.create(person=person, **given)


def posted(**fields):
    return {"name": "Reviewer", "instructions": "Be brief.", "account": "codex", "model": ""} | fields


def page(response, status=200):
    assert response.status_code == status
    return response.content.decode()


def test_an_agent_is_made_changed_and_deleted(as_ada, ada):
    assert as_ada.post("/settings/agents/new", posted(model="gpt-5.5-mini")).status_code == 302
    agent = Agent.objects.get(person=ada)
    assert (agent.name, agent.instructions, agent.account, agent.model) == (
        "Reviewer", "Be brief.", "codex", "gpt-5.5-mini",
    )  # fmt: skip
    assert "Codex, in your plan. gpt-5.5-mini" in page(as_ada.get("/settings/agents"))

    as_ada.post(f"/settings/agents/{agent.pk}", posted(name="Critic", account=""))
    agent.refresh_from_db()
    assert (agent.name, agent.account, agent.model) == ("Critic", "", "")

    assert "No chat was started with it." in page(as_ada.get(f"/settings/agents/{agent.pk}/delete"))
    assert Agent.objects.exists(), "looking deletes nothing"
    as_ada.post(f"/settings/agents/{agent.pk}/delete")
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": " "}, "Give it a name."),
        ({"account": "nope"}, "That account isn’t connected. Choose who answers."),
        ({"model": "claude-9"}, "Codex doesn’t list that model."),
        ({"account": "", "model": "gpt-5.5"}, "Choose an account for this model."),
        ({"instructions": "x" * 20_001}, "At most 20,000 characters."),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(as_ada, wrong, said):
    html = page(as_ada.post("/settings/agents/new", posted(**wrong)), 422)

    assert said in html
    assert "Be brief." in html or "xxxx" in html
    assert not Agent.objects.exists()


def test_another_persons_agent_is_not_there(as_ada):
    theirs = an_agent(make_person("bob"))

    for path in (f"/settings/agents/{theirs.pk}", f"/settings/agents/{theirs.pk}/delete"):
        assert as_ada.get(path).status_code == 404
        assert as_ada.post(path, posted()).status_code == 404
    assert as_ada.get(f"/?agent={theirs.pk}").status_code == 404
    assert as_ada.post("/begin", {"text": "hi", "key": "k", "agent": theirs.pk}).status_code == 404
    assert "Reviewer" not in page(as_ada.get("/settings/agents"))
    assert Agent.objects.count() == 1


def test_deleting_an_agent_says_what_becomes_of_its_chats_and_routines(as_ada, ada):
    agent = an_agent(ada)
    chat = Conversation.objects.create(
        person=ada, account="codex", agent=agent.pk, instructions="Be brief.", created_at=NOW, updated_at=NOW
    )
    routine = Routine.objects.create(person=ada, name="News", text="?", cron="0 9 * * *", agent=agent, created_at=NOW)
    html = page(as_ada.get(f"/settings/agents/{agent.pk}/delete"))
    assert "1\u00a0chat that started with it goes on as before." in html
    assert "1\u00a0routine that uses it is switched off." in html

    as_ada.post(f"/settings/agents/{agent.pk}/delete")

    chat.refresh_from_db()
    routine.refresh_from_db()
    assert (chat.agent, chat.instructions) == (None, "Be brief.")
    assert routine.active is False


def test_a_new_chat_offers_the_agents_and_starts_as_the_chosen_one(as_ada, ada):
    agent = an_agent(ada, model="gpt-5.5-mini")

    plain, chosen = page(as_ada.get("/?new")), page(as_ada.get(f"/?agent={agent.pk}"))

    assert f'<option value="{agent.pk}">Reviewer</option>' in plain
    assert f'<option value="{agent.pk}" selected>Reviewer</option>' in chosen
    assert f'<input type="hidden" name="agent" value="{agent.pk}">' in chosen
    assert "GPT-5.5 mini" in chosen
    assert "Be brief." in chosen


def test_without_agents_nothing_of_them_is_in_the_way(as_ada):
    assert 'id="agent"' not in page(as_ada.get("/?new"))


@pytest.mark.parametrize("query", ["?agent=x", "?agent=99", "?agent=" + "9" * 30, "?agent=²"])
def test_an_agent_that_is_none_is_not_there(as_ada, query):
    assert as_ada.get(f"/{query}").status_code == 404


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"removed_at": NOW}, "The account of the agent Reviewer, Codex, isn’t connected any more."),
        ({"state": "signed_out"}, "The account of the agent Reviewer, Codex, is signed out."),
    ],
)
def test_an_agent_whose_account_is_gone_says_so_before_the_chat_is_made(as_ada, ada, changed, said):
    """R36: and the message stays in the composer."""
    agent = an_agent(ada)
    Account.objects.update(**changed)
    assert said in page(as_ada.get(f"/?agent={agent.pk}"))
    assert said in page(as_ada.get("/settings/agents"))
    typed = {"text": "Look at this.", "key": "k", "agent": agent.pk, "account": "codex", "model": "gpt-5.5"}

    parts = as_ada.post("/begin", typed, headers={"HX-Request": "true"})
    whole = as_ada.post("/begin", typed)

    assert (parts.status_code, parts.content.decode().startswith(said)) == (409, True)
    assert "Nothing was sent." in parts.content.decode()
    html = page(whole, 409)
    assert ">Look at this.</textarea>" in html
    assert said in html
    assert f'name="agent" value="{agent.pk}"' in html, "the form is still the agent's"
    assert not Conversation.objects.exists()


@pytest.mark.django_db(transaction=True)
async def test_the_first_message_makes_a_chat_with_what_the_agent_says(simulator, tmp_path, transactional_db):
    """R24: account, model and instructions; the model is told them. Another account may be chosen beside it."""
    from tests.tasks.conftest import TasksWorld

    world = await look(lambda: TasksWorld(make_person("ada", is_owner=True), simulator, tmp_path))
    codex = await look(world.account, "codex")
    other = await look(world.account, "codex", "codex-2")
    codex.key.replies("Brief.")
    other.key.replies("Also brief.")
    agent = await look(world.agent, account="codex", model="gpt-5.5")
    client = AsyncClient()
    await client.aforce_login(world.person)

    given = {"text": "hi", "key": "one", "agent": agent.pk, "account": "codex", "model": "gpt-5.5"}
    assert (await client.post("/begin", given)).status_code == 302
    assert (await client.post("/begin", given | {"key": "two", "account": "codex-2"})).status_code == 302
    await all_ended()

    first, second = await look(lambda: list(Conversation.objects.order_by("pk")))
    assert (first.agent, first.account, first.instructions) == (agent.pk, "codex", "Be brief.")
    assert (second.agent, second.account, second.instructions) == (agent.pk, "codex-2", "Be brief.")
    (asked,) = world.simulator.requests(codex.key.secret)
    assert "Be brief." in str(asked)


@pytest.mark.django_db(transaction=True)
def test_the_api_starts_a_conversation_with_an_agent(served_api, transactional_db):
    """doors.md: POST /api/conversations {agent}."""
    call, person = served_api
    make_account(person, "codex", label="Codex", known_models=MODELS)
    agent = an_agent(person, model="gpt-5.5-mini", tools=["search"])

    made = call.post("/api/conversations", json={"agent": agent.pk})
    assert made.status_code == 201
    told = {name: made.json()[name] for name in ("agent", "account", "model", "tools")}
    assert told == {"agent": agent.pk, "account": "codex", "model": "gpt-5.5-mini", "tools": ["search"]}
    assert Conversation.objects.get(pk=made.json()["id"]).instructions == "Be brief."

    own = call.post("/api/conversations", json={"agent": agent.pk, "account": "local", "tools": []}).json()
    assert (own["account"], own["tools"], own["agent"]) == ("local", [], agent.pk)

    theirs = an_agent(make_person("bob"))
    for unknown in (theirs.pk, 10**6, 10**30):
        refused = call.post("/api/conversations", json={"agent": unknown})
        assert refused.status_code in {404, 422}
        assert refused.headers["content-type"] == "application/problem+json"
    wrong = call.post("/api/conversations", json={"agent": agent.pk, "model": "claude-9"})
    assert wrong.status_code == 422


@pytest.mark.django_db(transaction=True)
def test_the_api_says_that_an_agents_account_is_gone_and_makes_nothing(served_api):
    """R36."""
    call, person = served_api
    make_account(person, "codex", label="Codex", state="signed_out")
    agent = an_agent(person)

    refused = call.post("/api/conversations", json={"agent": agent.pk})

    assert refused.status_code == 422
    assert "Codex, is signed out." in refused.json()["detail"]
    assert not Conversation.objects.exists()


@pytest.fixture
def served_api(transactional_db):
    from conch.asgi import application
    from tests.api.site import caller, served

    person = make_person("ada", is_owner=True)
    with served(application) as base, caller(base, person) as call:
        yield call, person
