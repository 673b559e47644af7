"""Signing in to a tool server while somebody means no good: the server, another person, another site."""

import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from conch.engines import wire_transport
from conch.models import ToolServer, ToolSignIn
from conch.tools import signing_in
from conch.tools.grants import grant_of
from tests.conftest import make_person
from tests.settings_ui.sign_in_browser import (
    HOST,
    OVER,
    SERVER,
    browser_of,
    connect,
    kept,
    led_back,
    said,
    sign_in,
    way_of,
)
from tests.tools.servers.guarded import guarded
from tests.tools.site import server_of


@pytest.fixture
def ada(transactional_db):
    """The owner in a browser; what is kept of a sign-in is written by a thread of its own."""
    return browser_of(make_person("ada", is_owner=True))


def test_it_leads_back_once_with_its_own_state_in_the_session_in_which_it_began(ada):
    with guarded() as site:
        way = way_of(connect(ada, site.url))
        back = led_back(way)
        other_state = re.sub(r"state=\w+", "state=" + "0" * 64, back)
        elsewhere = browser_of(ada.person)
        carl = browser_of(make_person("carl"))
        refused = [ada.get(other_state), ada.get(urlsplit(back).path), elsewhere.get(back), carl.get(back)]
        head = ada.head(back)
        nobody = Client(headers={"host": HOST}).get(back)
        before = kept()
        done = ada.get(back, follow=True)
        once_more = ada.get(back, follow=True)

    assert {(page.status_code, page["Location"]) for page in refused} == {(302, "/settings/tools")}
    assert OVER in said(ada.get("/settings/tools")) + said(elsewhere.get("/settings/tools"))
    assert OVER in said(carl.get("/settings/tools"))
    assert head.status_code == 405
    assert nobody["Location"].startswith("/signin")
    assert before is None
    assert "You are signed in to Books" in said(done)
    assert OVER in said(once_more)


def test_it_leads_back_within_ten_minutes_and_to_nobody_else(ada):
    with guarded() as site:
        back = led_back(way_of(connect(ada, site.url)))
        answer = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
        late = timezone.now() + timedelta(minutes=10)
        finish = async_to_sync(signing_in.finish)

        carl = make_person("carl")

        assert finish(carl, ada.session.session_key, answer, timezone.now()) is None
        assert finish(ada.person, ada.session.session_key, answer, late) is None
        assert kept() is None
        assert finish(ada.person, ada.session.session_key, answer, late - timedelta(minutes=1)) is not None


def test_a_second_beginning_takes_the_first_one_back(ada):
    with guarded() as site:
        first = led_back(way_of(connect(ada, site.url)))
        second = led_back(way_of(ada.post(f"{SERVER}/sign-in", follow=True)))

        assert OVER in said(ada.get(first, follow=True))
        assert "You are signed in to Books" in said(ada.get(second, follow=True))


def test_another_authorization_server_that_leads_back_is_found_out(ada):
    """RFC 9207: the answer says who it is from."""
    with guarded() as site:
        back = led_back(way_of(connect(ada, site.url)))
        page = ada.get(re.sub(r"iss=[^&]+", "iss=https%3A%2F%2Felsewhere.example", back), follow=True)

    assert "it says that it is another one than the server names" in said(page)
    assert kept() is None
    assert site.keeper.access == {}


INSIDE = "http://169.254.169.254/latest"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"metadata": {"issuer": "https://elsewhere.example"}}, "it says that it is another one than the server names"),
        ({"metadata": {"authorization_endpoint": "http://evil.example/a"}}, "leads to http://evil.example/a, where"),
        ({"metadata": {"authorization_endpoint": "javascript:alert(1)"}}, "what it says of itself can’t be used"),
        ({"metadata": {"token_endpoint": "http://evil.example/t"}}, "leads to http://evil.example/t, where"),
        ({"metadata": {"token_endpoint": "https://10.0.0.1/t"}}, "leads to https://10.0.0.1/t, where"),
        ({"metadata": {"registration_endpoint": INSIDE}}, f"leads to {INSIDE}, where"),
        (
            {"metadata": {"revocation_endpoint": "https://a:b@evil.example/"}},
            "leads to https://a:b@evil.example/, where",
        ),
        ({"metadata": {"code_challenge_methods_supported": None}}, "it doesn’t protect what it sends back (PKCE)"),
        ({"metadata": {"code_challenge_methods_supported": ["plain"]}}, "it doesn’t protect what it sends back (PKCE)"),
        ({"metadata": None}, "what it says of itself can’t be used"),
        ({"resource": {"resource": "https://bank.example/mcp"}}, "the server says that it is another one than at"),
        ({"resource": {"authorization_servers": [INSIDE]}}, f"leads to {INSIDE}, where"),
        ({"resource": {"authorization_servers": ["https://192.168.0.1"]}}, "leads to https://192.168.0.1, where"),
        ({"resource": None, "metadata": None}, "It doesn’t say where to sign in."),
    ],
)
def test_what_a_sign_in_says_of_itself_and_may_not_is_refused(ada, changes, why):
    with guarded(**changes) as site:
        page = connect(ada, site.url)

    assert page.status_code == 422
    assert why in said(page)
    assert "Nothing was connected." in said(page)
    assert not ToolServer.objects.exists()
    assert {path for _, path, _ in site.asked}.isdisjoint({"/register", "/token", "/authorize"})


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer realm="Büchér \x01"',
        'Bearer scope="books' + " more" * 2000 + '"',
        'Bearer resource_metadata="\xff", error=',
        'Bearer resource_metadata="javascript:alert(1)"',
    ],
)
def test_whatever_a_server_asks_for_is_read_or_refused(ada, challenge):
    with guarded() as site:
        site.changes["/mcp"] = (401, {"WWW-Authenticate": challenge})
        page = connect(ada, site.url)

    assert page.status_code in {200, 422}
    assert "javascript:alert(1)" not in re.findall(r'href="([^"]*)"', said(page))
    if page.status_code == 422:
        assert "Nothing was connected." in said(page)


def test_a_sign_in_that_begins_to_lie_later_is_refused_then(ada):
    with guarded() as site:
        connect(ada, site.url)
        site.changes["/.well-known/oauth-authorization-server"] = {"authorization_endpoint": "http://evil.example/a"}
        page = ada.post(f"{SERVER}/sign-in", follow=True)

    assert "Books can’t be signed in to. Its sign-in leads to http://evil.example/a" in said(page)
    assert "sign-in-page" not in said(page)


def test_two_people_sign_in_each_for_themselves(ada, monkeypatch):
    """Of the same server, in the same Conch; for this test its address is one of the internet."""
    monkeypatch.setattr(wire_transport, "is_public", lambda _address: True)
    bob = browser_of(make_person("bob"))
    with guarded() as site:
        sign_in(ada, site.url)
        site.keeper.who = "bob"
        back = led_back(way_of(connect(bob, site.url)))
        taken = ada.get(back, follow=True)
        bob.get(back)
        grants = {row.person.username: grant_of(row.pk) for row in ToolServer.objects.select_related("person")}
        whose = {site.keeper.access[grant.access_token].subject: name for name, grant in grants.items()}
        ada.post(f"{SERVER}/sign-out")

    assert OVER in said(taken)
    assert whose == {"ada": "ada", "bob": "bob"}
    assert grants["ada"].refresh_token != grants["bob"].refresh_token
    assert [grant_of(row.pk).signed_in for row in ToolServer.objects.order_by("pk")] == [False, True]


def test_a_conch_that_others_could_listen_to_begins_no_sign_in(ada, settings):
    settings.ALLOWED_HOSTS = ["conch.example"]
    with guarded() as site:
        given = {"name": "Books", "url": site.url, "inside": "on"}
        page = ada.post("/settings/tools/connect/address", given, headers={"host": "conch.example"}, follow=True)

    assert "To sign in, open Conch by https, or in a browser on the computer that it runs on, at 127.0.0.1." in said(
        page
    )
    assert not ToolSignIn.objects.exists()


@pytest.mark.parametrize("action", ["sign-in", "sign-out"])
def test_what_is_anothers_cannot_be_signed_in_to_or_out_of(ada, action):
    server_of(make_person("carl"), "Books", url="https://books.example/mcp")

    assert ada.get(f"{SERVER}/{action}").status_code in {404, 405}
    assert ada.post(f"{SERVER}/{action}").status_code == 404


def test_a_form_of_another_site_begins_and_ends_nothing(ada):
    strict = Client(enforce_csrf_checks=True, headers={"host": HOST})
    strict.force_login(ada.person)
    with guarded() as site:
        site.server_of(ada.person)
        refused = [strict.post(f"{SERVER}/{action}").status_code for action in ("sign-in", "sign-out")]

    assert refused == [403, 403]
    assert kept().signed_in
    assert site.asked == []
