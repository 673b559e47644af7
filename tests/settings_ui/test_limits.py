"""Each press of the FallbackPicker: works, somebody else's, a bad value, a wrong method, a stale page."""

import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conch.models import Account, Preferences
from conch.money import to_nano
from tests.conftest import make_account, make_person
from tests.settings_ui.conftest import blocked, three_accounts, window


@pytest.fixture
def tables(transactional_db):
    """What these presses write, the writer thread must see."""


HTMX = {"HX-Request": "true"}
PAGE = "/settings/providers"


def kept(client):
    return Preferences.objects.get(person=client.person)


def prefer(client, **columns):
    Preferences.objects.filter(person=client.person).update(**columns)


def text_of(response):
    """The words of a page or fragment, as one line."""
    bare = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"[ \n\u00a0]+", " ", bare.replace("&#x27;", "'"))


def press(client, action, headers=HTMX, **posted):
    return client.post(f"/settings/limits/{action}", {"engine": "codex"} | posted, headers=headers)


def test_a_choice_is_kept_said_and_swaps_no_radio(signed_in):
    three_accounts(signed_in.person)

    response = press(signed_in, "choose", pick="wait")

    assert kept(signed_in).limit_fallback == "wait"
    assert "Saved. Chats wait until it resets." in text_of(response)
    assert 'type="radio"' not in response.content.decode()


def test_naming_a_key_says_that_it_is_pay_per_use(signed_in):
    """R13, copy.md 4.1: naming one key is a choice to pay and needs no switch."""
    three_accounts(signed_in.person)

    said = text_of(press(signed_in, "choose", pick="anthropic"))

    assert kept(signed_in).limit_fallback == "anthropic"
    assert "Saved. Anthropic answers at a limit." in said
    assert "Off, Automatic never starts spending. Your pick, Anthropic, is pay per use: about $0.01 a reply." in said


def test_without_script_every_press_ends_at_the_order(signed_in):
    """copy.md 6: 303 to the page and #fb-order."""
    three_accounts(signed_in.person)

    response = press(signed_in, "move", headers={}, move="down:anthropic", pick="auto", shown_pick="auto")

    assert (response.status_code, response["Location"]) == (303, f"{PAGE}?engine=codex#fb-order")
    assert kept(signed_in).limit_order == ["codex", "openrouter", "anthropic"]


def test_a_move_is_said_with_its_position_and_the_new_order_is_shown(signed_in):
    three_accounts(signed_in.person)

    response = press(signed_in, "move", move="up:openrouter")

    assert "OpenRouter is now 1 of 2." in text_of(response)
    shown = response.content.decode()
    assert shown.index('id="fb-up-openrouter"') < shown.index('id="fb-up-anthropic"')


def test_a_move_past_the_end_moves_nothing_and_says_so(signed_in):
    """The server ignores it too: aria-disabled is only a look."""
    three_accounts(signed_in.person)

    response = press(signed_in, "move", move="up:anthropic")

    assert "Anthropic is already first." in text_of(response)
    assert kept(signed_in).limit_order == []


def test_two_tabs_moving_at_once_lose_nothing(signed_in):
    """A move is relative: two presses of the same arrow in two tabs are two moves."""
    person = signed_in.person
    for slug in ("codex", "codex-2", "codex-3", "codex-4"):
        make_account(person, slug=slug, label=slug, identity=slug)
    clients = [Client(), Client()]
    for client in clients:
        client.force_login(person)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda client: press(client, "move", move="down:codex-2").status_code, clients))

    assert answers == [200, 200]
    assert kept(signed_in).limit_order == ["codex", "codex-3", "codex-4", "codex-2"]


def test_a_stale_page_does_not_overwrite_a_newer_choice(signed_in):
    """The page of one tab still shows Automatic when the other has chosen; a move there keeps the newer choice."""
    three_accounts(signed_in.person)
    prefer(signed_in, limit_fallback="wait", limit_paid=True, month_budget_nano=to_nano(Decimal(10)))

    press(signed_in, "move", move="up:openrouter", pick="auto", shown_pick="auto")
    as_shown = {"pick": "auto", "shown_pick": "auto", "shown_paid": "", "shown_local": "", "shown_return": "on"}
    press(signed_in, "save", headers={}, **as_shown, **{"return": "on"})

    after = kept(signed_in)
    assert (after.limit_fallback, after.limit_paid, after.limit_return) == ("wait", True, True)


def test_a_choice_not_saved_yet_rides_along_with_the_next_press(signed_in):
    """The radios wait a quarter of a second; an arrow pressed within it loses nothing."""
    three_accounts(signed_in.person)

    response = press(signed_in, "move", move="up:openrouter", pick="wait", shown_pick="auto")

    assert kept(signed_in).limit_fallback == "wait"
    assert 'id="fb-shown" value="wait"' in response.content.decode()


@pytest.mark.parametrize(("name", "column"), [("return", "limit_return"), ("local", "offline_fallback")])
def test_a_switch_says_what_it_became_and_writes_its_own_column(signed_in, name, column):
    three_accounts(signed_in.person)
    prefer(signed_in, **{column: True}, limit_order=["codex"])

    response = press(signed_in, f"switch/{name}")

    assert response.status_code == 200
    assert getattr(kept(signed_in), column) is False
    assert kept(signed_in).limit_order == ["codex"]
    press(signed_in, f"switch/{name}", **{name: "on"})
    assert getattr(kept(signed_in), column) is True


def test_there_is_no_other_switch(signed_in):
    three_accounts(signed_in.person)

    assert press(signed_in, "switch/is_staff").status_code == 404


def test_pay_keys_ask_for_the_budget_before_they_are_on(signed_in):
    """R13: an amount (10.00 is proposed) or No budget, chosen by the person."""
    three_accounts(signed_in.person)

    response = press(signed_in, "switch/paid", paid="on")

    assert kept(signed_in).limit_paid is False
    assert 'value="10.00"' in response.content.decode()
    assert "No budget" in text_of(response)
    press(signed_in, "paid", paid_with="budget", up_to="12.50")
    after = kept(signed_in)
    assert (after.limit_paid, after.month_budget_nano) == (True, to_nano(Decimal("12.50")))


def test_pay_keys_go_on_without_a_budget_when_that_is_said(signed_in):
    three_accounts(signed_in.person)

    said = text_of(press(signed_in, "paid", paid_with="none"))

    assert (kept(signed_in).limit_paid, kept(signed_in).month_budget_nano) == (True, None)
    assert "In the order above, without a budget." in said
    assert "Set a budget" in said


@pytest.mark.parametrize("up_to", ["", "ten", "0", "1.234", "1e9"])
def test_an_amount_that_is_none_turns_nothing_on_and_stays_as_typed(signed_in, up_to):
    three_accounts(signed_in.person)

    response = press(signed_in, "paid", paid_with="budget", up_to=up_to)

    assert kept(signed_in).limit_paid is False
    assert 'aria-invalid="true"' in response.content.decode()
    if up_to:
        assert f'value="{up_to}"' in response.content.decode()


def test_without_script_the_question_comes_back_with_what_was_typed(signed_in):
    three_accounts(signed_in.person)

    asked = signed_in.post("/settings/limits/save", {"engine": "codex", "paid": "on", "shown_paid": ""}, follow=True)
    wrong = press(signed_in, "paid", headers={}, paid_with="budget", up_to="ten")

    assert 'value="10.00"' in asked.content.decode()
    assert wrong["Location"].endswith("&up_to=ten#fb-ask")
    page = signed_in.get(wrong["Location"]).content.decode()
    assert 'value="ten"' in page
    assert "Write an amount in dollars" in page
    assert kept(signed_in).limit_paid is False


def test_with_a_budget_set_the_switch_needs_no_question(signed_in):
    three_accounts(signed_in.person)
    prefer(signed_in, month_budget_nano=to_nano(Decimal(10)))

    said = text_of(press(signed_in, "switch/paid", paid="on"))

    assert kept(signed_in).limit_paid is True
    assert "In the order above, within this month’s budget. $10.00 of $10.00 left." in said


def test_one_that_was_left_out_is_let_carry_on_again(signed_in):
    three_accounts(signed_in.person)
    Account.objects.filter(slug="anthropic").update(carries_on=False)
    assert "Left out by you." in text_of(signed_in.get(PAGE))

    press(signed_in, "let", let="anthropic")

    assert Account.objects.get(slug="anthropic").carries_on is True
    assert press(signed_in, "let", let="bobs").status_code == 404


def test_the_page_says_who_answers_now(signed_in):
    codex, *_ = three_accounts(signed_in.person)
    make_account(signed_in.person, slug="codex-2", label="Codex", whose="ada@home.example", identity="2:b")
    blocked(codex, timezone.now())
    window(Account.objects.get(slug="codex-2"), 28, timezone.now())
    prefer(signed_in, default_account="codex", time_zone="Europe/Berlin")

    said = text_of(signed_in.get(PAGE))

    assert "Codex · ada@work.example is at its limit until" in said
    assert "Codex · ada@home.example answers until then." in said
    assert "72% left" in said
    assert "Automatic passes it over: pay-per-use keys are off." in said


def test_another_ones_account_is_no_page_to_see_it_from(signed_in):
    three_accounts(signed_in.person)
    make_account(make_person("carl"), slug="carls")

    assert signed_in.get(f"{PAGE}?engine=carls").status_code == 404
    assert signed_in.get(f"{PAGE}?engine=anthropic").status_code == 200


def test_the_only_account_is_told_to_connect_another(signed_in):
    make_account(signed_in.person)

    said = text_of(signed_in.get(PAGE))

    assert "Codex is the only account here. Connect another and Conch can carry on there at a limit." in said
    assert "No other account is connected." in said


def test_without_any_account_there_is_no_picker(signed_in):
    said = text_of(signed_in.get(PAGE))

    assert "No account is connected yet." in said
    assert "At a usage limit" not in said


def test_a_pick_that_is_the_account_itself_or_gone_is_said(signed_in):
    """R14: the words say so."""
    codex, *_ = three_accounts(signed_in.person)
    blocked(codex, timezone.now())
    prefer(signed_in, limit_fallback="codex", default_account="codex")
    assert "and is your pick. Chats wait." in text_of(signed_in.get(PAGE))

    prefer(signed_in, limit_fallback="gone")
    assert "gone, your pick, isn’t connected any more. Chats wait." in text_of(signed_in.get(PAGE))


def test_queries_do_not_grow_with_accounts(signed_in):
    def asked():
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert signed_in.get(PAGE).status_code == 200
        return len(queries)

    now = timezone.now()
    for number in range(3):
        window(make_account(signed_in.person, slug=f"codex-{number}", identity=str(number)), 10, now)
    asked()
    few = asked()
    for number in range(3, 40):
        window(make_account(signed_in.person, slug=f"codex-{number}", identity=str(number)), 10, now)

    assert asked() == few
