"""What every page carries, and what none may: headers, no inline script or style, no foreign request, no secret."""

import logging
import re
import subprocess
import sys

import pytest

from conch.models import Account
from tests.conftest import make_person
from tests.security.everything import SECRET, addresses, body, filled, one_of_everything, signed_in, still_in
from tests.soak.place import ROOT, Place, Provider

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = {
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "font-src 'self'",
    "connect-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
}  # fmt: skip
INLINE = re.compile(
    rb"<script(?![^>]*\bsrc=)(?![^>]*type=\"(?:application/json|text/template)\")[^>]*>|<style\b|\sstyle=\"|\son[a-z]+=\"|"
    rb"javascript:|hx-on|hx-vals=.js:",
    re.IGNORECASE,
)
FOREIGN = re.compile(
    rb"<(?:script|img|link|iframe|source|video|audio|object|embed|form)\b[^>]*\b(?:src|href|action)=\"(?:https?:)?//"
)


@pytest.fixture
def seen():
    """Every page, fragment and export that ada, the owner, can look at: (address, answer, its body)."""
    adas = one_of_everything(make_person("ada", is_owner=True, is_staff=True, is_superuser=True))
    client = signed_in(adas.person, raise_request_exception=False)
    found = []
    for written, _ in addresses():
        response = still_in(client, adas.person).get(filled(written, adas.named))
        found.append((written, response, body(response)))
    return found


def test_every_answer_carries_the_whole_policy_and_no_page_needs_more(seen, caplog):
    """A strict CSP without inline, eval or nonce; nosniff; no frame of another's; no foreign request by any page."""
    shown, wrong = 0, []

    for written, response, said in seen:
        policy = {part.strip() for part in response.get("Content-Security-Policy", "").split(";") if part.strip()}
        if policy != POLICY and not written.startswith("attachments/"):
            wrong.append(f"{written}: {response.status_code} {sorted(policy ^ POLICY)}")
        if response.get("X-Content-Type-Options") != "nosniff" or response.get("X-Frame-Options") != "DENY":
            wrong.append(f"{written}: without nosniff or frame denial")
        if response.get("Content-Type", "").startswith("text/html") and response.status_code == 200:
            shown += 1
            wrong += [f"{written}: {found[0][:60]}" for found in [INLINE.findall(said)] if found]
            wrong += [f"{written}: asks {found}" for found in FOREIGN.findall(said)]

    assert wrong == []
    assert shown > 25


def test_no_page_export_or_log_holds_a_key_sealed_or_open(seen, caplog):
    """A key is never shown again, in whatever form; of it, its last four characters are."""
    sealed = Account.objects.get(slug="adas").sealed_key

    told = [written for written, _, said in seen if SECRET.encode() in said or sealed.encode() in said]

    assert told == []
    assert SECRET not in caplog.text
    assert any(b"7f3e" in said for _, _, said in seen)


def test_no_fault_shows_a_stack_or_a_setting(client, db, settings, monkeypatch):
    """A page never shows a stack trace, whatever broke."""
    client.raise_request_exception = False

    def broken(*_given, **_named):
        raise RuntimeError(f"broke with {SECRET}")

    monkeypatch.setattr("conch.accounts.views.render", broken)
    logging.disable(logging.CRITICAL)
    try:
        response = client.get("/signin")
    finally:
        logging.disable(logging.NOTSET)

    assert response.status_code == 500
    assert SECRET.encode() not in response.content
    assert b"Traceback" not in response.content
    assert b"settings" not in response.content.lower()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::2]"])
def test_a_name_that_was_rebound_to_this_machine_is_turned_away(client, db, host):
    """DNS rebinding: the Host check stands before everything."""
    for address in ("/", "/api/accounts", "/signin", "/healthz", "/metrics"):
        assert client.get(address, headers={"host": host}).status_code == 400


def test_a_key_is_in_no_process_list_log_or_file_of_a_real_conch(tmp_path):
    """Connected by stdin, used for an answer, refused for one: the key is nowhere but sealed, and in memory."""
    provider, place = Provider(), Place(tmp_path)
    try:
        provider.script(SECRET, {"do": "reply"})
        token = place.inside("prepare", accounts=[])["token"]
        connecting = subprocess.Popen(
            [sys.executable, "manage.py", "connect", "openai", "--key-stdin", "--base-url", provider.url + "/v1"],
            cwd=ROOT, env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=place.log, text=True,
        )  # fmt: skip
        listed = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        connecting.communicate(SECRET + "\n", timeout=120)
        place.environment["CONCH_LOG"] = "json"
        server = place.serve().wait_until_serving()
        asked(server.address, token)
        listed += subprocess.run(["ps", "axeww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        server.end()
    finally:
        provider.end()
        place.end()

    kept = [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    logged = place.logged()
    assert connecting.returncode == 0
    assert SECRET not in listed
    assert kept == []
    assert '"said": "a turn ended"' in logged
    assert '"account": "openai"' in logged
    assert "words that nobody else reads" not in logged
    assert token not in logged


def asked(address, token):
    """One message, and its whole answer."""
    import httpx2 as httpx

    with httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
    ) as client:
        chat = client.post("/api/conversations", json={"account": "openai"}).json()["id"]
        text = "words that nobody else reads"
        said = client.post(
            f"/api/conversations/{chat}/messages", json={"text": text}, headers={"Accept": "text/event-stream"}
        )
        assert "event: done" in said.text
