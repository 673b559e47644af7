"""Signing in to a tool server from Settings: there and back with a real authorization server, and out of it again."""

from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from conch.accounts import seal
from conch.engines import wire_transport
from conch.models import ToolServer, ToolSignIn
from tests.conftest import make_person
from tests.settings_ui.sign_in_browser import (
    BACK,
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
from tests.tools.site import library, server_of


@pytest.fixture
def ada(transactional_db):
    """The owner in a browser; what is kept of a sign-in is written by a thread of its own."""
    return browser_of(make_person("ada", is_owner=True))


def test_a_server_that_wants_it_is_signed_in_to_on_its_own_page(ada):
    with guarded() as site:
        page = connect(ada, site.url)
        way = way_of(page)
        done = ada.get(led_back(way), follow=True)
        access, refresh = list(site.keeper.access), list(site.keeper.refresh)

    assert page.redirect_chain == [(f"{SERVER}/sign-in", 302)]
    assert "Books is added. It wants you to sign in." in said(page)
    assert f"Its sign-in page is at <b>{urlsplit(site.base).netloc}</b>, and leads back here." in said(page)
    assert "no-store" in page["Cache-Control"]
    assert done.redirect_chain == [(SERVER, 302)]
    assert "You are signed in to Books, which has one tool." in said(done)
    assert f"Signed in at {urlsplit(site.base).netloc}" in said(done)
    server = ToolServer.objects.get()
    assert ([tool["name"] for tool in server.tools], server.trouble) == (["who"], {})
    assert ([kept().access_token], [kept().refresh_token]) == (access, refresh)
    assert "access-" not in server.sealed_sign_in
    assert not ToolSignIn.objects.exists()


def test_the_request_is_protected_and_names_what_it_is_for(ada):
    """PKCE, a state of its own each time, the server's own address as the resource, and only what it asks for."""
    with guarded() as site:
        first = parse_qs(urlsplit(way_of(connect(ada, site.url))).query)
        way = way_of(ada.post(f"{SERVER}/sign-in", follow=True))
        second = parse_qs(urlsplit(way).query)
        ada.get(led_back(way))
        (form,) = site.forms

    assert first["code_challenge_method"] == ["S256"]
    assert (first["resource"], first["scope"], first["redirect_uri"]) == ([site.url], ["books"], [BACK])
    assert first["state"] != second["state"]
    assert first["code_challenge"] != second["code_challenge"]
    assert len(first["state"][0]) >= 43
    assert (form["resource"], form["redirect_uri"]) == (site.url, BACK)
    assert len(form["code_verifier"]) >= 43


def test_what_was_given_is_in_no_page_and_no_export_and_no_log(ada, caplog):
    with guarded() as site, caplog.at_level(0):
        sign_in(ada, site.url)
        pages = [ada.get(address) for address in ("/settings/tools", SERVER, "/settings/you/export")]
        told = "".join(b"".join(page).decode() for page in pages) + caplog.text + repr(kept())

    for secret in (kept().access_token, kept().refresh_token):
        assert secret not in told
    assert "sealed_sign_in" not in told


def test_a_no_on_the_page_leaves_it_signed_out_and_says_so(ada):
    with guarded() as site:
        back = led_back(way_of(connect(ada, site.url)), allow=False)
        page = ada.get(back, follow=True)
        again = ada.get(back, follow=True)

    assert "You aren’t signed in to Books. Its sign-in said no: Not today." in said(page)
    assert "Not signed in" in said(page)
    assert "What it offers is known once you have signed in." in said(page)
    assert OVER in said(again)
    assert kept() is None


def test_a_page_that_nobody_has_begun_leads_to_the_server(ada):
    server_of(ada.person, "Books", url="https://books.example/mcp")
    server_of(ada.person, "Program", command=["a-program"])

    assert ada.get(f"{SERVER}/sign-in")["Location"] == SERVER
    assert ada.post("/settings/tools/program/sign-in").status_code == 404


def test_a_server_that_wants_a_header_says_so_as_before(ada):
    with library(TOKEN="s3cret") as url:
        page = connect(ada, url)

    assert page.status_code == 422
    assert "It doesn’t accept who asks (401). Give it the header that it needs. Nothing was connected." in said(page)


def test_a_header_of_the_persons_own_takes_the_place_of_a_sign_in(ada):
    with guarded() as site:
        refused = connect(ada, site.url, secrets="Authorization: Bearer made-up")
        sign_in(ada, site.url)
        access = next(iter(site.keeper.access))
        page = ada.post(f"{SERVER}/secrets", {"secrets": "Authorization: Bearer made-up"}, follow=True)

    assert "It doesn’t accept who asks (401). Give it the header that it needs." in said(refused)
    assert "It doesn’t accept who asks (401). Give it the header that it needs." in said(page)
    assert access in site.keeper.revoked
    assert not kept().signed_in


def test_signing_out_forgets_the_tokens_here_and_there_and_can_be_undone(ada):
    with guarded() as site:
        sign_in(ada, site.url)
        given = {*site.keeper.access, *site.keeper.refresh}
        page = ada.post(f"{SERVER}/sign-out", follow=True)
        out = kept()
        again = ada.get(led_back(way_of(ada.post(f"{SERVER}/sign-in", follow=True))), follow=True)

    assert "You are signed out of Books." in said(page)
    assert "Signed out</span>" in said(page)
    assert "You are signed out of it. Below is what it listed before." in said(page)
    assert (out.access_token, out.refresh_token) == ("", "")
    assert given == set(site.keeper.revoked)
    assert "You are signed in to Books" in said(again)


def test_removing_a_server_forgets_its_sign_in_here_and_there(ada):
    with guarded() as site:
        sign_in(ada, site.url)
        given = {*site.keeper.access, *site.keeper.refresh}
        ada.post(f"{SERVER}/sign-in")
        ada.post(f"{SERVER}/remove")

    assert ToolServer.objects.get().sealed_sign_in == ""
    assert not ToolSignIn.objects.exists()
    assert given == set(site.keeper.revoked)


def test_a_sign_out_is_one_also_where_the_server_is_gone(ada):
    with guarded() as site:
        sign_in(ada, site.url)
    page = ada.post(f"{SERVER}/sign-out", follow=True)

    assert "You are signed out of Books." in said(page)
    assert not kept().signed_in


def test_where_conch_cannot_register_itself_the_person_does(ada):
    """As of a server that takes no strangers; what was given there by hand is kept for the next time."""
    with guarded(metadata={"registration_endpoint": None}) as site:
        site.knows("by-hand", "hush-hush", BACK)
        asked = connect(ada, site.url)
        empty = ada.post(f"{SERVER}/sign-in", {"client_id": ""})
        page = ada.post(f"{SERVER}/sign-in", {"client_id": "by-hand", "secret": "hush-hush"}, follow=True)
        done = ada.get(led_back(way_of(page)), follow=True)
        next_time = ada.post(f"{SERVER}/sign-in", follow=True)
        site.knows("another", "hush-hush", BACK)
        another = ada.post(f"{SERVER}/sign-in", {"client_id": "another", "secret": "hush-hush"}, follow=True)

    assert "Its sign-in doesn’t take Conch in by itself. Register it there by hand." in said(asked)
    assert BACK in said(asked)
    assert (empty.status_code, "Write the client ID that you were given." in said(empty)) == (422, True)
    assert "You are signed in to Books" in said(done)
    assert "client_id=by-hand" in way_of(next_time)
    assert "Another client ID" in said(next_time)
    assert "client_id=another" in way_of(another)
    assert "hush-hush" not in said(asked) + said(page) + said(done) + said(next_time)
    assert "hush-hush" not in ToolServer.objects.get().sealed_sign_in


def test_where_a_server_reads_who_a_client_is_conch_says_it(ada, settings):
    """Only a Conch that others can reach can be looked up by them."""
    settings.ALLOWED_HOSTS = ["conch.example", "127.0.0.1"]
    changes = {"registration_endpoint": None, "client_id_metadata_document_supported": True}
    with guarded(metadata=changes) as site:
        given = {"name": "Books", "url": site.url, "inside": "on"}
        here = {"headers": {"host": "conch.example"}, "secure": True}
        page = ada.post("/settings/tools/connect/address", given, **here, follow=True)
    query = parse_qs(urlsplit(way_of(page)).query)
    document = "https://conch.example/settings/tools/connect/client.json"
    told = Client().get(urlsplit(document).path, **here)

    assert query["client_id"] == [document]
    assert (told.status_code, told.json()["client_id"]) == (200, document)
    assert told.json()["redirect_uris"] == query["redirect_uri"]
    assert Client().get(urlsplit(document).path, headers={"host": HOST}).status_code == 404


def test_a_server_that_asks_for_more_is_signed_in_to_for_more(ada):
    with guarded() as site:
        sign_in(ada, site.url)
        more = 'Bearer error="insufficient_scope", scope="shelves"'
        site.changes["/mcp"] = (403, {"WWW-Authenticate": more})
        page = ada.post(f"{SERVER}/check", follow=True)
        site.changes.clear()
        again = parse_qs(urlsplit(way_of(ada.post(f"{SERVER}/sign-in", follow=True))).query)

    assert "It asks for more than you allowed when you signed in." in said(page)
    assert "Sign in again</span>" in said(page)
    assert again["scope"] == ["books shelves"]


def test_who_goes_is_signed_out_everywhere(transactional_db, monkeypatch):
    """For this test the server's address is one of the internet."""
    monkeypatch.setattr(wire_transport, "is_public", lambda _address: True)
    bob = make_person("bob")
    client = browser_of(bob)
    with guarded() as site:
        site.server_of(bob)
        given = {*site.keeper.access, *site.keeper.refresh}
        client.post("/settings/you/delete", {"name": "bob"})

    assert not ToolServer.objects.exists()
    assert set(site.keeper.revoked) == given


def test_a_sign_in_that_cannot_be_opened_any_more_is_in_nobodys_way(ada, settings):
    """Sealed under a CONCH_SECRET_KEY that is gone: said, begun anew, and removed like any other."""
    with guarded() as site:
        site.server_of(ada.person)
        settings.SECRET_KEY = "another-secret-key-of-fifty-characters-or-so-or-more"
        settings.SECRET_KEY_FALLBACKS = []
        ada = browser_of(ada.person)
        page = ada.post(f"{SERVER}/check", follow=True)
        ada.post(f"{SERVER}/sign-out")
        out = ada.get(SERVER)
        ada.post(f"{SERVER}/remove")

    assert "Its secrets were sealed under another CONCH_SECRET_KEY." in said(page)
    assert out.status_code == 200
    assert ToolServer.objects.get().removed_at is not None
    assert seal.unseal(ToolServer.objects.get().sealed_sign_in) == ""
