"""Where an account may be reached: case SEC-04."""

import asyncio
import socket

import pytest

from conch.accounts import addresses
from conch.accounts.access import access_for
from tests.conftest import make_account, make_person

INSIDE = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://2130706433/",
    "http://127.0.0.1:8000/v1",
    "http://10.0.0.7/v1",
    "http://192.168.1.1/v1",
    "http://[::1]:11434/v1",
    "http://[fe80::1]/v1",
    "http://[fd00::1]/v1",
    "http://0.0.0.0/v1",
    "http://localhost:11434/v1",
    "http://100.64.0.1/v1",
    # Disguises of IPv4: compatible, translated by the network (NAT64, SIIT), tunnelled; and what came before fd00::.
    "http://[::127.0.0.1]/v1",
    "http://[64:ff9b::a9fe:a9fe]/latest/meta-data/",
    "http://[::ffff:0:169.254.169.254]/",
    "http://[64:ff9b:1::1]/v1",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[fec0::1]/v1",
]
NEVER = [
    "file:///etc/passwd",
    "ftp://models.example/v1",
    "http://user:pass@api.openai.com@evil.example.test/",
    "https://user@models.example/v1",
    "https:///v1",
    "models.example/v1",
    "https://models.example/v1?x=1",
    "https://models.example/v1#x",
    "http://[::1",
    "http://models.example:99999/v1",
]


def checked(base_url, *, owner):
    return asyncio.run(addresses.checked(base_url, owner=owner))


@pytest.mark.parametrize("base_url", INSIDE)
def test_a_guest_cannot_point_inside(base_url):
    """SEC-04: blocked at save, for anyone but the owner of the machine."""
    with pytest.raises(addresses.BadAddress, match="isn’t an address on the internet"):
        checked(base_url, owner=False)


@pytest.mark.parametrize("base_url", INSIDE)
def test_the_owner_may_point_inside(base_url):
    """SEC-04: the owner may allow loopback and private addresses for any engine."""
    assert checked(base_url, owner=True) == base_url.rstrip("/")


@pytest.mark.parametrize(
    "base_url", ["http://8.8.8.8/v1", "http://[64:ff9b::808:808]/v1", "http://[2606:4700::1111]/v1"]
)
def test_a_guest_may_point_at_the_internet_also_where_the_network_translates(base_url):
    assert checked(base_url, owner=False) == base_url


@pytest.mark.parametrize("base_url", NEVER)
@pytest.mark.parametrize("owner", [True, False])
def test_some_addresses_are_nobodys(base_url, owner):
    """SEC-04: only http and https, no user and password in it."""
    with pytest.raises(addresses.BadAddress):
        checked(base_url, owner=owner)


@pytest.fixture
def names(monkeypatch):
    """A name service of the test's own: the only thing that can't be had on loopback."""
    table = {}

    def getaddrinfo(host, port, *_args, **_kwargs):
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in table[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return table


def test_a_name_is_judged_by_every_address_it_has(names):
    """SEC-04: a name like 7f000001.nip.io that leads inside, or that has one foot inside."""
    names["7f000001.nip.io"] = ["127.0.0.1"]
    names["both.example"] = ["93.184.215.14", "10.0.0.1"]
    names["outside.example"] = ["93.184.215.14"]

    for name in ("7f000001.nip.io", "both.example", "unknown.example"):
        with pytest.raises(addresses.BadAddress):
            checked(f"http://{name}/v1", owner=False)
    assert checked("https://outside.example/v1", owner=False) == "https://outside.example/v1"


@pytest.mark.django_db
def test_a_guests_own_address_is_checked_again_at_every_connection():
    """SEC-04: rebinding. A guest's engine gets connections that resolve and check the name themselves."""
    owner, guest = make_person("owner", is_owner=True), make_person("guest")
    own = "https://rebind.example.test/v1"

    assert access_for(make_account(guest, "openai", base_url=own)).public_only
    assert not access_for(make_account(owner, "openai", base_url=own)).public_only
    assert not access_for(make_account(guest, "anthropic")).public_only


def test_the_page_asks_the_owner_once_more_for_an_address_inside():
    assert addresses.is_inside("http://127.0.0.1:11434/v1")
    assert addresses.is_inside("http://localhost:1234/v1")
    assert addresses.is_inside("http://nas/v1")
    assert not addresses.is_inside("https://api.openai.com/v1")
