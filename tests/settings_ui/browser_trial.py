"""Codex's own sign-in in the browser, from Conch's page to the connected account, told as one line of JSON.

Run by test_signing_in in namespaces of its own, where the name of the page that Codex signs in at leads to this
process: that address is the program's own, and has no switch.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from pathlib import Path
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from tests.engines.network_trial import lead_here, raise_loopback

HOST = "auth.openai.com"


def owner_of_a_new_conch():
    """A browser of the owner's, in a Conch with an empty database."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "tests.settings", "CONCH_TEST_DATA": os.environ["CONCH_DATA"]}
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from tests.conftest import make_person

    call_command("migrate", verbosity=0)
    client = Client(headers={"host": "localhost"})
    client.force_login(make_person("owner", is_owner=True))
    return client


def until(happens):
    """What it gives, once that is something."""
    deadline = time.monotonic() + 30
    while not (found := happens()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def signs_in(client, server, browser):
    """Press, open the page that is said, come back, and look until it is connected."""
    from conch.accounts import sign_ins
    from conch.models import Account

    address = client.post("/settings/connect/codex/sign-in", {"way": "browser"})["Location"]
    (one,) = sign_ins._under_way.values()
    page = until(lambda: one.said().url)
    shown = page in client.get(address).content.decode().replace("&amp;", "&")
    with browser.open(page, timeout=30) as came_back:
        landed = (came_back.status, came_back.url.partition("?")[0])
    headers = {"HX-Request": "true"}
    until(lambda: client.post(f"{address}/check", headers=headers).headers.get("HX-Redirect"))
    account = Account.objects.get()
    signed_in = {"whose": account.whose, "in its own home": account.home == str(one.home)}
    return {"shown": shown, "page": page.partition("?")[0], "landed": landed, "asked": server.asked} | signed_in


def main():
    folder = Path(sys.argv[1])
    raise_loopback()
    lead_here(folder, HOST)
    client = owner_of_a_new_conch()
    from conch.engines.registry import engine
    from tests.settings_ui.sign_in_server import CODE, SignInServer
    from tests.simulator import tls
    from tests.simulator.simulator import Simulator

    ca, context = tls.authority(folder, HOST)
    os.environ["SSL_CERT_FILE"] = str(ca)
    server = SignInServer(443, context)
    trusting = HTTPSHandler(context=ssl.create_default_context(cafile=str(ca)))
    with Simulator() as simulator:
        codex = engine("codex")
        type(codex).official_base_url = simulator.base_urls["codex"]
        server.enter(CODE, simulator.codex("bob@home.example", folder / "elsewhere"))
        told = signs_in(client, server, build_opener(ProxyHandler({}), trusting))
        told["replies"] = len(simulator.requests())
        asyncio.run(codex.close())
    server.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
