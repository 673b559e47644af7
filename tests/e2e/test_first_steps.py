"""First steps and the choice of a local model in Chromium: keyboard, no script, phone and desk, both themes."""

from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from conch.accounts import signin
from conch.engines import local, local_chosen, local_models
from conch.engines.registry import engine
from conch.models import Account, Turn
from tests import weights
from tests.bare_computer import bare, install  # noqa: F401  a fixture, found by name
from tests.conftest import make_person
from tests.e2e.settings_site import address, browser, opened, violations  # noqa: F401  fixtures, found by name

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
KEY = "sk-made-up-0123456789abcdef4f2a"


@pytest.fixture
def ada(transactional_db):
    return make_person("ada", is_owner=True)


@pytest.fixture
def found(bare, simulator, monkeypatch):  # noqa: F811
    """A computer with a ChatGPT sign-in, a program that is signed out, two keys and a model server; all simulated."""
    for engine_id, official in simulator.base_urls.items():
        monkeypatch.setattr(type(engine(engine_id)), "official_base_url", official)
    weights.put_into(bare / "data")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-made-up-0123456789abcdef")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(local, "PORTS", (urlsplit(simulator.url).port,))
    install(bare, "claude", "2.1.332 (Claude Code)")
    simulator.codex("ada@work.example", bare / ".codex")
    simulator.key(KEY)
    simulator.key("none").replies("Hello from there.")
    return simulator


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark"), (DESK, "dark"), (PHONE, "light")])
def test_both_pages_are_whole_and_axe_finds_nothing(browser, address, ada, found, viewport, scheme):  # noqa: F811
    """copy.md 6."""
    options = {"viewport": viewport, "color_scheme": scheme}
    with opened(browser, address, ada, "/welcome", **options) as page:
        for path in ("/welcome", "/settings/computer"):
            page.goto(path)

            assert violations(page) == "[]", path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
        assert page.said == []


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "dark"), (PHONE, "light")])
def test_the_pages_are_whole_in_their_other_states_too(browser, address, ada, found, monkeypatch, viewport, scheme):  # noqa: F811
    """A key that isn't accepted, a server that ended since it was chosen, one named by the environment, a guest."""
    look = {"viewport": viewport, "color_scheme": scheme}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-accepted-0123456789")
    local_chosen.choose(local_models.setup().folder, local_chosen.Chosen("http://127.0.0.1:9/v1", "gone"))
    with opened(browser, address, ada, "/welcome", **look) as page:
        page.get_by_role("button", name="Connect OpenAI", exact=True).click()
        page.get_by_role("alert").get_by_text("OpenAI doesn’t accept this key.").wait_for()
        assert violations(page) == "[]"
        page.goto("/settings/computer")
        page.get_by_text("doesn’t answer now").wait_for()
        assert violations(page) == "[]"
        monkeypatch.setenv("CONCH_LOCAL_URL", "http://127.0.0.1:9/v1")
        page.reload()
        page.get_by_text("CONCH_LOCAL_URL in the environment says").wait_for()
        assert violations(page) == "[]"
    with opened(browser, address, make_person("bob"), "/welcome", **look) as page:
        assert violations(page) == "[]"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_owners_first_sign_in_shows_it_and_skipping_goes_to_the_chat(browser, address, ada, found):  # noqa: F811
    context = browser.new_context(base_url=address, viewport=DESK)
    page = context.new_page()
    page.goto(f"/signin/{signin.make_link(ada, timezone.now())}")

    assert page.locator("h1").inner_text() == "First steps"
    page.get_by_role("link", name="Go to the chat").click()

    page.get_by_role("heading", name="What would you like to know?").wait_for()
    assert Account.objects.count() == 0
    assert local_chosen.chosen(local_models.setup().folder) is None
    assert found.requests() == []
    context.close()


@pytest.mark.parametrize("script", [True, False])
def test_by_keyboard_alone_a_sign_in_and_a_model_are_taken_and_it_answers(browser, address, ada, found, script):  # noqa: F811
    """copy.md 5, 6: each with one press, also without script."""
    with opened(browser, address, ada, "/welcome", viewport=DESK, java_script_enabled=script) as page:
        page.get_by_role("button", name="Connect Codex", exact=True).focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Open Codex").wait_for()
        assert Account.objects.get().whose == "ada@work.example"
        page.get_by_text("Codex is connected.").wait_for()

        page.get_by_label("Answers with").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("gpt-5.5 answers on this computer now.").wait_for()
        assert page.url == f"{address}/welcome"
        assert page.get_by_text("In use", exact=True).is_visible()

        page.goto("/settings/computer")
        page.get_by_label("Ask it something").fill("Hello")
        page.get_by_role("button", name="Ask").press("Enter")
        page.get_by_text("Hello from there.").wait_for()
        page.get_by_role("button", name="Go back to SmolLM2 135M").press("Enter")
        page.get_by_text("SmolLM2 135M answers on this computer now.").wait_for()
        assert page.said == []


def test_a_chat_with_the_model_here_is_answered_by_the_chosen_one(browser, address, ada, found):  # noqa: F811
    with opened(browser, address, ada, "/welcome", viewport=PHONE, has_touch=True) as page:
        page.get_by_role("button", name="Use it").tap()
        page.get_by_text("gpt-5.5 answers on this computer now.").wait_for()
        page.goto("/?new=1&account=local")
        page.get_by_role("textbox", name="Message").fill("Hi")
        page.get_by_role("button", name="Send").tap()
        page.get_by_text("Hello from there.").wait_for()

        turn = Turn.objects.get()
        assert (turn.account, turn.model) == ("local", "gpt-5.5")
        assert page.said == []
