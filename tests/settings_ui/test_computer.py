"""This computer: what is said of the model here, and choosing a server that was found."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from conch.engines import local, local_chosen
from conch.engines.local_chosen import Chosen
from conch.engines.registry import engine
from conch.models import Conversation, Turn
from routing.known import question_for_settings
from tests import weights
from tests.bare_computer import bare  # noqa: F401  a fixture, found by name
from tests.conftest import NOW, make_account

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def tables(transactional_db):
    """Another model wakes turns, in a transaction of its own."""


def words(response):
    return " ".join(response.content.decode().split())


def test_without_a_model_it_says_how_to_get_one(signed_in):
    said = signed_in.get("/settings/computer").content.decode()

    assert "There’s no model on this computer yet." in said
    assert "CONCH_LOCAL_URL" in said
    assert "Try it" not in said


def test_only_its_owner_is_told_what_runs_on_this_machine(visitor):
    said = visitor.get("/settings/computer").content.decode()

    assert "is running" not in said
    assert "Found on this computer" not in said


@pytest.mark.parametrize("text", ["", "x" * 2001])
def test_a_question_that_is_none_is_said_beside_the_field(signed_in, text):
    response = signed_in.post("/settings/computer/try", {"text": text})

    assert response.status_code == 422


def test_trying_it_without_a_model_says_why(signed_in):
    response = signed_in.post("/settings/computer/try", {"text": "Hello"})

    assert response.status_code == 200
    assert "There’s no model on this computer yet." in response.content.decode()


@pytest.fixture
def running(simulator, bare, monkeypatch):  # noqa: F811
    """An OpenAI-compatible server that wants no key, found where Ollama would be; answers, and its address."""
    monkeypatch.setattr(local, "PORTS", (urlsplit(simulator.url).port,))
    simulator.key("none").replies("Hello from there.")
    yield simulator.base_urls["openai"]
    async_to_sync(engine("local").close)()


def chosen(bare):  # noqa: F811
    return local_chosen.chosen(bare / "data")


def test_a_found_server_is_used_only_after_a_press_and_left_again_by_another(signed_in, running, bare):  # noqa: F811
    weights.put_into(bare / "data")
    before = words(signed_in.get("/settings/computer"))
    assert "Conch doesn’t use it until you say so." in before
    assert chosen(bare) is None

    after = words(signed_in.post("/settings/computer/use", {"url": running, "model": "gpt-5.5"}, follow=True))

    assert chosen(bare) == Chosen(running, "gpt-5.5")
    assert "gpt-5.5 answers on this computer now." in after
    assert "In use" in after
    assert "Go back to SmolLM2 135M" in after

    back = words(signed_in.post("/settings/computer/stop-using", follow=True))
    assert chosen(bare) is None
    assert "SmolLM2 135M answers on this computer now." in back
    assert "In use" not in back


def test_the_chosen_one_is_known_to_the_route_at_once_and_answers(signed_in, running, bare):  # noqa: F811
    """Preferences: a model of the person's own lets offline_fallback be on where it was never set."""
    make_account(signed_in.person)
    now = timezone.now()
    assert not question_for_settings(signed_in.person.pk, "codex", None, now).preferences.offline_fallback

    signed_in.post("/settings/computer/use", {"url": running, "model": "gpt-5.5"})

    question = question_for_settings(signed_in.person.pk, "codex", None, now)
    assert question.preferences.offline_fallback
    assert (question.local.present, question.local.model.id, question.local.tiny) == (True, "gpt-5.5", False)
    tried = words(signed_in.post("/settings/computer/try", {"text": "Hello"}))
    assert "Hello from there." in tried


def test_turns_that_wait_ask_again_once_another_model_is_here(signed_in, running):
    """R16."""
    chat = Conversation.objects.create(person=signed_in.person, account="codex", created_at=NOW, updated_at=NOW)
    later = timezone.now() + timedelta(hours=5)
    turn = Turn.objects.create(conversation=chat, state=Turn.State.WAITING, text="Hi", wake_at=later, created_at=NOW)

    signed_in.post("/settings/computer/use", {"url": running, "model": "gpt-5.5"})

    turn.refresh_from_db()
    assert turn.wake_at <= timezone.now()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"model": "nobodys"}, "doesn’t list that model"),
        ({}, "doesn’t list that model"),
        ({"url": "http://169.254.169.254/v1", "model": "gpt-5.5"}, "doesn’t answer any more"),
        ({"url": "", "model": "gpt-5.5"}, "doesn’t answer any more"),
    ],
)
def test_only_what_is_found_now_can_be_chosen(signed_in, running, bare, sent, said):  # noqa: F811
    """Bad input: a stale page, or an address that nobody found."""
    answered = signed_in.post("/settings/computer/use", {"url": running} | sent)

    assert answered.status_code == 422
    assert said in words(answered)
    assert chosen(bare) is None


def test_a_server_that_ended_since_it_was_chosen_is_said_with_the_way_back(signed_in, bare):  # noqa: F811
    local_chosen.choose(bare / "data", Chosen("http://127.0.0.1:11434/v1", "llama3.2:3b"))

    said = words(signed_in.get("/settings/computer"))

    assert "Ollama doesn’t answer now." in said
    assert "Stop using it" in said


def test_the_environment_comes_first_and_the_page_says_so(signed_in, running, bare, monkeypatch):  # noqa: F811
    """doors.md: CONCH_LOCAL_URL."""
    monkeypatch.setenv("CONCH_LOCAL_URL", "http://127.0.0.1:9/v1")

    said = words(signed_in.get("/settings/computer"))
    assert "CONCH_LOCAL_URL in the environment says which one answers" in said
    assert "Use it" not in said
    assert signed_in.post("/settings/computer/use", {"url": running, "model": "gpt-5.5"}).status_code == 409
    assert chosen(bare) is None


def test_only_the_owner_chooses_for_the_machine(visitor, running, bare):  # noqa: F811
    local_chosen.choose(bare / "data", Chosen(running, "gpt-5.5"))

    assert visitor.post("/settings/computer/use", {"url": running, "model": "gpt-5.4"}).status_code == 404
    assert visitor.post("/settings/computer/stop-using").status_code == 404
    assert chosen(bare).model == "gpt-5.5"
    said = words(visitor.get("/settings/computer"))
    assert "Use it" not in said
    assert "Stop using it" not in said


def test_choosing_takes_a_press_and_goes_back_to_pages_of_ours_only(signed_in, running):
    assert signed_in.get("/settings/computer/use").status_code == 405
    assert signed_in.get("/settings/computer/stop-using").status_code == 405
    given = {"url": running, "model": "gpt-5.5"}
    assert signed_in.post("/settings/computer/use", given | {"next": "/welcome"})["Location"] == "/welcome"
    for elsewhere in ("https://evil.example/", "//evil.example", ""):
        answered = signed_in.post("/settings/computer/use", given | {"next": elsewhere})
        assert answered["Location"] == "/settings/computer"
