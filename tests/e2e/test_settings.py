"""The settings pages in Chromium: keyboard, no script, phone and desk, both themes, forced colours (copy.md 2.1, 6)."""

from decimal import Decimal

import pytest

from conch.models import Account, Preferences
from conch.money import to_nano
from tests.e2e.settings_site import ada, address, browser, opened, violations  # noqa: F401  fixtures, found by name

DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
PAGES = ("providers", "usage", "you", "computer", "connect", "connect/openrouter", "providers/codex")


def kept(person):
    return Preferences.objects.get(person=person)


def saved(page):
    page.locator("#fb-saved", has_text="Saved").wait_for()


def spoken(page, text):
    page.locator("#live", has_text=text).wait_for(state="attached")


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")])
def test_every_page_is_whole_and_axe_finds_nothing(browser, address, ada, viewport, scheme):  # noqa: F811
    """copy.md 6: 0 violations, no sideways scroll, nothing refused by the content policy."""
    with opened(browser, address, ada, viewport=viewport, color_scheme=scheme) as page:
        for name in PAGES:
            page.goto(f"/settings/{name}")

            assert violations(page) == "[]", name
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
            assert page.locator("h1").count() == 1
        assert page.said == []


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "light"), (DESK, "dark")])
def test_the_picker_is_whole_in_the_other_theme_too(browser, address, ada, viewport, scheme):  # noqa: F811
    with opened(browser, address, ada, viewport=viewport, color_scheme=scheme) as page:
        page.locator("#sw-paid").focus()
        page.keyboard.press("Space")
        spoken(page, "Saved.")

        assert violations(page) == "[]"


def test_at_320_pixels_nothing_scrolls_sideways_and_arrows_fit_a_finger(browser, address, ada):  # noqa: F811
    """WCAG 1.4.10, 2.5.8."""
    with opened(browser, address, ada, viewport={"width": 320, "height": 700}, has_touch=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        box = page.locator("#fb-down-codex-2").bounding_box()
        assert min(box["width"], box["height"]) >= 44


def test_forced_colours_still_show_what_is_chosen(browser, address, ada):  # noqa: F811
    with opened(browser, address, ada, viewport=DESK, forced_colors="active") as page:
        assert violations(page) == "[]"
        assert page.evaluate("getComputedStyle(document.querySelector('#fb-auto')).appearance") == "auto"


def test_arrow_keys_choose_keep_their_focus_and_the_last_one_is_saved(browser, address, ada):  # noqa: F811
    """copy.md 2.1: each press saves, no radio is swapped, three quick presses keep the focus."""
    with opened(browser, address, ada, viewport=DESK) as page:
        radio = page.locator("#fb-auto")
        radio.focus()
        page.evaluate("document.querySelectorAll('[name=pick]').forEach((radio) => { radio.mine = true; })")
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        spoken(page, "Saved. Anthropic answers at a limit.")

        assert page.evaluate("document.activeElement.id") == "fb-anthropic"
        assert page.evaluate("[...document.querySelectorAll('[name=pick]')].every((radio) => radio.mine)")
        assert kept(ada).limit_fallback == "anthropic"
        assert page.locator("#sw-paid-d").inner_text().startswith("Off, Automatic never starts spending. Your pick")
        assert not page.locator("#fb-order").is_visible(), "the order is Automatic's"
        assert page.said == []


def test_arrows_move_keep_their_focus_and_say_the_position(browser, address, ada):  # noqa: F811
    """copy.md 2.1: two quick presses both count, the focus stays on the button that moved."""
    with opened(browser, address, ada, viewport=DESK) as page:
        page.locator("#fb-down-codex-2").focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        spoken(page, "Codex, ada@home.example is now 3 of 3.")

        assert page.evaluate("document.activeElement.id") == "fb-down-codex-2"
        names = page.locator("#fb-order .nm").all_inner_texts()
        assert names[2].startswith("Codex")
        assert page.locator("#fb-radios .opt-l").all_inner_texts()[-1].startswith("Codex")
        assert kept(ada).limit_order[-3:] == ["anthropic", "openrouter", "codex-2"]


def test_an_arrow_at_the_end_does_nothing_and_says_why(browser, address, ada):  # noqa: F811
    """copy.md 2.1: aria-disabled, never disabled."""
    with opened(browser, address, ada, viewport=DESK) as page:
        up = page.locator("#fb-up-codex-2")
        up.focus()
        page.keyboard.press("Enter")
        spoken(page, "Codex, ada@home.example is already first.")

        assert page.evaluate("document.activeElement.id") == "fb-up-codex-2"
        assert kept(ada).limit_order == []


def test_a_choice_and_a_quick_move_after_it_are_both_kept(browser, address, ada):  # noqa: F811
    """The move is pressed within the quarter second before the choice is saved."""
    with opened(browser, address, ada, viewport=DESK) as page:
        page.evaluate("document.querySelector('#fb-wait').click(); document.querySelector('#fb-down-codex-2').click()")
        spoken(page, "Saved. Chats wait until it resets.")

        assert kept(ada).limit_fallback == "wait"
        assert kept(ada).limit_order[-3:] == ["anthropic", "codex-2", "openrouter"]
        assert page.locator("#fb-wait").is_checked()


def test_two_switches_pressed_at_once_are_both_kept(browser, address, ada):  # noqa: F811
    with opened(browser, address, ada, viewport=DESK) as page:
        page.evaluate("document.querySelector('#sw-return').click(); document.querySelector('#sw-paid').click()")
        page.locator("#sw-paid-d", has_text="In the order above").wait_for()
        page.locator("#sw-return-d", has_text="A chat stays with whoever").wait_for()

        assert (kept(ada).limit_return, kept(ada).limit_paid) == (False, True)
        assert "Automatic passes it over" not in page.locator("#fb-anthropic-d").inner_text()


def test_turning_pay_keys_on_asks_for_the_budget_by_keyboard(browser, address, ada):  # noqa: F811
    """R13."""
    Preferences.objects.filter(person=ada).update(month_budget_nano=None)
    with opened(browser, address, ada, viewport=DESK) as page:
        page.locator("#sw-paid").focus()
        page.keyboard.press("Space")
        amount = page.locator("#fb-up-to")
        amount.wait_for()
        assert amount.input_value() == "10.00"
        assert violations(page) == "[]"
        assert kept(ada).limit_paid is False

        amount.fill("7")
        page.keyboard.press("Enter")
        page.locator("#sw-paid-d", has_text="$7.00 of $7.00 left").wait_for()

        assert (kept(ada).limit_paid, kept(ada).month_budget_nano) == (True, to_nano(Decimal(7)))
        assert page.locator("#sw-paid").is_checked()


def test_what_could_not_be_saved_is_said_and_the_old_choice_is_back(browser, address, ada):  # noqa: F811
    """copy.md 4.1: Couldn't save. Nothing changed. [Try again]"""
    with opened(browser, address, ada, viewport=DESK) as page:
        page.route("**/settings/limits/choose", lambda route: route.abort())
        page.locator("#fb-wait").check()
        note = page.locator("#fb-failed")
        note.wait_for()
        assert "Couldn’t save. Nothing changed." in note.inner_text()
        assert page.locator("#fb-auto").is_checked()
        assert kept(ada).limit_fallback == "auto"

        page.unroute("**/settings/limits/choose")
        note.get_by_role("button", name="Try again").click()
        spoken(page, "Saved. Chats wait until it resets.")

        assert kept(ada).limit_fallback == "wait"
        assert not note.is_visible()


def test_without_script_everything_can_be_done(browser, address, ada):  # noqa: F811
    """copy.md 6: forms post, and the page comes back at the order."""
    with opened(browser, address, ada, viewport=DESK, java_script_enabled=False) as page:
        page.get_by_role("button", name="Move Codex, ada@home.example down").click()
        assert page.url.endswith("#fb-order")
        assert kept(ada).limit_order[-3:] == ["anthropic", "codex-2", "openrouter"]

        page.locator("#fb-wait").check()
        page.locator("#sw-return").uncheck()
        page.locator("#fallback noscript >> button, #fallback > button").first.click()
        assert (kept(ada).limit_fallback, kept(ada).limit_return) == ("wait", False)

        page.goto("/settings/providers/anthropic")
        page.get_by_label("Automatic may carry on with it").uncheck()
        page.locator("form.switches button").click()
        assert Account.objects.get(slug="anthropic").carries_on is False


def test_an_account_is_left_out_by_its_switch_and_let_back_from_the_picker(browser, address, ada):  # noqa: F811
    with opened(browser, address, ada, "/settings/providers/codex-2", viewport=DESK) as page:
        page.locator("#carries-on").focus()
        page.keyboard.press("Space")
        spoken(page, "Saved.")
        assert Account.objects.get(slug="codex-2").carries_on is False

        page.goto("/settings/providers")
        page.get_by_role("button", name="Let it carry on").click()
        spoken(page, "Saved. Codex may carry on.")

        assert Account.objects.get(slug="codex-2").carries_on is True
        assert page.said == []


def test_a_token_that_is_shown_once_is_in_sight(browser, address, ada):  # noqa: F811
    with opened(browser, address, ada, "/settings/you", viewport=PHONE) as page:
        page.get_by_label("What it is for").fill("My script")
        page.keyboard.press("Enter")
        box = page.locator("#made-token").bounding_box()
        assert 0 < box["y"] < PHONE["height"] - box["height"]


def test_what_a_form_says_no_to_is_in_sight(browser, address, ada):  # noqa: F811
    with opened(browser, address, ada, "/settings/you", viewport=PHONE) as page:
        page.get_by_label("Present password").fill("not this one")
        page.get_by_label("New password").fill("long enough to be one")
        page.keyboard.press("Enter")
        box = page.locator("[aria-invalid=true]").bounding_box()
        assert 0 < box["y"] < PHONE["height"] - box["height"]


def test_saved_covers_nothing_for_long(browser, address, ada):  # noqa: F811
    """Told at the bottom, gone by itself; without motion, too."""
    for motion in ("no-preference", "reduce"):
        with opened(browser, address, ada, "/settings/you", viewport=PHONE, reduced_motion=motion) as page:
            page.get_by_label("Time zone").select_option("Asia/Tokyo")
            page.get_by_label("Time zone").press("Enter")
            page.locator("#times .btn").click()
            said = page.locator("#toasts .ok", has_text="Saved")
            said.wait_for()
            page.evaluate("document.getAnimations().forEach((one) => one.finish())")
            assert not said.is_visible()


def test_a_draft_is_not_there_for_whoever_signs_in_next(browser, address, ada):  # noqa: F811
    with opened(browser, address, ada, "/?new", viewport=DESK) as page:
        page.get_by_label("Message", exact=True).fill("Nobody else's business")
        page.goto("/settings/you")
        page.get_by_role("button", name="Sign out", exact=True).click()
        page.get_by_role("heading", name="Sign in").wait_for()
        assert page.evaluate("localStorage.length") == 0
