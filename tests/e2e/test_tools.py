"""Tools in Chromium: connecting a server, saying what may run, turning it on in a chat; keyboard, no script, axe."""

import pytest
from django.utils import timezone

from conch.models import Account, Conversation, ToolPermission, ToolServer
from tests.e2e.settings_site import ada, address, browser, opened, violations  # noqa: F401  fixtures, found by name
from tests.tools.site import HERE, listed, program, server_of

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
LONG = "Searches every note that you ever wrote, by words, by day and by what it is about. " * 6


@pytest.fixture
def servers(ada):  # noqa: F811
    notes = server_of(
        ada,
        "Notes",
        command=["uvx", "notes-server", "--folder", "/data/notes"],
        secrets={"NOTES_TOKEN": "for-it-alone"},
        tools=[
            listed("search", LONG, title="search"),
            listed("write", "Write a note down."),
            listed("delete_every_note_of_a_day_or_of_a_week", "Deletes."),
        ],
    )
    server_of(ada, "Library", url="https://library.example/mcp", trouble={"code": "unreachable"}, tools=[listed()])
    ToolPermission.objects.create(server=notes, tool="search", permission="always", digest=LONG)
    return notes


def chat_of(person, **fields):
    now = timezone.now()
    return Conversation.objects.create(
        person=person, account="codex-2", title="Oats", created_at=now, updated_at=now, **fields
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_every_page_of_tools_is_whole_and_axe_finds_nothing(browser, address, ada, servers, viewport, scheme):  # noqa: F811
    """copy.md 6: 0 violations, no sideways scroll, nothing refused by the content policy."""
    chat = chat_of(ada, tools=["notes"])
    pages = ("", "/connect/program", "/connect/address", "/notes", "/library", "/notes/remove")
    with opened(browser, address, ada, viewport=viewport, color_scheme=scheme) as page:
        for name in [*(f"/settings/tools{name}" for name in pages), "/settings/agents/new"]:
            page.goto(name)

            assert violations(page) == "[]", name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
        for name in (f"/c/{chat.pk}", "/?new"):
            page.goto(name)
            page.locator(".tools-pick").click()

            assert violations(page) == "[]", name
            assert page.locator("#tools").is_visible()
        assert page.said == []


def test_the_owner_connects_a_program_by_keyboard(browser, address, ada, tmp_path):  # noqa: F811
    told = HERE | {"NOTES_FILE": str(tmp_path / "notes")}
    with opened(browser, address, ada, "/settings/tools") as page:
        page.get_by_role("link", name="Connect a program").press("Enter")
        page.get_by_label("Name").fill("Notes")
        page.get_by_label("Command").fill(" ".join(program("notes")))
        page.get_by_label("Environment").fill("\n".join(f"{name}={value}" for name, value in told.items()))
        page.get_by_role("button", name="Connect").press("Enter")
        page.get_by_text("Notes is connected, with 4 tools.").wait_for()

        assert page.get_by_label("write a note").input_value() == "ask"
        assert page.get_by_label("Environment").input_value() == ""


def test_what_may_run_is_kept_as_it_is_chosen(browser, address, ada, servers):  # noqa: F811
    with opened(browser, address, ada, "/settings/tools/notes") as page:
        page.get_by_label("write").select_option("never")
        page.locator("#live", has_text="Saved.").wait_for(state="attached")

    kept = dict(ToolPermission.objects.filter(server=servers).values_list("tool", "permission"))
    assert kept == {"search": "always", "write": "never"}


def test_what_may_run_is_kept_without_script_too(browser, address, ada, servers):  # noqa: F811
    with opened(browser, address, ada, "/settings/tools/notes", java_script_enabled=False) as page:
        page.get_by_label("write").select_option("always")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved.").first.wait_for()

    assert ToolPermission.objects.get(server=servers, tool="write").permission == "always"


def test_a_chat_turns_a_server_on_and_off_and_its_button_says_so(browser, address, ada, servers):  # noqa: F811
    chat = chat_of(ada)
    with opened(browser, address, ada, f"/c/{chat.pk}") as page:
        page.get_by_role("button", name="Tools: none. Change").press("Enter")
        page.get_by_role("switch", name="Notes").press("Space")
        page.get_by_role("button", name="Tools: Notes. Change").wait_for()
        on = list(Conversation.objects.values_list("tools", flat=True))
        page.get_by_role("switch", name="Notes").press("Space")
        page.get_by_role("button", name="Tools: none. Change").wait_for()

    assert on == [["notes"]]
    assert Conversation.objects.get().tools == []


def test_a_chat_turns_a_server_on_without_script(browser, address, ada, servers):  # noqa: F811
    chat = chat_of(ada)
    with opened(browser, address, ada, f"/c/{chat.pk}", java_script_enabled=False) as page:
        page.get_by_role("button", name="Tools: none. Change").click()
        page.get_by_role("switch", name="Notes").check()
        page.locator("#tools").get_by_role("button", name="Save").click()
        page.get_by_role("button", name="Tools: Notes. Change").wait_for()

    assert Conversation.objects.get().tools == ["notes"]


def test_a_new_chat_keeps_its_tools_when_another_account_or_model_is_picked(browser, address, ada, servers):  # noqa: F811
    models = [{"id": "gpt-5.5", "label": "GPT-5.5"}, {"id": "gpt-5.5-mini", "label": "GPT-5.5 mini"}]
    Account.objects.filter(slug="codex-2").update(known_models=models)
    with opened(browser, address, ada, "/?new") as page:
        page.get_by_role("button", name="Tools in this chat").click()
        page.get_by_role("switch", name="Notes").check()
        page.keyboard.press("Escape")
        page.locator("#pick").click()
        page.locator("#who").get_by_role("link", name="Anthropic").click()
        page.wait_for_url("**account=anthropic**")
        by_link = page.locator("#tool-notes").is_checked()
        page.locator("#pick").click()
        page.locator("#who summary").click()
        page.locator("#who select").select_option("gpt-5.5-mini")
        page.locator("#who").get_by_role("button", name="Use").click()
        page.wait_for_url("**model=gpt-5.5-mini**")

        assert by_link
        assert page.locator("#tool-notes").is_checked()
        assert not page.locator("#tool-library").is_checked()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without"])
def test_a_new_chat_begins_with_the_tools_chosen_for_it(browser, address, ada, servers, script):  # noqa: F811
    with opened(browser, address, ada, "/?new&account=local", java_script_enabled=script) as page:
        page.get_by_role("button", name="Tools in this chat").click()
        page.get_by_role("switch", name="Notes").check()
        page.keyboard.press("Escape")
        page.get_by_label("Message", exact=True).fill("What do my notes say of oats?")
        page.get_by_role("button", name="Send").click()
        page.get_by_role("button", name="Tools: Notes. Change").wait_for()

    assert ToolServer.objects.filter(slug__in=Conversation.objects.get().tools).get() == servers
