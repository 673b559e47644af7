"""A person in a browser who signs in to a tool server, for tests of what its pages do with that."""

import html
import re
from urllib.parse import urlsplit

import httpx2
from django.test import Client

from conch.models import ToolServer
from conch.tools.grants import grant_of
from tests.tools.servers.guarded import BACK

HOST = urlsplit(BACK).netloc
SERVER = "/settings/tools/books"
OVER = "No sign-in of yours that leads back here is under way in this browser."


def browser_of(person):
    client = Client(headers={"host": HOST})
    client.force_login(person)
    client.person = person
    return client


def said(response):
    return html.unescape(response.content.decode())


def connect(client, url, **more):
    given = {"name": "Books", "url": url, "inside": "on"} | more
    return client.post("/settings/tools/connect/address", given, follow=True)


def way_of(page):
    """Where the page leads to."""
    return html.unescape(re.search(r'id="sign-in-page" href="([^"]+)"', page.content.decode())[1])


def led_back(way, *, allow=True):
    """What a browser does there, and the address, without its host, that it is led back to."""
    with httpx2.Client(trust_env=False) as browser:
        consent = browser.get(way).headers["location"]
        pressed = consent.replace("/consent", f"/consent/{'allow' if allow else 'refuse'}")
        back = browser.get(pressed).headers["location"]
    assert back.startswith(BACK)
    parts = urlsplit(back)
    return f"{parts.path}?{parts.query}"


def sign_in(client, url):
    """The whole way there and back; the page that it ends at."""
    return client.get(led_back(way_of(connect(client, url))), follow=True)


def kept():
    return grant_of(ToolServer.objects.get().pk)
