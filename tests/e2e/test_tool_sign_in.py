"""Signing in to a tool server in Chromium: to its own page and back, allowed, refused, by keyboard, without script."""

import pytest

from conch.models import ToolServer
from conch.tools.grants import grant_of
from tests.e2e.settings_site import ada, address, browser, opened, violations  # noqa: F401  fixtures, found by name
from tests.tools.servers.guarded import guarded

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def site():
    with guarded() as running:
        yield running


def connects(page, site):
    """The person adds the server's address; it leads to the page that leads to the server's own."""
    page.goto("/settings/tools/connect/address")
    page.get_by_label("Name").fill("Books")
    page.get_by_label("Address").fill(site.url)
    page.get_by_role("button", name="Connect").press("Enter")
    page.get_by_label("Yes, call that address").check()
    page.get_by_role("button", name="Connect").press("Enter")
    page.get_by_role("heading", name="Sign in to Books").wait_for()


def wrong_with(page):
    """What axe finds, whether the page scrolls sideways, what the content policy has refused."""
    sideways = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    refused = [said for said in page.said if "status of 422" not in said]
    return [*([violations(page)] if violations(page) != "[]" else []), *(["sideways"] if sideways else []), *refused]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_a_server_is_added_signed_in_to_and_out_of_again(browser, address, ada, site, viewport, scheme):  # noqa: F811
    with opened(browser, address, ada, viewport=viewport, color_scheme=scheme) as page:
        connects(page, site)
        assert wrong_with(page) == []
        page.get_by_role("link", name="Go to 127.0.0.1").press("Enter")
        page.get_by_role("link", name="Allow").click()
        page.wait_for_url(f"{address}/settings/tools/books")
        page.get_by_text("You are signed in to Books, which has one tool.").wait_for()
        assert page.get_by_label("who am I").input_value() == "ask"
        assert wrong_with(page) == []

        page.get_by_role("button", name="Sign out").press("Enter")
        page.get_by_text("You are signed out of it.").wait_for()
        assert wrong_with(page) == []
        page.goto("/settings/tools")
        assert page.get_by_role("button", name="Sign in to Books").is_visible()
        assert wrong_with(page) == []
    server = ToolServer.objects.get()
    assert not grant_of(server.pk).signed_in
    assert site.keeper.access == {}


def test_a_no_leads_back_too_and_it_can_be_tried_again(browser, address, ada, site):  # noqa: F811
    with opened(browser, address, ada) as page:
        connects(page, site)
        page.get_by_role("link", name="Go to 127.0.0.1").click()
        page.get_by_role("link", name="Refuse").click()
        page.get_by_text("You aren’t signed in to Books. Its sign-in said no: Not today.").wait_for()
        assert wrong_with(page) == []
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Go to 127.0.0.1").click()
        page.get_by_role("link", name="Allow").click()
        page.get_by_text("You are signed in to Books, which has one tool.").wait_for()


def test_it_works_without_script(browser, address, ada, site):  # noqa: F811
    with opened(browser, address, ada, java_script_enabled=False) as page:
        connects(page, site)
        page.get_by_role("link", name="Go to 127.0.0.1").click()
        page.get_by_role("link", name="Allow").click()
        page.get_by_text("You are signed in to Books, which has one tool.").first.wait_for()

    assert grant_of(ToolServer.objects.get().pk).signed_in


def test_a_client_that_was_registered_by_hand_is_written_down(browser, address, ada, site):  # noqa: F811
    site.changes["/.well-known/oauth-authorization-server"] = {"registration_endpoint": None}
    site.knows("by-hand", "hush-hush", f"{address}/settings/tools/connect/signed-in")
    with opened(browser, address, ada, viewport=PHONE) as page:
        connects(page, site)
        assert wrong_with(page) == []
        page.get_by_label("Client ID").fill("by-hand")
        page.get_by_label("Client secret").fill("hush-hush")
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("link", name="Go to 127.0.0.1").click()
        page.get_by_role("link", name="Allow").click()
        page.get_by_text("You are signed in to Books, which has one tool.").wait_for()
