"""You: times, look, password, tokens, sessions, a link for another device."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from conch.accounts import tokens
from conch.models import ApiToken, Preferences, SigninLink
from tests.conftest import make_person

ANDROID = "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36"


def kept(client):
    return Preferences.objects.get(person=client.person)


def test_zone_and_hours_are_kept(signed_in):
    posted = {"times-time_zone": "Asia/Tokyo", "times-hour_cycle": "h23"}

    assert signed_in.post("/settings/you/times", posted).status_code == 302
    assert (kept(signed_in).time_zone, kept(signed_in).hour_cycle) == ("Asia/Tokyo", "h23")


@pytest.mark.parametrize("posted", [{"times-time_zone": "Mars/Base"}, {"times-hour_cycle": "h13"}])
def test_a_zone_that_is_none_changes_nothing(signed_in, posted):
    assert signed_in.post("/settings/you/times", posted).status_code == 422
    assert kept(signed_in).time_zone == ""


def test_a_stale_page_keeps_what_it_did_not_change(signed_in):
    """The page showed no theme; meanwhile another tab chose dark. Switching shortcuts off here leaves that."""
    Preferences.objects.filter(person=signed_in.person).update(theme="dark")

    signed_in.post("/settings/you/look", {"look-theme": "", "initial-look-theme": "", "initial-look-shortcuts": "True"})

    assert (kept(signed_in).theme, kept(signed_in).shortcuts) == ("dark", False)


def test_a_password_is_set_and_other_devices_are_signed_out(signed_in):
    signed_in.person.set_unusable_password()
    signed_in.person.save()
    signed_in.force_login(signed_in.person)
    other = Client()
    other.force_login(signed_in.person)

    signed_in.post("/settings/you/password", {"new": "correct horse"})

    assert signed_in.get("/settings/you").status_code == 200
    assert other.get("/settings/you").status_code == 302
    signed_in.person.refresh_from_db()
    assert signed_in.person.check_password("correct horse")


@pytest.mark.parametrize(
    "posted", [{"old": "wrong", "new": "battery staple"}, {"old": "correct horse", "new": "short"}]
)
def test_a_password_is_changed_only_with_the_present_one(signed_in, posted):
    signed_in.person.set_password("correct horse")
    signed_in.person.save()
    signed_in.force_login(signed_in.person)

    response = signed_in.post("/settings/you/password", posted)

    assert response.status_code == 422
    assert "correct horse" not in response.content.decode()
    signed_in.person.refresh_from_db()
    assert signed_in.person.check_password("correct horse")


def works(token):
    """Whose token that is, while it holds."""
    row = ApiToken.objects.filter(digest=tokens.digest(token), revoked_at=None).first()
    return row and row.person_id


def made_token(response):
    found = re.search(r'id="made-token">([^<]+)<', response.content.decode())
    return found and found[1]


def test_a_token_is_shown_once_and_works(signed_in):
    response = signed_in.post("/settings/you/tokens", {"name": "My script", "once": "a"})

    token = made_token(response)
    assert works(token) == signed_in.person.pk
    assert token not in signed_in.get("/settings/you").content.decode()
    assert "no-store" in response["Cache-Control"]


def test_a_double_press_makes_one_token_and_still_shows_it(signed_in):
    first = made_token(signed_in.post("/settings/you/tokens", {"name": "My script", "once": "a"}))
    second = made_token(signed_in.post("/settings/you/tokens", {"name": "My script", "once": "a"}))

    assert first == second
    assert ApiToken.objects.count() == 1


def test_a_form_sent_again_later_shows_no_token(signed_in):
    signed_in.post("/settings/you/tokens", {"name": "My script", "once": "a"})
    ApiToken.objects.update(created_at=timezone.now() - timedelta(minutes=1))

    assert signed_in.post("/settings/you/tokens", {"name": "My script", "once": "a"}).status_code == 302


def test_a_token_needs_a_name(signed_in):
    assert signed_in.post("/settings/you/tokens", {"name": ""}).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_revoked_token_works_no_more_and_another_ones_is_404(signed_in):
    mine = tokens.make(signed_in.person, "mine", timezone.now())
    theirs = tokens.make(make_person("carl"), "theirs", timezone.now())

    signed_in.post(f"/settings/you/tokens/{ApiToken.objects.get(name='mine').pk}/revoke")
    other = signed_in.post(f"/settings/you/tokens/{ApiToken.objects.get(name='theirs').pk}/revoke")

    assert works(mine) is None
    assert other.status_code == 404
    assert works(theirs) is not None


def test_a_link_for_another_device_signs_in_there_once(signed_in):
    response = signed_in.post("/settings/you/link")

    page = response.content.decode()
    assert 'class="qr"' in page
    assert "style=" not in page, "no inline style passes the content policy"
    link = re.search(r'href="(http://[^"]+/signin/[^"]+)"', page)[1]
    other = Client()
    assert other.post(link).status_code == 302
    assert other.get("/settings/you").status_code == 200
    assert SigninLink.objects.get().used_at is not None


def test_a_device_can_be_signed_out_and_only_ones_own(signed_in):
    other, carls = Client(), Client()
    other.force_login(signed_in.person)
    carls.force_login(make_person("carl"))
    names = re.findall(r"/settings/you/sessions/(\w+)/end", signed_in.get("/settings/you").content.decode())
    assert len(names) == 1, "one other device, nobody else's"
    strange = re.findall(r"/settings/you/sessions/(\w+)/end", other.get("/settings/you").content.decode())

    assert carls.post(f"/settings/you/sessions/{names[0]}/end").status_code == 404
    assert signed_in.post(f"/settings/you/sessions/{names[0]}/end").status_code == 302
    assert other.get("/settings/you").status_code == 302
    assert strange


def test_everywhere_else_is_signed_out_and_here_goes_on(signed_in):
    other, carls = Client(), Client()
    other.force_login(signed_in.person)
    carls.force_login(make_person("carl"))

    signed_in.post("/settings/you/sessions/end")

    assert other.get("/settings/you").status_code == 302
    assert signed_in.get("/settings/you").status_code == 200
    assert carls.get("/settings/you").status_code == 200


def test_a_session_says_which_browser_it_began_in(signed_in):
    phone = Client(headers={"User-Agent": ANDROID})
    link = re.search(r'href="(http://[^"]+/signin/[^"]+)"', signed_in.post("/settings/you/link").content.decode())[1]
    phone.post(link)

    assert "Chrome on Android" in signed_in.get("/settings/you").content.decode()


@pytest.mark.parametrize(
    "action", ["times", "look", "password", "tokens", "tokens/1/revoke", "link", "sessions/end", "sessions/abc/end"]
)
def test_looking_changes_nothing(signed_in, action):
    assert signed_in.get(f"/settings/you/{action}").status_code == 405


def test_this_browser_is_signed_out_from_where_its_sign_in_is_listed(signed_in):
    """What it keeps of chats, drafts, isn't there for whoever signs in next."""
    assert 'action="/signout"' in signed_in.get("/settings/you").content.decode()

    response = signed_in.post("/signout")

    assert response.headers["Location"] == "/signin"
    assert response.headers["Clear-Site-Data"] == '"storage"'
    assert signed_in.get("/settings/you").status_code == 302
