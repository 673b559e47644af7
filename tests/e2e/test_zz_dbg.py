import pytest
from playwright.sync_api import expect
from tests.e2e.chat_site import *
from tests.e2e.chat_site import say, shown
from tests.e2e.test_chat import answer
pytestmark = pytest.mark.django_db(transaction=True)
def test_dbg(browser, address, world):
    account = world.account("codex")
    account.key.replies("The first answer.", hold_after=1).replies("The second answer.")
    with shown(browser, address, world.person) as page:
        page.on("response", lambda r: print("RESP", r.status, r.request.method, r.url[len(address):]) if "/static" not in r.url else None)
        say(page, "First")
        expect(page.locator("[data-live]")).to_have_count(1)
        page.evaluate("""() => { window.log=[]; for (const n of ['htmx:sseMessage','htmx:oobBeforeSwap','htmx:oobErrorNoTarget','htmx:swapError','htmx:sseClose','htmx:sseError','htmx:sseOpen'])
          addEventListener(n, e => window.log.push([n, e.detail.type||'', (e.detail.data||'').length, e.detail.target?.id||'', (e.detail.fragment?.textContent||'').replace(/\\s+/g,' ').slice(0,100)]))}""")
        say(page, "Second")
        expect(page.locator(".line.calm")).to_contain_text("Goes out after")
        account.key.release()
        page.wait_for_timeout(4000)
        for l in page.evaluate("window.log"): print(l)
        print(page.said)
