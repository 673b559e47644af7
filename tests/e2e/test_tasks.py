"""Agents, background tasks and routines in Chromium: keyboard, no script, phone and desk, both themes (R24, R25)."""

import pytest

from conch.models import Agent, Conversation, Routine, RoutineRun, Task, Turn
from tests.conftest import NOW
from tests.e2e.chat_site import DESK, PHONE, a_chat, a_turn, address, browser, say, shown, violations, world  # noqa: F401

PAGES = ("agents", "agents/new", "agents/{agent}", "agents/{agent}/delete", "tasks", "tasks/routines/new",
         "tasks/routines/{routine}", "tasks/routines/{routine}/delete")  # fmt: skip
HELD = {"code": "held", "label": "Codex", "until": "2099-10-09T16:00:00Z"}
WAITING = {
    "why": "needs_budget", "from": "codex", "from_label": "Codex", "for": "codex", "until": "2099-10-09T16:00:00Z",
    "could": {"slug": "openai", "label": "OpenAI", "billing": "key", "per_reply": "0.02"},
}  # fmt: skip


@pytest.fixture
def full(world):  # noqa: F811  the fixture's own value
    """Ada with an agent, tasks in every state, and routines that ran, were held and are off."""
    person = world.person
    world.codex = world.account("codex", label="Codex")
    agent = Agent.objects.create(
        person=person, name="Reviewer", instructions="Be brief. Say what would break.", account="codex", created_at=NOW
    )
    for state in ("done", "failed", "waiting", "stopped"):
        turn = a_turn(
            a_chat(person, unread=state == "done", title=state),
            text=f"Read everything about indexes and say what matters ({state})",
            answer="Three things matter." if state == "done" else "",
            state=state,
            failure_code="signed_out" if state == "failed" else "",
            failure={"code": "signed_out", "label": "Codex", "account": "codex"} if state == "failed" else {},
        )
        Task.objects.create(person=person, conversation=turn.conversation, turn=turn, created_at=NOW)
        if state == "waiting":
            turn.lines.create(conversation=turn.conversation, kind="limit.waiting", data=WAITING, at=NOW)
    given = {"person": person, "text": "What is new?", "created_at": NOW, "zone": "Europe/Berlin"}
    routine = Routine.objects.create(name="Morning news", cron="0 9 * * 1-5", next_at=NOW.replace(year=2099), **given)
    held = a_turn(a_chat(person), state="failed", answer="", failure_code="held", failure=HELD)
    RoutineRun.objects.create(routine=routine, turn=held, planned_at=NOW, started_at=NOW)
    Routine.objects.create(name="Backup report", cron="*/30 8-18 * * *", active=False, agent=agent, **given)
    world.paths = [name.format(agent=agent.pk, routine=routine.pk) for name in PAGES]
    world.agent = agent
    return world


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_every_page_is_whole_and_axe_finds_nothing(browser, address, full, viewport, scheme):  # noqa: F811
    """copy.md 6: 0 violations, no sideways scroll, nothing refused by the content policy."""
    with shown(browser, address, full.person, "/settings", viewport=viewport, color_scheme=scheme) as page:
        for path in [f"/settings/{name}" for name in full.paths] + [f"/?agent={full.agent.pk}"]:
            page.goto(path)

            assert violations(page) == "[]", path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
            assert page.locator("h1").count() == 1
        assert page.said == []


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_the_list_and_a_schedule_are_whole_in_the_other_theme_too(browser, address, full, viewport, scheme):  # noqa: F811
    with shown(browser, address, full.person, "/settings/tasks", viewport=viewport, color_scheme=scheme) as page:
        assert violations(page) == "[]"
        page.goto("/settings/tasks/routines/new")
        page.get_by_label("Name").fill("News")
        page.get_by_label("Prompt").fill("What is new?")
        page.get_by_label("How often").select_option("cron")
        page.get_by_label("Cron expression").fill("every day")
        page.get_by_role("button", name="Save").click()
        page.locator(".err").first.wait_for()
        assert violations(page) == "[]"


def test_at_320_pixels_nothing_scrolls_sideways(browser, address, full):  # noqa: F811
    """WCAG 1.4.10."""
    with shown(browser, address, full.person, "/settings/tasks", viewport={"width": 320, "height": 700}) as page:
        for path in full.paths:
            page.goto(f"/settings/{path}")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_a_task_runs_while_its_page_is_open_or_not_and_the_list_follows(browser, address, full):  # noqa: F811
    """R25: by keyboard; its end is spoken, and its chat is marked."""
    full.codex.key.replies("It is all about the order of columns.")
    with shown(browser, address, full.person, "/settings/tasks") as page:
        page.get_by_label("Prompt").fill("Say what an index is")
        page.get_by_label("Answered by").select_option("codex")
        page.get_by_role("button", name="Run it").focus()
        page.keyboard.press("Enter")
        page.get_by_text("It is all about the order of columns.").wait_for()

        assert page.get_by_text("It runs. You can close this page.").count() == 1
        row = page.locator(".task", has_text="Say what an index is")
        assert row.locator(".tag").all_inner_texts() == ["Done", "New"]
        row.get_by_role("link", name="Open the chat").click()
        page.get_by_role("article", name="Codex").get_by_text("order of columns").wait_for()
        page.goto("/settings/tasks")
        assert page.locator(".task", has_text="Say what an index is").locator(".tag").all_inner_texts() == ["Done"]
        assert page.said == []


def test_what_a_waiting_task_offers_can_be_pressed_from_the_list(browser, address, full):  # noqa: F811
    """copy.md 4.2: away, no budget."""
    with shown(browser, address, full.person, "/settings/tasks") as page:
        row = page.locator(".task", has_text="(waiting)")
        assert "While you’re away, that needs a month’s budget." in row.inner_text()
        assert row.get_by_role("link", name="Set a budget").count() == 1
        assert row.get_by_role("button", name="Use it for this message").count() == 1
        row.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped.", exact=True).first.wait_for()
        assert Turn.objects.get(text__contains="(waiting)").state == "stopped"


def test_a_routine_is_made_by_keyboard_and_only_the_fields_it_needs_are_shown(browser, address, full):  # noqa: F811
    with shown(browser, address, full.person, "/settings/tasks/routines/new") as page:
        often = page.get_by_label("How often")
        fields = {name: page.locator(f".if-{name}") for name in ("at", "weekday", "monthday", "cron")}

        def visible():
            return [name for name, field in fields.items() if field.is_visible()]

        assert visible() == ["at"]
        often.select_option("month")
        assert visible() == ["at", "monthday"]
        often.select_option("cron")
        assert visible() == ["cron"]
        often.select_option("week")
        assert visible() == ["at", "weekday"]
        page.get_by_label("Name").fill("Monday plan")
        page.get_by_label("Prompt").fill("Plan my week")
        page.get_by_label("On", exact=True).select_option("Monday")
        page.get_by_label("Name").focus()
        page.keyboard.press("Enter")
        page.get_by_text("Every Monday at 9:00 AM").wait_for()

        assert Routine.objects.get(name="Monday plan").cron == "0 9 * * 1"
        assert page.said == []


def test_without_script_all_of_it_can_be_done(browser, address, full):  # noqa: F811
    """copy.md 6: forms post."""
    with shown(browser, address, full.person, "/settings/agents/new", script=False) as page:
        page.get_by_label("Name").fill("Translator")
        page.get_by_role("button", name="Save").click()
        assert Agent.objects.filter(name="Translator").exists()

        page.goto("/settings/tasks")
        row = page.locator(".task", has_text="Morning news")
        assert "Held: Codex is at its limit until" in row.inner_text()
        row.get_by_role("button", name="Switch off").click()
        assert Routine.objects.get(name="Morning news").active is False
        page.get_by_role("link", name="Make a routine").click()
        page.get_by_label("Name").fill("Evening")
        page.get_by_label("Prompt").fill("Sum up")
        page.get_by_label("How often").select_option("cron")
        page.get_by_label("Cron expression").fill("0 25 * * *")
        page.get_by_role("button", name="Save").click()
        assert "That isn’t a cron expression: bad hour." in page.content()
        page.get_by_label("Cron expression").fill("0 20 * * *")
        page.get_by_role("button", name="Save").click()
        assert Routine.objects.get(name="Evening").cron == "0 20 * * *"


def test_a_chat_starts_with_an_agent_chosen_in_the_new_chat(browser, address, full):  # noqa: F811
    """R24: the model is told its instructions."""
    full.codex.key.replies("Brief.")
    with shown(browser, address, full.person, "/?new") as page:
        page.get_by_label("Agent").select_option("Reviewer")
        page.get_by_role("button", name="Use", exact=True).click()
        page.get_by_text("What Reviewer is told").wait_for()
        say(page, "Look at this")
        page.get_by_text("Brief.").wait_for()

        chat = Conversation.objects.get(agent=full.agent.pk)
        assert chat.instructions == "Be brief. Say what would break."
        assert "Say what would break." in str(full.simulator.requests(full.codex.key.secret)[-1])
        assert page.said == []


def test_an_agent_whose_account_is_gone_keeps_the_message_in_the_composer(browser, address, full):  # noqa: F811
    """R36: said before the chat is made, and again when it is sent; nothing is made."""
    full.codex.row.state = "signed_out"
    full.codex.row.save()
    before = Conversation.objects.count()
    with shown(browser, address, full.person, f"/?agent={full.agent.pk}") as page:
        problem = page.locator("#problem")
        assert problem.inner_text().startswith("The account of the agent Reviewer, Codex, is signed out.")
        say(page, "Look at this")
        page.locator("#problem", has_text="Nothing was sent.").wait_for()

        assert page.get_by_label("Message", exact=True).input_value() == "Look at this"
        assert Conversation.objects.count() == before
