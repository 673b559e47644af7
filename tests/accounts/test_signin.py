"""Signing in: one-time links, passwords, and who gets in where."""

import re
from datetime import timedelta

import httpx2 as httpx
import pytest
from django.utils import timezone

from conch.accounts import signin
from conch.models import Preferences, SigninLink

pytestmark = pytest.mark.django_db(transaction=True)

BROWSER = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def browser(base):
    with httpx.Client(base_url=base, timeout=20, trust_env=False) as client:
        yield client


def csrf(client, page):
    return {"csrfmiddlewaretoken": re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]}


def is_in(client):
    return client.get("/api/docs").status_code == 200


def test_a_page_asks_for_a_sign_in_and_remembers_where_one_was_going(browser):
    asked = browser.get("/settings/providers?x=1")

    assert asked.status_code == 302
    assert asked.headers["location"] == "/signin?next=/settings/providers%3Fx%3D1"


def test_a_link_opened_by_a_person_signs_in_at_once_and_only_once(browser, ada, base):
    token = signin.make_link(ada, timezone.now())

    opened = browser.get(f"/signin/{token}", headers=BROWSER)

    assert (opened.status_code, opened.headers["location"]) == (302, "/")
    assert is_in(browser)
    with httpx.Client(base_url=base, trust_env=False) as other:
        again = other.get(f"/signin/{token}", headers=BROWSER)
        assert again.status_code == 410
        assert "works once, within ten minutes" in again.text
        assert not is_in(other)


def test_a_program_that_looks_at_a_link_does_not_use_it_up(browser, ada):
    token = signin.make_link(ada, timezone.now())

    page = browser.get(f"/signin/{token}")
    assert page.status_code == 200
    assert SigninLink.objects.get().used_at is None

    pressed = browser.post(f"/signin/{token}", data=csrf(browser, page))
    assert pressed.status_code == 302
    assert is_in(browser)


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Purpose": "prefetch;prerender"}, {"Sec-Fetch-Dest": "image"}]
)
def test_a_link_of_another_site_or_fetched_ahead_of_time_needs_the_button(browser, ada, headers):
    token = signin.make_link(ada, timezone.now())

    assert browser.get(f"/signin/{token}", headers=BROWSER | headers).status_code == 200
    assert not is_in(browser)


def test_a_link_ends_after_ten_minutes(ada):
    now = timezone.now()
    token = signin.make_link(ada, now)

    assert signin.is_live(token, now + timedelta(minutes=10) - timedelta(seconds=1))
    assert signin.person_of_link(token, now + timedelta(minutes=10)) is None


def test_the_database_never_holds_a_link_itself(ada):
    token = signin.make_link(ada, timezone.now())

    assert token not in str(SigninLink.objects.values().get())


def test_a_form_without_the_token_of_our_own_page_is_refused(browser, ada):
    token = signin.make_link(ada, timezone.now())

    assert browser.post(f"/signin/{token}").status_code == 403
    assert SigninLink.objects.get().used_at is None


def test_a_password_signs_in_and_goes_on_to_where_one_was_going(browser, ada):
    ada.set_password("correct horse battery")
    ada.save()
    page = browser.get("/signin?next=/c/7")

    wrong = browser.post("/signin", data=csrf(browser, page) | {"username": "ada", "password": "no", "next": "/c/7"})
    assert wrong.status_code == 403
    assert 'value="ada"' in wrong.text

    right = {"username": "ada", "password": "correct horse battery", "next": "/c/7"}
    done = browser.post("/signin", data=csrf(browser, wrong) | right)
    assert (done.status_code, done.headers["location"]) == (302, "/c/7")
    assert is_in(browser)


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"])
def test_signing_in_never_leads_to_another_site(browser, ada, to):
    ada.set_password("correct horse battery")
    ada.save()
    page = browser.get("/signin")

    given = {"username": "ada", "password": "correct horse battery", "next": to}
    assert browser.post("/signin", data=csrf(browser, page) | given).headers["location"] == "/"


def test_guessing_a_password_is_stopped_for_a_quarter_of_an_hour(ada, now):
    ada.set_password("correct horse battery")
    ada.save()
    for minute in range(5):
        assert signin.try_password("ada", "no", "192.0.2.1", now + timedelta(minutes=minute)).wait is None

    at = now + timedelta(minutes=5)
    stopped = signin.try_password("ada", "correct horse battery", "192.0.2.9", at)
    assert stopped.person is None
    assert stopped.wait == timedelta(minutes=10)
    assert signin.try_password("ada", "correct horse battery", "192.0.2.9", at + stopped.wait).person == ada


def test_guessing_many_names_from_one_address_is_stopped_too(ada, now):
    for number in range(20):
        signin.try_password(f"name{number}", "no", "192.0.2.1", now)

    assert signin.try_password("another", "no", "192.0.2.1", now).wait == timedelta(minutes=15)
    assert signin.try_password("another", "no", "192.0.2.2", now).wait is None


def test_the_browsers_zone_and_hours_are_taken_at_the_first_sign_in(browser, ada):
    browser.cookies.update({"conch_zone": "Europe%2FBerlin", "conch_hours": "h23"})

    browser.get(f"/signin/{signin.make_link(ada, timezone.now())}", headers=BROWSER)

    kept = Preferences.objects.get(person=ada)
    assert (kept.time_zone, kept.hour_cycle) == ("Europe/Berlin", "h23")


def test_a_zone_that_the_person_set_is_never_replaced_by_the_browsers(browser, ada):
    Preferences.objects.filter(person=ada).update(time_zone="Asia/Tokyo", hour_cycle="h12")
    browser.cookies.update({"conch_zone": "Europe%2FBerlin", "conch_hours": "h23"})

    browser.get(f"/signin/{signin.make_link(ada, timezone.now())}", headers=BROWSER)
    browser.get("/api/docs")

    assert Preferences.objects.get(person=ada).time_zone == "Asia/Tokyo"


def test_a_zone_that_makes_no_sense_is_left_out(browser, ada):
    browser.cookies.update({"conch_zone": "../../etc/passwd", "conch_hours": "h99"})

    browser.get(f"/signin/{signin.make_link(ada, timezone.now())}", headers=BROWSER)

    assert Preferences.objects.get(person=ada).time_zone == ""


def test_a_fragment_asked_for_while_signed_out_says_so_and_leaves_the_page_alone(browser):
    asked = browser.get("/settings/providers", headers={"HX-Request": "true"})

    assert asked.status_code == 401
    assert "what you typed stays here" in asked.text
    assert "hx-redirect" not in asked.headers


def test_health_needs_no_sign_in(browser):
    assert browser.get("/healthz").json() == {"status": "ok"}
    assert browser.get("/readyz").json() == {"status": "ok"}


def test_a_name_that_is_not_ours_is_turned_away(browser):
    assert browser.get("/healthz", headers={"Host": "rebound.example"}).status_code == 400


def test_cookies_and_headers_keep_to_themselves(browser, ada):
    opened = browser.get(f"/signin/{signin.make_link(ada, timezone.now())}", headers=BROWSER)

    session = next(value for value in opened.headers.get_list("set-cookie") if value.startswith("conch_session"))
    assert "HttpOnly" in session
    assert "SameSite=Lax" in session
    page = browser.get("/signin")
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "nonce" not in policy
    assert "default-src 'none'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
