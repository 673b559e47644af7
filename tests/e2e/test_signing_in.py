"""Signing in to another plan's account in Chromium: the page notices by itself, on a phone and a desk."""

import pytest
from playwright.sync_api import expect

from conch.accounts import sign_ins
from conch.engines.registry import engine
from conch.models import Account
from tests.e2e.settings_site import ada, address, browser, opened, violations  # noqa: F401  fixtures, found by name
from tests.settings_ui.sign_in_server import CODE, SignInServer

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
PATIENCE = 30_000  # milliseconds; the real program is there in one second, on a busy machine later


@pytest.fixture
def sign_in_server(monkeypatch, settings, tmp_path, real_programs, simulator):
    """The Codex program signs in at a server on loopback; afterwards nothing is under way."""
    settings.CONCH_DATA = tmp_path / "data"
    server = SignInServer()
    monkeypatch.setattr(sign_ins, "MORE_WORDS", ("--experimental_issuer", server.url))
    monkeypatch.setattr(type(engine("codex")), "official_base_url", simulator.base_urls["codex"])
    yield server
    for one in list(sign_ins._under_way.values()):
        sign_ins.cancel(one)
    server.close()


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_the_page_shows_the_code_and_leads_to_the_account_by_itself(
    browser,  # noqa: F811
    address,  # noqa: F811
    ada,  # noqa: F811
    sign_in_server,
    simulator,
    tmp_path,
    viewport,
    scheme,
):
    """Without a press; the focus stays on the button while the page looks; axe finds nothing."""
    key = simulator.codex("eve@home.example", tmp_path / "elsewhere")
    with opened(browser, address, ada, viewport=viewport, color_scheme=scheme) as page:
        page.goto("/settings/connect/codex")
        assert violations(page) == "[]"
        page.get_by_role("button", name="Sign in with a code").click()
        expect(page.locator("#sign-in-code")).to_have_text(CODE, timeout=PATIENCE)
        assert violations(page) == "[]"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("#copy-code").focus()
        with page.expect_response(lambda response: "/check?v=" in response.url and response.status == 204):
            pass
        assert page.evaluate("document.activeElement.id") == "copy-code"

        sign_in_server.enter(CODE, key)
        page.wait_for_url("**/settings/providers/codex-*", timeout=PATIENCE)

        expect(page.locator("#toasts")).to_contain_text("signed in as eve@home.example")
        assert page.said == []
    assert Account.objects.filter(person=ada, engine="codex", whose="eve@home.example").exists()


def test_claudes_command_fits_a_phone_and_cancelling_leads_back(browser, address, ada, sign_in_server):  # noqa: F811
    with opened(browser, address, ada, viewport=PHONE) as page:
        page.goto("/settings/connect/claude-code")
        page.get_by_role("button", name="Sign in to another account").click()
        expect(page.locator("#sign-in-command")).to_contain_text("claude auth login")
        assert violations(page) == "[]"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_url("**/settings/connect/claude-code")
        assert sign_ins._under_way == {}
