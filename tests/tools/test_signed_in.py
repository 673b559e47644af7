"""Calls to a server that the person has signed in to: tokens renewed once for all, and what is said when it is over."""

import asyncio
import threading
from dataclasses import replace

import pytest

from conch import tools
from conch.db import look
from conch.models import ToolServer
from conch.tools import grants, renewal, servers
from conch.tools.launches import launch_of
from conch.tools.trouble import ToolTrouble
from tests.conftest import NOW
from tests.tools.servers.guarded import guarded
from tests.tools.site import offered_by

pytestmark = pytest.mark.usefixtures("_ended")
OVER = "You are signed out of it. Sign in again under Settings, Tools. This call didn’t run."


@pytest.fixture
def site():
    with guarded() as running:
        yield running


async def called(owner, server, seconds=20.0):
    outcome = await tools.call(owner.pk, offered_by(server, "who"), {}, seconds=seconds)
    return outcome.text, outcome.failed


def posts(site, path):
    return sum((method, at) == ("POST", path) for method, at, _ in site.asked)


async def kept(server):
    return await look(grants.grant_of, server.pk)


async def trouble(server):
    return await look(lambda: ToolServer.objects.get(pk=server.pk).trouble)


async def test_a_call_runs_as_who_signed_in(owner, site):
    server = await look(site.server_of, owner)

    assert await called(owner, server) == ("ada", False)
    assert await called(owner, server) == ("ada", False)
    assert site.keeper.renewed == []


@pytest.mark.parametrize("known", [True, False], ids=["by its time", "by a refusal"])
async def test_a_token_that_has_run_out_is_renewed_and_the_call_runs_once(owner, site, known):
    grant = site.grant(**({"runs_out": 1.0} if known else {}))
    server = await look(site.server_of, owner, grant)
    site.keeper.access.clear()

    assert await called(owner, server) == ("ada", False)

    now = await kept(server)
    assert site.keeper.renewed == [grant.refresh_token]
    assert [form["resource"] for form in site.forms] == [site.url]
    assert now.access_token in site.keeper.access
    assert now.refresh_token in site.keeper.refresh
    assert (now.name, now.scope) == (grant.name, "books")
    assert now.runs_out > 1.0
    refused = [headers for _, path, headers in site.asked if path == "/mcp" and grant.access_token in str(headers)]
    assert len(refused) == (0 if known else 1)


async def test_an_open_session_goes_on_with_the_new_token(owner, site):
    server = await look(site.server_of, owner)
    first = await called(owner, server)
    site.keeper.access.clear()
    opened = posts(site, "/mcp")
    second = await called(owner, server)

    assert (first, second) == (("ada", False), ("ada", False))
    assert posts(site, "/mcp") == opened + 2  # refused, then answered: no session was opened anew


async def test_a_renewal_that_is_refused_signs_out_and_the_call_says_so(owner, site):
    server = await look(site.server_of, owner)
    site.keeper.access.clear()
    site.keeper.renews = False

    first = await called(owner, server)
    second = await called(owner, server)

    assert (first, second) == ((OVER, True), (OVER, True))
    assert await trouble(server) == {"code": "sign_in_over"}
    assert len(site.keeper.renewed) == 1
    over = await kept(server)
    assert (over.access_token, over.refresh_token, over.signed_in) == ("", "", False)


async def test_a_token_without_another_to_renew_it_is_over_once_it_is_refused(owner, site):
    server = await look(site.server_of, owner, site.grant(refresh_token=""))
    site.keeper.access.clear()

    assert await called(owner, server) == (OVER, True)
    assert posts(site, "/token") == 0


async def test_a_server_that_takes_no_new_token_either_is_signed_out_of(owner, site):
    server = await look(site.server_of, owner)
    site.changes["/mcp"] = (401, {"WWW-Authenticate": "Bearer"})

    assert await called(owner, server) == (OVER, True)
    assert len(site.keeper.renewed) == 1
    assert await trouble(server) == {"code": "sign_in_over"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((503, {}), "127.0.0.1 answers with an error (503)"),
        ((302, {"Location": "http://127.0.0.1:1/token"}), "127.0.0.1 answers with an error (302)"),
    ],
)
async def test_where_nothing_can_be_renewed_now_the_sign_in_is_kept(owner, site, answer, why):
    server = await look(site.server_of, owner)
    site.keeper.access.clear()
    site.changes["/token"] = answer

    text, failed = await called(owner, server)
    unchanged = await kept(server)
    site.changes.clear()

    assert failed
    assert text == f"Its sign-in has run out, and can’t be renewed now: {why}. This call didn’t run."
    assert unchanged.signed_in
    assert await called(owner, server) == ("ada", False)
    assert await trouble(server) == {}


async def test_a_sign_in_that_never_answers_ends_the_call_in_time(owner, site, monkeypatch):
    monkeypatch.setattr(renewal, "WITHIN", 0.5)
    server = await look(site.server_of, owner)
    site.keeper.access.clear()
    never = threading.Event()

    async def silent(*_given):
        await asyncio.to_thread(never.wait, 20)

    monkeypatch.setattr(site.keeper, "load_refresh_token", silent)

    text, failed = await called(owner, server)
    never.set()

    assert failed
    assert text.startswith("Its sign-in has run out, and can’t be renewed now: no answer within")
    assert (await kept(server)).signed_in


async def test_it_is_renewed_once_whoever_meets_it_first(owner, site):
    """In several loops, as in several processes: a lock on a file lets one of them ask, the others take what it got."""
    server = await look(site.server_of, owner)
    launch = await look(launch_of, server)
    found = []

    def elsewhere():
        found.append(asyncio.run(renewal.renewed(launch, launch.grant)))

    threads = [threading.Thread(target=elsewhere) for _ in range(4)]
    for thread in threads:
        thread.start()
    here = await asyncio.gather(*(renewal.renewed(launch, launch.grant) for _ in range(3)))
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert len(site.keeper.renewed) == 1
    assert {grant.access_token for grant in [*found, *here]} == {(await kept(server)).access_token}


async def test_calls_side_by_side_meet_a_token_that_has_run_out_and_all_run(owner, site):
    server = await look(site.server_of, owner)
    await called(owner, server)
    site.keeper.access.clear()

    outcomes = await asyncio.gather(*(called(owner, server) for _ in range(5)))

    assert outcomes == [("ada", False)] * 5
    assert len(site.keeper.renewed) == 1


async def test_of_a_call_that_runs_while_another_finds_the_sign_in_over_nobody_knows(owner, site):
    """They share a session, which ends, and which of them was refused can’t be told."""
    server = await look(site.server_of, owner)
    site.keeper.gate.clear()
    running = asyncio.create_task(called(owner, server))
    await asyncio.to_thread(site.keeper.begun.wait, 20)
    site.keeper.access.clear()
    site.keeper.renews = False

    outcomes = await asyncio.gather(running, called(owner, server))
    site.keeper.gate.set()

    unknown = OVER.replace("This call didn’t run.", "It isn’t known whether this call did anything.")
    assert outcomes == [(unknown, True)] * 2
    assert await trouble(server) == {"code": "sign_in_over"}


async def test_a_renewal_that_comes_after_the_sign_out_brings_nothing_back(owner, site, monkeypatch):
    server = await look(site.server_of, owner)
    launch = await look(launch_of, server)
    given = site.keeper.exchange_refresh_token

    async def late(*asked):
        tokens = await given(*asked)
        await asyncio.to_thread(grants.end, server.pk, launch.grant.name, NOW)
        return tokens

    monkeypatch.setattr(site.keeper, "exchange_refresh_token", late)

    with pytest.raises(ToolTrouble, match="sign_in_over"):
        await renewal.renewed(launch, launch.grant)

    assert not (await kept(server)).signed_in
    assert (site.keeper.access.keys(), site.keeper.refresh.keys()) == ({launch.grant.access_token}, set())


async def test_a_session_of_an_earlier_sign_in_renews_nothing_of_the_later_one(owner, site):
    server = await look(site.server_of, owner)
    launch = await look(launch_of, server)
    await look(grants.keep, server.pk, replace(site.grant("eve"), name="later"))

    with pytest.raises(ToolTrouble, match="sign_in_over"):
        await renewal.renewed(launch, launch.grant)

    assert site.keeper.renewed == []


async def test_a_check_renews_what_has_run_out_too(owner, site):
    server = await look(site.server_of, owner, site.grant(runs_out=1.0))

    await servers.check(server, NOW)

    assert await trouble(server) == {}
    assert len(site.keeper.renewed) == 1


async def test_a_token_that_no_header_can_carry_is_taken_for_none(owner, site, monkeypatch):
    server = await look(site.server_of, owner)
    site.keeper.access.clear()
    given = site.keeper.gives

    def odd(client_id, by):
        return given(client_id, by).model_copy(update={"access_token": "one\r\nX-Other: two"})

    monkeypatch.setattr(site.keeper, "gives", odd)

    text, failed = await called(owner, server)

    assert failed
    assert text == "Its sign-in isn’t to be trusted: what it gives out can’t be used. This call didn’t run."
